"""Memory of this machine or container, and the heap of the driver."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady
from lakeload_jobs.core.sizes import parse_jvm_memory


@dataclass(frozen=True)
class Group:
    """The folder of a group. `unified`: of version 2, with one hierarchy for all controllers."""

    folder: Path
    unified: bool


def groups_of(controller: str, cgroups: Path, proc: Path) -> list[Group]:
    """Return the groups that limit this process by `controller` (`memory`, `cpu`), up to the root.

    Inside a container the path may not exist below the mount; the root's files then hold the
    limits. Where there are no groups, none.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    groups = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        unified = controllers == ""
        if unified or controller in controllers.split(","):
            root = cgroups if unified else cgroups / controller
            parts = [part for part in path.split("/") if part]
            groups += [
                Group(root.joinpath(*parts[:depth]), unified) for depth in range(len(parts), -1, -1)
            ]
    return groups


MIB = 1024 * 1024
MOST = 8 * 1024 * MIB
LEAST = 512 * MIB
"""Spark refuses to start below 450 MiB (`UnifiedMemoryManager`)."""


def driver_memory(configured: str | None, available: int) -> str:
    """Return `spark.driver.memory`, such as `8192m`.

    The document's `spark.driver_memory` wins; otherwise half of `available` (bytes), at most
    8 GiB. Raises `MachineNotReady`, naming the setting, when the machine cannot hold it, and
    `InvalidInput` when Spark would not start with it.
    """
    wanted = min(available // 2, MOST) if configured is None else parse_jvm_memory(configured)
    if configured is not None and wanted < LEAST:
        raise InvalidInput(
            f"`spark.driver_memory` is `{configured}`, and Spark needs at least 512m to start",
            hint="set `spark.driver_memory` to 1g or more",
        )
    if wanted < LEAST:
        raise MachineNotReady(
            f"this machine has {available // MIB} MiB of memory, too little for a Spark driver",
            hint="give it 2 GiB or more, or set `spark.driver_memory` yourself (at least 512m)",
        )
    if wanted > available:
        raise MachineNotReady(
            f"`spark.driver_memory` is `{configured}`, and this machine has {available // MIB} MiB",
            hint=f"set `spark.driver_memory` to {max(available // 2, LEAST) // MIB}m or less, "
            "or leave it out",
        )
    return f"{wanted // MIB}m"


def available_memory(cgroups: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")) -> int:
    """Return the bytes this process may use: physical memory, or its cgroup's limit if lower."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits(cgroups, proc)])


def _limits(cgroups: Path, proc: Path) -> list[int]:
    limits = []
    for group in groups_of("memory", cgroups, proc):
        file = group.folder / ("memory.max" if group.unified else "memory.limit_in_bytes")
        try:
            text = file.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            limits.append(int(text))
    return limits
