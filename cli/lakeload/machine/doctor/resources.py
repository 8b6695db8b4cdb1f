"""Checks of memory and disk space."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakeload.machine.doctor.model import (
    CheckContext,
    CheckResult,
    CheckStatus,
    Host,
    export,
    make_writable,
)
from lakeload.machine.local.memory import MIB, available_memory, driver_memory, groups_of
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.sizes import format_size, parse_jvm_memory

PYTHON_SHARE = 512 * MIB
"""What the Python workers of a small load need beside the driver's heap."""


def memory(context: CheckContext) -> Iterator[CheckResult]:
    """Compare the driver's heap with physical memory and the container's limit."""
    available = available_memory(context.host.cgroups, context.host.proc)
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield judge_memory(context, available, physical)


def judge_memory(context: CheckContext, available: int, physical: int) -> CheckResult:
    """Return the finding for this many bytes of memory."""
    limited = f", limited by a cgroup (of {format_size(physical)})" if available < physical else ""
    has = f"{format_size(available)} of memory{limited}"
    configured = context.need.driver_memory
    try:
        heap = driver_memory(configured, available)
    except LakeloadError as error:
        return CheckResult("memory", CheckStatus.PROBLEM, has, error.message, error.hint or "")
    source = "as the pipeline says" if configured else "by default"
    found = f"{has}; the driver takes {heap} {source}"
    if available - parse_jvm_memory(heap) < PYTHON_SHARE:
        smaller = max(available // 2, 512 * MIB) // MIB
        why = "little is left for the Python workers, and a container that runs over is killed"
        command = f"set `spark.driver_memory: {smaller}m` in the pipeline"
        return CheckResult("memory", CheckStatus.WARNING, found, why, command)
    return CheckResult("memory", CheckStatus.OK, found)


def processors(context: CheckContext) -> Iterator[CheckResult]:
    """Compare the processors Spark would use with what the container may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    yield judge_processors(usable or os.cpu_count() or 1, cpu_quota(context.host))


def judge_processors(usable: int, quota: float | None) -> CheckResult:
    """Return the finding for `usable` processors and a quota in processors, None without one."""
    count = f"{usable} processor{'s' if usable != 1 else ''}"
    if quota is None or quota >= usable:
        return CheckResult("processors", CheckStatus.OK, count)
    found = f"{count}, of which a cgroup allows the time of {quota:g}"
    if quota >= 1:
        # Java counts the quota itself, rounded up.
        return CheckResult("processors", CheckStatus.OK, found)
    why = "less than one processor's time: starting Spark alone takes half a minute or more"
    command = "docker update --cpus=2 CONTAINER"
    return CheckResult("processors", CheckStatus.WARNING, found, why, command)


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


GIB = 1 << 30
LITTLE = 2 * GIB
"""Below this, a sort or shuffle of an ordinary table may fill the disk."""
TOO_LITTLE = 256 << 20
"""Below this, Spark's own files may fill it."""
_IN_MEMORY = {"tmpfs", "ramfs"}


@dataclass(frozen=True)
class Mount:
    """A mounted file system: where, its type, and its options."""

    place: Path
    kind: str
    options: frozenset[str]


def scratch(context: CheckContext) -> Iterator[CheckResult]:
    """Look at the folders in which Spark keeps what does not fit into memory."""
    for folder, source in scratch_folders(context):
        yield _scratch(context, folder, source)


def scratch_folders(context: CheckContext) -> list[tuple[Path, str]]:
    """Return Spark's scratch folders and what names them.

    SPARK_LOCAL_DIRS wins over `spark.local.dir`; else it is Java's temporary folder, which on
    Linux is /tmp whatever TMPDIR says.
    """
    named = [
        ("SPARK_LOCAL_DIRS", context.environment.get("SPARK_LOCAL_DIRS", "")),
        ("spark.local.dir", context.need.conf.get("spark.local.dir", "")),
    ]
    for source, value in named:
        if folders := [part.strip() for part in value.split(",") if part.strip()]:
            return [(Path(folder), source) for folder in folders]
    return [(java_temporary(context), "Java's temporary folder")]


def java_temporary(context: CheckContext) -> Path:
    """Return what Java takes for its temporary folder (`java.io.tmpdir`)."""
    options = [
        *context.environment.get("JAVA_TOOL_OPTIONS", "").split(),
        *context.need.conf.get("spark.driver.extraJavaOptions", "").split(),
    ]
    for option in reversed(options):
        if option.startswith("-Djava.io.tmpdir="):
            return Path(option.partition("=")[2])
    if context.host.platform == "darwin" and (given := context.environment.get("TMPDIR")):
        return Path(given)
    return Path("/tmp")  # noqa: S108 - it is Java's default, not a file of ours


def _scratch(context: CheckContext, folder: Path, source: str) -> CheckResult:
    there = _nearest(folder)
    if not os.access(there, os.W_OK | os.X_OK):
        why = "Spark cannot make its folders there"
        found = f"`{folder}` ({source}) cannot be written to"
        return CheckResult("scratch-space", CheckStatus.PROBLEM, found, why, make_writable(folder))
    free = shutil.disk_usage(there).free
    mount = mount_of(there, context.host.proc)
    return judge_scratch(folder, source, free, mount.kind if mount else "")


def judge_scratch(folder: Path, source: str, free: int, kind: str) -> CheckResult:
    """Return the finding for a scratch folder with `free` bytes on a file system of this kind."""
    in_memory = kind in _IN_MEMORY
    found = f"{format_size(free)} free in `{folder}` ({source}{', in memory' if in_memory else ''})"
    elsewhere = "export SPARK_LOCAL_DIRS=/path/on/a/larger/disk"
    if free < TOO_LITTLE:
        why = "Spark's own files may fill it"
        return CheckResult("scratch-space", CheckStatus.PROBLEM, found, why, elsewhere)
    if in_memory:
        why = f"it is a {kind}: what Spark spools there takes the memory it was meant to save"
        return CheckResult("scratch-space", CheckStatus.WARNING, found, why, elsewhere)
    if free < LITTLE:
        why = f"a large table may need more; {format_size(LITTLE)} is a sane least"
        return CheckResult("scratch-space", CheckStatus.WARNING, found, why, elsewhere)
    return CheckResult("scratch-space", CheckStatus.OK, found)


def own_folders(context: CheckContext) -> Iterator[CheckResult]:
    """Look at lakeload's cache and run folders."""
    cache = context.host.cache
    if "," in str(cache):
        command = export("LAKELOAD_CACHE_DIR", "/path/without/a/comma")
        why = "Spark parts the names of its files at commas"
        yield CheckResult(
            "cache-folder", CheckStatus.PROBLEM, f"`{cache}` has a comma", why, command
        )
    else:
        yield _own("cache-folder", cache, "LAKELOAD_CACHE_DIR", context)
    yield _own("run-folder", context.host.runs, "LAKELOAD_RUN_DIR", context)


def _own(name: str, folder: Path, variable: str, context: CheckContext) -> CheckResult:
    source = variable if context.environment.get(variable) else f"the default; {variable} overrides"
    there = _nearest(folder)
    command = export(variable, "/path/that/can/be/written/to")
    if not there.is_dir():
        found = f"`{there}` is no folder ({source})"
        return CheckResult(name, CheckStatus.PROBLEM, found, f"`{folder}` cannot be made", command)
    if not os.access(there, os.W_OK | os.X_OK):
        found = f"`{there}` cannot be written to ({source})"
        return CheckResult(name, CheckStatus.PROBLEM, found, f"`{folder}` is needed", command)
    free = shutil.disk_usage(there).free
    found = f"`{folder}` can be written to, {format_size(free)} free"
    if free < TOO_LITTLE:
        why = "jars and logs may fill it"
        return CheckResult(name, CheckStatus.WARNING, found, why, command)
    return CheckResult(name, CheckStatus.OK, found)


def temporary(context: CheckContext) -> Iterator[CheckResult]:
    """Tell whether Java may run the native libraries it unpacks into its temporary folder."""
    folder = java_temporary(context)
    mount = mount_of(_nearest(folder), context.host.proc)
    if mount is None or "noexec" not in mount.options:
        return
    own = context.host.cache / "tmp"
    why = "Java unpacks its compression libraries (snappy, zstd) there and cannot run them"
    quoted = shlex.quote(str(own))
    command = f"mkdir -p {quoted} && {export('JAVA_TOOL_OPTIONS', f'-Djava.io.tmpdir={own}')}"
    found = f"`{folder}` is mounted with noexec"
    yield CheckResult("temporary-folder", CheckStatus.WARNING, found, why, command)


def mount_of(folder: Path, proc: Path) -> Mount | None:
    """Return the mount that `folder` is on, None where there is no /proc/mounts."""
    try:
        lines = (proc / "mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    path, best = folder.resolve(), None
    for line in lines:
        _, place, kind, options, *_ = line.split(" ")
        # A blank in a path is written as \040.
        where = Path(place.replace("\\040", " "))
        # Of two mounts on one place, the later one is seen.
        if path.is_relative_to(where) and (
            best is None or len(where.parts) >= len(best.place.parts)
        ):
            best = Mount(where, kind, frozenset(options.split(",")))
    return best


def _nearest(folder: Path) -> Path:
    """The folder itself, or the nearest above it that exists."""
    for path in (folder, *folder.parents):
        if path.exists():
            return path
    return Path("/")
