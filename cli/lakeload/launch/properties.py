"""Properties of a Spark application, and options of its JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakeload.documents.spark import conf_finding
from lakeload.launch.run_folder import RunFolder
from lakeload.runtimes import JAVA_VARIABLES, Runtime, java_temporary, runtime_of
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec

SMALL_INPUT = 64 << 20
"""Bytes of rows in the JVM below which it ends before its second compiler has earned its keep."""
FEW_CORES = 2
LATER = 4
"""How many times later than by itself Java compiles with the second compiler."""
_TIER4 = {
    "Tier4InvocationThreshold": 5_000,
    "Tier4MinInvocationThreshold": 600,
    "Tier4CompileThreshold": 15_000,
    "Tier4BackEdgeThreshold": 40_000,
}
"""Java's own numbers of calls and rounds of loops, in 17 to 25."""
CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
"""What Java reserves with both compilers: with the quick one alone it is 48 MB, which many small
tables fill."""

SMALL_HEAP = (
    "-Xms64m -XX:MaxNewSize=96m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=30"
    " -XX:MetaspaceSize=192m"
)
"""A heap that grows little by little. Classes need some 150 MB: with Java's own threshold they
cause four full collections at the start."""

WORKER_DAEMON = "lakeload_jobs.entry.worker_daemon"
"""The module that Spark forks its Python workers from."""

FEW_KEPT = {
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "10",
}
"""What Spark keeps in memory of what has ended, for a UI that is off: by itself 1,000 of each and
100,000 tasks, which one driver reaches over its rounds. `Progress` reads jobs and stages twice in a
second."""

_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
_HEAP = re.compile(
    r"-Xm[sn]\d|-XX:((Initial|Min|Max)HeapSize|(Max)?New(Size|Ratio)|InitialRAMPercentage"
    r"|M(in|ax)HeapFreeRatio|MetaspaceSize)="
)
_CLASS_DATA = re.compile(
    r"-Xshare|-XX:(SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile)|-javaagent|-agent"
    r"|--patch-module|--upgrade-module-path|-Xbootclasspath"
)
_COMPILER = re.compile(r"-XX:(TieredStopAtLevel=|[+-]TieredCompilation\b|Tier4\w+=)|-Xint\b")


def inherited_options(environment: Mapping[str, str]) -> str:
    """Return the options that the driver's JVM takes from variables, beside those it is given."""
    return " ".join(environment[name] for name in JAVA_VARIABLES if environment.get(name))


def collector(cores: int | None, users: str) -> str:
    """Return the option for the garbage collector, '' where the user's options name one.

    `cores` is how many tasks run in this JVM at once, None where none does.
    """
    if _COLLECTOR.search(users):
        return ""  # Java refuses to start with two
    return "-XX:+UseSerialGC" if cores is not None and cores <= FEW_CORES else "-XX:+UseParallelGC"


def compiler(jvm_bytes: int | None, users: str) -> str:
    """Return the options for the compilers, '' where the user's options choose.

    `jvm_bytes` is the input whose rows pass through the JVM, None where that is not known.
    """
    if _COMPILER.search(users):
        return ""
    if jvm_bytes is None or jvm_bytes > SMALL_INPUT:
        return " ".join(f"-XX:{name}={own * LATER}" for name, own in _TIER4.items())
    quick = "-XX:TieredStopAtLevel=1"
    return quick if "-XX:ReservedCodeCacheSize=" in users else f"{quick} {CODE_CACHE}"


def heap(jvm_bytes: int | None, users: str) -> str:
    """Return the options for the heap of a JVM without rows, '' where the user's options choose:
    Java takes a 64th of the machine's memory at its start and fills it before it collects, and
    keeps much of it free later."""
    return "" if jvm_bytes != 0 or _HEAP.search(users) else SMALL_HEAP


def class_data(archive: Path | None, users: str) -> str:
    """Return the options for an AppCDS archive, '' where the user's would not go with it.

    `-Xshare:auto` starts Java without the archive when it does not fit, and the logging is off
    because Java would say so on the job's output.
    """
    if archive is None or ":" in str(archive) or _CLASS_DATA.search(users):
        return ""
    option = f"-XX:SharedArchiveFile={archive}"
    return f"-Xshare:auto {_quoted(option)} -Xlog:cds*=off -Xlog:class+path=off"


def _quoted(option: str) -> str:
    """Return an option as Spark parts them: at blanks outside of quotes."""
    return f'"{option}"' if re.search(r"\s", option) else option


def takes_class_data(settings: SparkSettings, environment: Mapping[str, str]) -> bool:
    """Return whether a driver with these settings would use an AppCDS archive that fits."""
    if not settings.runtime.traits.tasks_share_driver:
        return False
    if settings.conf.get("spark.driver.extraClassPath", "").strip():
        return False
    users = settings.conf.get("spark.driver.extraJavaOptions", "")
    return bool(class_data(Path("archive.jsa"), f"{inherited_options(environment)} {users}"))


def executor_options(destination: DestinationSpec) -> tuple[str, ...]:
    """Return the options without which executors in JVMs of their own would ask AWS's own
    endpoints for the role's credentials: Iceberg's clients know no setting for them."""
    sts = destination.endpoints.sts
    region = f"-Daws.region={destination.region}"
    return (region, *((f"-Daws.endpointUrlSts={sts}",) if sts else ()))


REDACTION = (
    r"(?i)secret|password|passwd|token|credential|access[._-]?key|api[._-]?key"
    r"|external[._-]?id|authorization|\.header\.|://[^/@\s]+:[^/@\s]+@"
)
"""Matched on names and values. Only a net: no secret is in a property."""


@dataclass(frozen=True)
class SparkSettings:
    """How Spark runs: the master, the driver's heap such as `4096m`, further properties, jars."""

    master: str
    memory: str
    conf: Mapping[str, str]
    """The document's `spark.conf` with `--conf` over it."""
    jars: tuple[Path, ...] = ()
    """The jars that Spark does not include and this load needs."""
    format_jars: bool = True
    """Those of the table format are among them, if it has any."""
    archive: Path | None = None
    """The AppCDS archive for exactly this class path of the driver; None where there is none."""

    @property
    def runtime(self) -> Runtime:
        """Where the master says that Spark runs."""
        return runtime_of(self.master)


@dataclass(frozen=True)
class LaunchRequest:
    """What the properties of one launch are made of."""

    settings: SparkSettings
    folder: RunFolder
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment variables of the driver, and of executors on this machine."""
    cores: int = 1
    """The cores of this machine."""
    jvm_bytes: int | None = None
    """The bytes of input that Spark's JVM reads; 0 where Python workers read all of it (`Splits`),
    None where that is not known."""
    session_settings: Mapping[str, str] = field(default_factory=dict)
    """Static Spark settings that the table format needs, such as catalogs and extensions."""
    executor_options: tuple[str, ...] = ()
    """Further JVM options of executors."""
    scratch: tuple[Path, ...] = ()
    """The folders of this run alone for what Spark, Java and Python keep for a while."""
    user: str = ""
    """A name for this process's user, where the system has none."""


def spark_properties(request: LaunchRequest) -> dict[str, str]:
    """Return the properties of a launch, sorted by name.

    Raises `InvalidInput` for a key that lakeload decides, or that looks like a secret.
    """
    settings = request.settings
    check_conf(settings.conf)
    properties = {
        "spark.driver.memory": settings.memory,
        "spark.redaction.regex": REDACTION,
        "spark.scheduler.mode": "FAIR",
        "spark.speculation": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        # Spark makes this folder whether or not a table is ever kept in it.
        "spark.sql.warehouse.dir": (request.folder.path / "warehouse").as_uri(),
        "spark.submit.deployMode": "client",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    properties.update(request.session_settings)
    if settings.runtime.traits.tasks_share_driver:
        # Elsewhere no Python that starts has the package yet.
        properties["spark.python.daemon.module"] = WORKER_DAEMON
    properties.update(settings.conf)
    if properties["spark.ui.enabled"].strip().lower() == "false":
        properties = {**FEW_KEPT, **properties}
    if request.scratch:
        properties["spark.local.dir"] = ",".join(map(str, request.scratch))
    properties.update(settings.runtime.properties(settings.jars, settings.conf))
    for role, text in _java_options(request).items():
        properties[f"spark.{role}.extraJavaOptions"] = text
    return dict(sorted(properties.items()))


def check_conf(conf: Mapping[str, str]) -> None:
    """Raise `InvalidInput` for the first `--conf` that a document could not set either."""
    for name, value in conf.items():
        if finding := conf_finding(name, value):
            raise InvalidInput(f"`--conf`: {finding.message}", hint=finding.hint)
        if re.search(r"[\s=:]", name):
            raise InvalidInput(
                f"`--conf`: `{name}` is not the name of a property",
                hint="write --conf spark.some.name=value",
            )


def parse_conf(assignments: tuple[str, ...]) -> dict[str, str]:
    """Read `--conf spark.key=value` options. Raises `InvalidInput` for one without `=`."""
    parsed = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidInput(
                f"`--conf {assignment}` has no value", hint="write --conf spark.some.name=value"
            )
        parsed[key.strip()] = value
    return parsed


def render(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file; backslashes and line ends are escaped."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in properties.items())


def _java_options(request: LaunchRequest) -> dict[str, str]:
    """Return the options of both JVMs; Java takes the last of two that contradict each other,
    which is the user's. Those of variables come before ours, so ours give way to them here."""
    settings, runtime = request.settings, request.settings.runtime
    users = {
        role: settings.conf.get(f"spark.{role}.extraJavaOptions", "").strip()
        for role in ("driver", "executor")
    }
    shared = runtime.traits.tasks_share_driver
    archive = settings.archive if takes_class_data(settings, request.environment) else None
    inherited = inherited_options(request.environment)
    in_driver = runtime.task_slots(settings.master, request.cores)
    all_of_driver = f"{inherited} {users['driver']}"
    # Java and its compression libraries unpack code into this folder.
    ours = request.scratch and not java_temporary(request.environment, settings.conf)
    temporary = _quoted(f"-Djava.io.tmpdir={request.scratch[0]}") if ours else ""
    all_of_executor = f"{inherited if shared else ''} {users['executor']}"
    driver = [
        collector(in_driver, all_of_driver),
        compiler(request.jvm_bytes, all_of_driver) if in_driver else "",
        heap(request.jvm_bytes, all_of_driver) if in_driver else "",
        class_data(archive, all_of_driver),
        temporary,
        *_user(request),
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={request.folder.log_settings.as_uri()}",
        users["driver"],
    ]
    executor = [
        collector(None, all_of_executor),
        "-Duser.timezone=UTC",
        temporary if shared else "",
        *request.executor_options,
        users["executor"],
    ]
    return {
        "driver": " ".join(filter(None, driver)),
        "executor": " ".join(filter(None, executor)),
    }


def _user(request: LaunchRequest) -> Iterator[str]:
    """Return the options without which Java takes a user without a name for `?`."""
    if request.user:
        home = request.environment.get("HOME") or (request.scratch or (request.folder.path,))[0]
        yield f"-Duser.name={request.user}"
        yield _quoted(f"-Duser.home={home}")


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    # A leading blank would be taken for the one after the equals sign.
    return f"\\{escaped}" if escaped[:1] in (" ", "\t", "\f") else escaped
