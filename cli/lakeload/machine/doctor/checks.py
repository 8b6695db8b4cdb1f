"""The checks of `doctor`: Java, Python, Spark, jars, memory, disk and the operating system."""

from __future__ import annotations

import os
import platform
import re
import resource
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakeload.checks import CheckStatus
from lakeload.machine.appcds import ArchiveState
from lakeload.machine.cache_state import cache_state
from lakeload.machine.doctor.access import (
    clock,
    credentials,
    java_variables,
    proxies,
    secrets,
    silent_endpoint,
    variables,
)
from lakeload.machine.doctor.model import (
    Check,
    CheckContext,
    CheckResult,
    Host,
    Need,
    described,
    export,
    make_writable,
    ok,
    problem,
    warning,
)
from lakeload.machine.jars.pins import JARS, JarState
from lakeload.machine.java import Java, find_java, read_java
from lakeload.machine.memory import MIB, Group, available_memory, driver_memory, groups_of
from lakeload.machine.spark import SUPPORTED, find_spark, pyspark_home, read_version
from lakeload.runtimes import java_temporary, runtime_of, scratch_places, temporary_place
from lakeload_jobs.contract.errors import LakeloadError, MachineNotReady
from lakeload_jobs.core.os_user import stand_in_name
from lakeload_jobs.core.sizes import format_size, parse_jvm_memory

NEEDED_MODULES = (
    "java.desktop",
    "java.logging",
    "java.management",
    "java.naming",
    "java.security.jgss",
    "java.sql",
    "java.xml",
    "jdk.security.auth",
    "jdk.unsupported",
)
"""What Spark and Hadoop load from beside java.base; runtimes made with jlink may leave them out."""


def java(context: CheckContext) -> Iterator[CheckResult]:
    """Find the Java that `sync` would run; say what is wrong with JAVA_HOME where it is set."""
    host = context.host
    install = host.install("java")
    try:
        used = find_java(host.environment, host.java_places)
    except MachineNotReady as lacks:
        yield problem("java", lacks.message, _why(lacks.message), install)
        yield from _java_home(context, None)
        return
    found = f"Java {used.version} ({used.vendor}) in `{used.home}`, {_origin(context, used)}"
    if missing := missing_modules(used.home):
        why = f"this runtime is missing {_listed(missing)}, which Spark needs"
        yield problem("java", found, why, install)
    else:
        yield ok("java", found)
    yield from _java_home(context, used)


def extras(context: CheckContext) -> Iterator[CheckResult]:
    """Look whether the extras that settings of the document need are installed."""
    for extra in context.need.extras:
        if extra.is_installed:
            yield ok("extras", f"`lakeload[{extra.name}]` is installed, for `{extra.setting}`")
        else:
            found = f"`lakeload[{extra.name}]` is not installed"
            yield problem("extras", found, f"`{extra.setting}` needs {extra.about}", extra.command)


def missing_modules(home: Path) -> tuple[str, ...]:
    """Return which needed modules the runtime's `release` file does not list; () without a list."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    listed = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    if listed is None:
        return ()
    there = set(listed[1].split())
    return tuple(module for module in NEEDED_MODULES if module not in there)


def _java_home(context: CheckContext, used: Java | None) -> Iterator[CheckResult]:
    """JAVA_HOME that is set and not what runs; lakeload passes it over, other programs do not."""
    value = context.environment.get("JAVA_HOME")
    if not value or (used is not None and used.home == Path(value)):
        return
    there = read_java(Path(value))
    if there is not None:
        found = f"JAVA_HOME is `{value}` with Java {there.version}"
        why = "Spark 4.1 needs Java 17 or newer, and older than 24"
    elif not Path(value).exists():
        found, why = f"JAVA_HOME is `{value}`, which does not exist", ""
    else:
        found = f"JAVA_HOME is `{value}`, which has no Java"
        why = "it has to be the folder above `bin/java`"
    if used is None:
        yield warning("java-home", found, why, "unset JAVA_HOME")
        return
    instead = f"lakeload uses Java {used.version} instead; other programs may fail"
    told = f"{why}; {instead}" if why else instead
    yield warning("java-home", found, told, export("JAVA_HOME", used.home))


def _origin(context: CheckContext, used: Java) -> str:
    configured = context.environment.get("JAVA_HOME")
    if configured and Path(configured) == used.home:
        return "from JAVA_HOME"
    on_path = shutil.which("java", path=context.environment.get("PATH", ""))
    if on_path and Path(on_path).resolve().parent.parent == used.home:
        return "from PATH"
    return "from a standard location"


def _why(message: str) -> str:
    if "only Java" not in message:
        return "Spark runs on Java"
    return "Spark 4.1 needs Java 17 or newer, and its Hadoop cannot run on Java 24 or newer"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


OLDEST, TOO_NEW = (3, 11), (3, 15)
"""Supported are versions from the first up to, but not with, the second."""


def python_version(context: CheckContext) -> Iterator[CheckResult]:
    """Compare the Python that runs lakeload with the supported range."""
    yield judge(sys.version_info[:2], context)


def judge(version: tuple[int, int], context: CheckContext) -> CheckResult:
    """Return the finding for a version such as (3, 11)."""
    text = ".".join(map(str, version))
    system = f"{platform.system()} {platform.machine()}"
    found = f"Python {text} in `{sys.executable}`, on {system}"
    if version < OLDEST or version >= TOO_NEW:
        install = context.host.install("python")
        return described(
            "python-too-old" if version < OLDEST else "python-too-new", found=found, install=install
        )
    if context.host.platform == "win32":
        return described("windows", found=found)
    return ok("python", found)


def encoding(context: CheckContext) -> Iterator[CheckResult]:
    """Tell whether names of files that are not ASCII survive."""
    yield judge_encoding(sys.getfilesystemencoding(), context)


def judge_encoding(name: str, context: CheckContext) -> CheckResult:
    """Return the finding for the encoding of file names; Java goes by the locale's variables.

    Python makes UTF-8 of the C locale by itself (PEP 538, PEP 540); Java 17 does not, and then
    cannot open files whose names are not ASCII.
    """
    variables = context.environment
    setting = next((key for key in ("LC_ALL", "LC_CTYPE", "LANG") if variables.get(key)), None)
    value = variables[setting] if setting else ""
    told = f"`{setting}={value}`" if setting else "no locale is set"
    utf8 = value.lower().replace("-", "").partition(".")[2].startswith("utf8")
    if context.host.platform == "darwin" and name == "utf-8":
        return ok("encoding", "file names are UTF-8")
    if utf8 and name == "utf-8":
        return ok("encoding", f"UTF-8, from {told}")
    return described("encoding", told=told, setting=setting or "LC_ALL")


REINSTALL = f"{sys.executable} -m pip install --force-reinstall 'pyspark>=4.1,<4.2'"


def spark(context: CheckContext) -> Iterator[CheckResult]:
    """Find the installed pyspark, SPARK_HOME, and the spark-submit that would be started."""
    yield from judge_pyspark(pyspark_home(), context)
    yield from _other_submit(context)
    yield from _other_python(context)
    yield from _bash(context)


def judge_pyspark(installed: Path | None, context: CheckContext) -> Iterator[CheckResult]:
    """Compare pip's pyspark in `installed` and SPARK_HOME with the supported line of Spark."""
    version = read_version(installed) if installed else None
    chosen = context.environment.get("SPARK_HOME", "")
    # A Spark of the user's own does without pip's.
    weight = CheckStatus.WARNING if chosen else CheckStatus.FAILED
    if installed is None:
        yield CheckResult("pyspark", weight, "pyspark is not installed", _NEEDS, REINSTALL)
    elif version is None or not (installed / "bin" / "spark-submit").is_file():
        found = f"the pyspark in `{installed}` does not contain Spark"
        yield CheckResult("pyspark", weight, found, _NEEDS, REINSTALL)
    elif not version.startswith(f"{SUPPORTED}."):
        found = f"pyspark {version} in `{installed}`"
        yield CheckResult("pyspark", weight, found, _NEEDS, REINSTALL)
    else:
        yield ok("pyspark", f"pyspark {version} in `{installed}`")
    if chosen:
        yield _spark_home(context, Path(chosen), version)


_NEEDS = f"lakeload needs Spark {SUPPORTED}.x, which comes with pyspark >=4.1,<4.2"


def _spark_home(context: CheckContext, chosen: Path, version: str | None) -> CheckResult:
    try:
        used = find_spark(context.environment)
    except MachineNotReady as lacks:
        return described("spark-home-wrong", found=lacks.message)
    found = f"SPARK_HOME is `{chosen}` with Spark {used.version}: `sync` runs this one"
    if version is not None and used.version != version:
        return described("spark-home-differs", found=found, version=version)
    return ok("spark-home", found)


def _other_submit(context: CheckContext) -> Iterator[CheckResult]:
    try:
        used = find_spark(context.environment)
    except MachineNotReady:
        return
    if used.submit.is_file() and not os.access(used.submit, os.X_OK):
        yield described("submit-not-executable", submit=str(used.submit))
        return
    found = f"`{used.submit}`"
    on_path = shutil.which("spark-submit", path=context.environment.get("PATH", ""))
    if on_path and not _starts(Path(on_path), used.submit):
        found += f"; the `{on_path}` of PATH is not used"
    yield ok("spark-submit", found)


def _starts(script: Path, submit: Path) -> bool:
    """Whether a script is that spark-submit, or pip's copy of it, which leads to the same Spark."""
    return script.resolve() == submit.resolve() or script.parent == Path(sys.executable).parent


def _other_python(context: CheckContext) -> Iterator[CheckResult]:
    """PYSPARK_PYTHON: without effect here, because driver and tasks need lakeload's packages."""
    named = {
        name: value
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
        if (value := context.environment.get(name)) and not _same_python(value, context)
    }
    if named:
        told = ", ".join(f"{name} is `{value}`" for name, value in named.items())
        names = " ".join(named)
        yield described("other-python", told=told, names=names, python=sys.executable)


def _same_python(value: str, context: CheckContext) -> bool:
    path = shutil.which(value, path=context.environment.get("PATH", ""))
    # Links lead out of a virtual environment to the Python it was made from: paths are compared.
    return path is not None and Path(path).absolute() == Path(sys.executable).absolute()


def _bash(context: CheckContext) -> Iterator[CheckResult]:
    if shutil.which("bash", path=context.environment.get("PATH", os.defpath)) is None:
        command = context.host.install("bash")
        if Path("/bin/bash").is_file():
            command = 'export PATH="$PATH:/usr/bin:/bin"'
        yield described("no-bash", command=command)


def jars(context: CheckContext) -> Iterator[CheckResult]:
    """Compare the files of the cache with what is pinned, and the archives with this machine."""
    state = cache_state(context.host.cache, context.environment, context.need.features)
    yield judge_jars(state.jars, context)
    if state.unknown is None:
        # Without a Java or a Spark there is nothing an archive could be for.
        yield judge_archives(state.archives, context.need)


def judge_jars(states: Sequence[JarState], context: CheckContext) -> CheckResult:
    """Return the finding for the states of the jars that are needed."""
    place = f"`{context.host.cache / JARS}`"
    if not states:
        return ok("jars", "none are needed beside Spark's own")
    if broken := [state for state in states if state.state == "broken"]:
        names = ", ".join(f"`{state.jar.file_name}`" for state in broken[:3])
        more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
        fetch = _fetch(context.need)
        return described("jars-broken", place=place, names=names + more, fetch=fetch)
    if missing := [state.jar for state in states if state.state == "missing"]:
        size = format_size(sum(jar.size for jar in missing))
        found = f"{len(missing)} of {len(states)} are not in {place} yet ({size})"
        why = "the first load that needs them downloads them"
        # Without a document nobody knows yet whether they will be needed.
        status = CheckStatus.WARNING if context.need.destination is not None else CheckStatus.PASSED
        return CheckResult("jars", status, found, why, _fetch(context.need))
    sets = ", ".join(context.need.features)
    found = f"all {len(states)} ({sets}) are in {place}, checksums right"
    return ok("jars", found)


def judge_archives(states: Sequence[ArchiveState], need: Need) -> CheckResult:
    """Return the finding for the archives that loads of this kind could use. None is needed."""
    wanted = set(need.features)
    near = [
        state
        for state in states
        if need.destination is None or set(state.archive.features) == wanted
    ]
    for state in near:
        if state.state == "usable":
            size = format_size(state.archive.size)
            return ok("class-data", f"an archive of {size} makes Spark start faster")
    slower = "Spark starts some seconds slower"
    if near:
        found = f"the archive is {near[0].state}" + (f": {near[0].why}" if near[0].why else "")
        return warning("class-data", found, slower, _fetch(need))
    found = "there is no archive for loads like this one" if need.destination else "no archive"
    return CheckResult("class-data", CheckStatus.PASSED, found, slower, _fetch(need))


def _fetch(need: Need) -> str:
    return need.command("jars fetch")


FILES = 1024
"""What Linux grants by default; macOS grants 256, and Spark's class path alone has more."""


def open_files(context: CheckContext) -> Iterator[CheckResult]:
    """Look at how many files a process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield judge_open_files(soft, hard)


def judge_open_files(soft: int, hard: int) -> CheckResult:
    """Return the finding for the two limits of open files; RLIM_INFINITY is none."""
    if soft == resource.RLIM_INFINITY or soft >= FILES:
        shown = "any number of" if soft == resource.RLIM_INFINITY else f"{soft:,}"
        return ok("open-files", f"a process may open {shown} files")
    reachable = hard == resource.RLIM_INFINITY or hard >= 4 * FILES
    least = 4 * FILES if reachable else hard
    command = f"ulimit -n {least}" if least >= FILES else "sudo prlimit --pid $$ --nofile=4096:4096"
    return described("open-files", soft=f"{soft:,}", least=f"{FILES:,}", command=command)


def user_name(context: CheckContext) -> Iterator[CheckResult]:
    """Tell whether this user has a name; Java, and Hadoop in it, ask for it."""
    yield judge_user_name(stand_in_name(), context)


def judge_user_name(stand_in: str, context: CheckContext) -> CheckResult:
    """Return the finding for a user whose name has to be made up, '' where it need not be."""
    if not stand_in:
        return ok("user-name", "the user of this process has a name")
    if runtime_of(context.need.master).starts_without_user_name:
        return ok("user-name", f"the user of this process has none: Spark runs as `{stand_in}`")
    return described("user-name", user=stand_in, master=context.need.master)


def host_name(context: CheckContext) -> Iterator[CheckResult]:
    """Tell whether this machine's name resolves; Spark asks for it when it starts."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        yield judge_host_name(name, context, resolves=False)
    else:
        yield judge_host_name(name, context, resolves=True)


def judge_host_name(name: str, context: CheckContext, *, resolves: bool) -> CheckResult:
    """Return the finding for this machine's name.

    Where lakeload gives Spark the loopback address, the name is not needed.
    """
    if resolves:
        return ok("host-name", f"the host name `{name}` resolves")
    loopback = "spark.driver.host" in runtime_of(context.need.master).properties((), {})
    return described("host-name-local" if loopback else "host-name", host=name)


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
        return problem("memory", has, error.message, error.hint or "")
    source = "as the pipeline says" if configured else "by default"
    found = f"{has}; the driver takes {heap} {source}"
    if available - parse_jvm_memory(heap) < PYTHON_SHARE:
        smaller = max(available // 2, 512 * MIB) // MIB
        return described("memory-tight", found=found, smaller=str(smaller))
    return ok("memory", found)


def processors(context: CheckContext) -> Iterator[CheckResult]:
    """Compare the processors Spark would use with what the container may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    yield judge_processors(usable or os.cpu_count() or 1, cpu_quota(context.host))


def judge_processors(usable: int, quota: float | None) -> CheckResult:
    """Return the finding for `usable` processors and a quota in processors, None without one."""
    count = f"{usable} processor{'s' if usable != 1 else ''}"
    if quota is None or quota >= usable:
        return ok("processors", count)
    found = f"{count}, of which a cgroup allows the time of {quota:g}"
    if quota >= 1:
        # Java counts the quota itself, rounded up.
        return ok("processors", found)
    return described("processors-few", found=found)


def cpu_quota(host: Host) -> float | None:
    """Return how many processors' time the cgroup (v1 or v2) allows, None without a limit."""
    quotas = [_quota(group) for group in groups_of("cpu", host.cgroups, host.proc)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(group: Group) -> float | None:
    """`max` or `-1` is no limit."""
    names = ("cpu.max",) if group.unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    try:
        texts = [(group.folder / name).read_text(encoding="ascii") for name in names]
    except OSError:
        return None
    numbers = [int(word) for word in " ".join(texts).split() if word.isdecimal()]
    return numbers[0] / numbers[1] if len(numbers) == 2 and numbers[1] else None


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
    for folder, source in scratch_places(context.environment, context.need.conf):
        yield _scratch(context, folder, source)


def _scratch(context: CheckContext, folder: Path, source: str) -> CheckResult:
    there = _nearest(folder)
    if not os.access(there, os.W_OK | os.X_OK):
        command = make_writable(folder)
        return described("scratch-unwritable", folder=str(folder), source=source, command=command)
    free = shutil.disk_usage(there).free
    mount = mount_of(there, context.host.proc)
    return judge_scratch(folder, source, free, mount.kind if mount else "")


def judge_scratch(folder: Path, source: str, free: int, kind: str) -> CheckResult:
    """Return the finding for a scratch folder with `free` bytes on a file system of this kind."""
    in_memory = kind in _IN_MEMORY
    found = f"{format_size(free)} free in `{folder}` ({source}{', in memory' if in_memory else ''})"
    if free < TOO_LITTLE:
        return described("scratch-full", found=found)
    if in_memory:
        return described("scratch-in-memory", found=found, kind=kind)
    if free < LITTLE:
        return described("scratch-small", found=found, least=format_size(LITTLE))
    return ok("scratch-space", found)


def own_folders(context: CheckContext) -> Iterator[CheckResult]:
    """Look at lakeload's cache and run folders."""
    cache = context.host.cache
    if "," in str(cache):
        yield described("cache-with-comma", folder=str(cache))
    else:
        yield _own("cache-folder", cache, "LAKELOAD_CACHE_DIR", context)
    yield _own("run-folder", context.host.runs, "LAKELOAD_RUN_DIR", context)


def _own(name: str, folder: Path, variable: str, context: CheckContext) -> CheckResult:
    source = variable if context.environment.get(variable) else f"the default; {variable} overrides"
    there = _nearest(folder)
    possible = there.is_dir()
    if not possible or not os.access(there, os.W_OK | os.X_OK):
        return described(
            "folder-unwritable" if possible else "folder-impossible",
            name=name,
            there=str(there),
            source=source,
            folder=str(folder),
            variable=variable,
        )
    free = shutil.disk_usage(there).free
    found = f"`{folder}` can be written to, {format_size(free)} free"
    if free < TOO_LITTLE:
        return described("folder-full", name=name, found=found, variable=variable)
    return ok(name, found)


def temporary(context: CheckContext) -> Iterator[CheckResult]:
    """Tell whether Java may run the native libraries it unpacks into its temporary folder."""
    folder, _ = temporary_place(context.environment, context.need.conf)
    mount = mount_of(_nearest(folder), context.host.proc)
    if mount is None or "noexec" not in mount.options:
        return
    own = str(context.host.cache / "tmp")
    if java_temporary(context.environment, context.need.conf):
        option = export("JAVA_TOOL_OPTIONS", f"-Djava.io.tmpdir={own}")
    else:
        option = export("TMPDIR", own)
    yield described("temporary-noexec", folder=str(folder), own=shlex.quote(own), export=option)


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


CHECKS = (
    Check("python", python_version),
    Check("java", java),
    Check("pyspark", spark),
    Check("jars", jars),
    Check("memory", memory),
    Check("processors", processors),
    Check("scratch-space", scratch),
    Check("temporary-folder", temporary),
    Check("own-folders", own_folders),
    Check("open-files", open_files),
    Check("encoding", encoding),
    Check("host-name", host_name),
    Check("user-name", user_name),
    Check("variables", variables),
    Check("proxies", proxies),
    Check("clock", clock, silence=silent_endpoint),
    Check("secrets", secrets),
    Check("extras", extras),
    Check("credentials", credentials),
)
"""All there is, in the order in which it is shown."""
_BEFORE_START = (
    *("python", "java", "pyspark", "memory", "scratch-space", "temporary-folder", "own-folders"),
    *("open-files", "encoding", "host-name", "user-name"),
)
START_CHECKS = (
    *(check for check in CHECKS if check.name in _BEFORE_START),
    Check("variables", java_variables),
)
"""Those of what Spark needs to start, without the network."""
