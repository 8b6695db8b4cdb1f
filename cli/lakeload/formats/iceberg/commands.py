"""Iceberg's implementation of the command line's table operations."""

from __future__ import annotations

from lakeload.formats.iceberg.inspect import inspect
from lakeload.formats.iceberg.maintain import maintain
from lakeload.formats.iceberg.plan import judge, plan
from lakeload.formats.iceberg.recover import recover, resolve
from lakeload.formats.iceberg.reset import reset
from lakeload.formats.iceberg.runs import runs
from lakeload_jobs.formats.iceberg.rules.writers import needs_java

__all__ = [
    "inspect",
    "judge",
    "maintain",
    "needs_java",
    "plan",
    "recover",
    "reset",
    "resolve",
    "runs",
]
