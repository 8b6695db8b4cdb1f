"""Spark in one JVM on this machine: `local[*]`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lakeload.runtimes.base import Runtime
from lakeload_jobs.contract.spec import RuntimeSpec


class _Local(Runtime):
    """Tasks are threads of the driver."""

    def task_slots(self, master: str, cores: int) -> int | None:
        found = self.masters.fullmatch(master)
        slots = (found["slots"] if found else None) or "1"
        return cores if slots == "*" else int(slots)

    def properties(self, jars: Sequence[Path], conf: Mapping[str, str]) -> dict[str, str]:
        # Nobody else connects, and a host name that does not resolve then does no harm.
        loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        kept = {name: conf.get(name, value) for name, value in loopback.items()}
        return kept | super().properties(jars, conf)


LOCAL = _Local(
    masters=re.compile(r"local(\[(?P<slots>\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?"),
    beginning="local",
    written="local[N]",
    traits=RuntimeSpec(tasks_share_driver=True),
)
