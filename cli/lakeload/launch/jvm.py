"""Which collector, compiler and class data the driver gets (docs/decisions/0031, 0071). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lakeload_jobs.contract.spec import DestinationSpec

SMALL_INPUT = 64 << 20
"""Bytes of input below which a JVM ends before its second compiler has earned its keep."""
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

_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
_CLASS_DATA = re.compile(
    r"-Xshare|-XX:(SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile)|-javaagent|-agent"
    r"|--patch-module|--upgrade-module-path|-Xbootclasspath"
)
_COMPILER = re.compile(r"-XX:(TieredStopAtLevel=|[+-]TieredCompilation\b|Tier4\w+=)|-Xint\b")


def inherited_options(environment: Mapping[str, str]) -> str:
    """Return the options that the driver's JVM takes from variables, beside those it is given."""
    return " ".join(environment[name] for name in _VARIABLES if environment.get(name))


def collector(cores: int | None, users: str) -> str:
    """Return the option for the garbage collector, '' where the user's options name one.

    `cores` is how many tasks run in this JVM at once, None where none does.
    """
    if _COLLECTOR.search(users):
        return ""  # Java refuses to start with two
    return "-XX:+UseSerialGC" if cores is not None and cores <= FEW_CORES else "-XX:+UseParallelGC"


def compiler(input_bytes: int | None, users: str) -> str:
    """Return the options for the compilers, '' where the user's options choose.

    `input_bytes` is what the job reads, None where that is not known.
    """
    if _COMPILER.search(users):
        return ""
    if input_bytes is None or input_bytes > SMALL_INPUT:
        return " ".join(f"-XX:{name}={own * LATER}" for name, own in _TIER4.items())
    return "-XX:TieredStopAtLevel=1"


def class_data(archive: Path | None, users: str) -> str:
    """Return the options for a class-data archive, '' where the user's would not go with it.

    `-Xshare:auto` starts Java without the archive when it does not fit, and the logging is off
    because Java would say so on the job's output.
    """
    if archive is None or ":" in str(archive) or _CLASS_DATA.search(users):
        return ""
    option = f"-XX:SharedArchiveFile={archive}"
    quoted = f'"{option}"' if re.search(r"\s", option) else option
    return f"-Xshare:auto {quoted} -Xlog:cds*=off -Xlog:class+path=off"


def executor_options(destination: DestinationSpec) -> tuple[str, ...]:
    """Return the options without which executors in JVMs of their own would ask AWS's own
    endpoints for the role's credentials: Iceberg's clients know no setting for them."""
    sts = destination.endpoints.sts
    region = f"-Daws.region={destination.region}"
    return (region, *((f"-Daws.endpointUrlSts={sts}",) if sts else ()))
