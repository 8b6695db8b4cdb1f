"""Memory and processors: what the driver would get, and what limits them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lakeload.machine.doctor.model import Finding, Host, Patient, Status
from lakeload.machine.local.cgroups import groups_of
from lakeload.machine.local.memory import MIB, available_memory, driver_memory
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.sizes import format_size, parse_jvm_memory

PYTHON_SHARE = 512 * MIB
"""What the Python workers of a small load need beside the driver's heap."""


def memory(patient: Patient) -> Iterator[Finding]:
    """Compare the driver's heap with physical memory and the container's limit."""
    available = available_memory(patient.host.cgroups, patient.host.proc)
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield judge_memory(patient, available, physical)


def judge_memory(patient: Patient, available: int, physical: int) -> Finding:
    """Return the finding for this many bytes of memory."""
    limited = f", limited by a cgroup (of {format_size(physical)})" if available < physical else ""
    has = f"{format_size(available)} of memory{limited}"
    configured = patient.need.driver_memory
    try:
        heap = driver_memory(configured, available)
    except LakeloadError as error:
        return Finding("memory", Status.PROBLEM, has, error.message, error.hint or "")
    source = "as the pipeline says" if configured else "by default"
    found = f"{has}; the driver takes {heap} {source}"
    if available - parse_jvm_memory(heap) < PYTHON_SHARE:
        smaller = max(available // 2, 512 * MIB) // MIB
        why = "little is left for the Python workers, and a container that runs over is killed"
        command = f"set `spark.driver_memory: {smaller}m` in the pipeline"
        return Finding("memory", Status.WARNING, found, why, command)
    return Finding("memory", Status.OK, found)


def processors(patient: Patient) -> Iterator[Finding]:
    """Compare the processors Spark would use with what the container may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    yield judge_processors(usable or os.cpu_count() or 1, cpu_quota(patient.host))


def judge_processors(usable: int, quota: float | None) -> Finding:
    """Return the finding for `usable` processors and a quota in processors, None without one."""
    count = f"{usable} processor{'s' if usable != 1 else ''}"
    if quota is None or quota >= usable:
        return Finding("processors", Status.OK, count)
    found = f"{count}, of which a cgroup allows the time of {quota:g}"
    if quota >= 1:
        # Java counts the quota itself, rounded up.
        return Finding("processors", Status.OK, found)
    why = "less than one processor's time: starting Spark alone takes half a minute or more"
    command = "docker update --cpus=2 CONTAINER"
    return Finding("processors", Status.WARNING, found, why, command)


def cpu_quota(host: Host) -> float | None:
    """Return how many processors' time the cgroup (v1 or v2) allows, None without a limit."""
    groups = groups_of("cpu", host.cgroups, host.proc)
    found = [(_quota_v2 if group.unified else _quota_v1)(group.folder) for group in groups]
    return min((quota for quota in found if quota is not None), default=None)


def _quota_v2(folder: Path) -> float | None:
    words = _words(folder / "cpu.max")
    return _share(*words) if len(words) == 2 else None


def _quota_v1(folder: Path) -> float | None:
    words = _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
    return _share(*words) if len(words) == 2 else None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []


def _share(quota: str, period: str) -> float | None:
    """`max` or `-1` is no limit."""
    if not quota.isdecimal() or not period.isdecimal() or int(period) == 0:
        return None
    return int(quota) / int(period)
