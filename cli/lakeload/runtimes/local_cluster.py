"""Spark in several JVMs on this machine: `local-cluster[2,1,1024]`, made for tests."""

from __future__ import annotations

import re

from lakeload.runtimes.base import Runtime
from lakeload_jobs.contract.spec import RuntimeSpec

LOCAL_CLUSTER = Runtime(
    masters=re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"),
    beginning="local-cluster",
    written="local-cluster[…]",
    traits=RuntimeSpec(tasks_share_driver=True),
)
