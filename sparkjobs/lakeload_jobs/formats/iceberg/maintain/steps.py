"""The steps by name."""

from __future__ import annotations

from collections.abc import Mapping

from lakeload_jobs.contract.events import Step
from lakeload_jobs.formats.iceberg.maintain.compact import (
    compact,
    rewrite_deletes,
    rewrite_manifests,
)
from lakeload_jobs.formats.iceberg.maintain.expire import drop_branches, expire
from lakeload_jobs.formats.iceberg.maintain.orphans import remove_orphans
from lakeload_jobs.formats.iceberg.maintain.work import Stepper

STEPS: Mapping[Step, Stepper] = {
    "branches": drop_branches,
    "compact": compact,
    "deletes": rewrite_deletes,
    "manifests": rewrite_manifests,
    "expire": expire,
    "orphans": remove_orphans,
}
