"""Runtimes: where Spark runs, the masters it accepts and its properties there."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lakeload_jobs.contract.spec import RuntimeSpec

JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""The variables that options of the driver's JVM come from."""


@dataclass(frozen=True)
class Runtime:
    """A place where Spark runs. The driver is always here: spark-submit starts it, in client mode.

    A runtime that differs in more than these values overrides a method.
    """

    masters: re.Pattern[str]
    """Its masters, each in full."""
    beginning: str
    """How its masters begin; one that does and is no master of it is misspelt."""
    written: str
    """How its masters are written, for messages."""
    traits: RuntimeSpec
    starts_without_user_name: bool = False
    """Whether Spark starts as a user id without an entry in /etc/passwd."""

    def accepts(self, master: str) -> bool:
        """Tell whether `master` is one of this runtime's."""
        return self.masters.fullmatch(master) is not None

    def traits_of(self, master: str) -> RuntimeSpec:
        """Return the traits with this master."""
        return self.traits

    def task_slots(self, master: str, cores: int) -> int | None:
        """Return how many tasks run at once in the driver's JVM, None where no task does.

        `cores` are those of this machine.
        """
        return None

    def properties(self, jars: Sequence[Path], conf: Mapping[str, str]) -> dict[str, str]:
        """Return what Spark is told because it runs here; `conf` are the user's properties.

        The class path costs least (docs/decisions/0050), but names files: executors on other
        machines do not have them, and Spark sends them along.
        """
        if not jars:
            return {}
        if not self.traits.tasks_share_driver:
            return {"spark.jars": _joined(",", [jar.as_uri() for jar in jars], conf, "spark.jars")}
        names = [f"spark.{role}.extraClassPath" for role in ("driver", "executor")]
        return {name: _joined(":", [str(jar) for jar in jars], conf, name) for name in names}

    def start(self, submission: Submission, log: int) -> subprocess.Popen[bytes]:
        """Start a job in a session of its own; `log` takes what it writes. Raises `OSError`."""
        # The arguments are ours: no shell, no user text that could become an option.
        return subprocess.Popen(  # noqa: S603
            submission.argv,
            env=submission.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # What Spark and its Python workers spill are rows.
            umask=0o077,
        )


@dataclass(frozen=True)
class Submission:
    """The command that starts a job where `runtime` is. No secret is in the arguments."""

    runtime: Runtime
    argv: tuple[str, ...]
    environment: dict[str, str]
    scratch: tuple[Path, ...] = ()
    """The folders that Spark keeps its files in, made for this run and removed after it."""


def scratch_places(
    environment: Mapping[str, str], conf: Mapping[str, str]
) -> list[tuple[Path, str]]:
    """Return the folders in which Spark may keep its files, and what names them: Spark's settings,
    else the temporary folder."""
    named = [
        ("SPARK_LOCAL_DIRS", environment.get("SPARK_LOCAL_DIRS", "")),
        ("spark.local.dir", conf.get("spark.local.dir", "")),
    ]
    for source, value in named:
        if folders := [part.strip() for part in value.split(",") if part.strip()]:
            return [(Path(folder), source) for folder in folders]
    return [temporary_place(environment, conf)]


def temporary_place(environment: Mapping[str, str], conf: Mapping[str, str]) -> tuple[Path, str]:
    """Return the folder for temporary files, and what names it: an option of Java, else TMPDIR."""
    if option := java_temporary(environment, conf):
        return option, "Java's option -Djava.io.tmpdir"
    if variable := environment.get("TMPDIR"):
        return Path(variable), "TMPDIR"
    return Path("/tmp"), "the default; TMPDIR overrides"  # noqa: S108 - as Python and Java do


def java_temporary(environment: Mapping[str, str], conf: Mapping[str, str]) -> Path | None:
    """Return what the user's options of the driver's JVM name as Java's temporary folder."""
    options = [environment.get(name, "") for name in JAVA_VARIABLES]
    options.append(conf.get("spark.driver.extraJavaOptions", ""))
    for option in reversed(" ".join(options).split()):
        if option.startswith("-Djava.io.tmpdir="):
            return Path(option.partition("=")[2])
    return None


def _joined(between: str, ours: list[str], conf: Mapping[str, str], name: str) -> str:
    """Put what the user gives under `name` behind ours."""
    return between.join([*ours, *filter(None, [conf.get(name, "").strip()])])


class _Local(Runtime):
    """Tasks are threads of the driver."""

    def traits_of(self, master: str) -> RuntimeSpec:
        found = self.masters.fullmatch(master)
        failures = (found["failures"] if found else None) or "1"
        return replace(self.traits, tasks_retried=int(failures) > 1)

    def task_slots(self, master: str, cores: int) -> int | None:
        found = self.masters.fullmatch(master)
        slots = (found["slots"] if found else None) or "1"
        return cores if slots == "*" else int(slots)

    def properties(self, jars: Sequence[Path], conf: Mapping[str, str]) -> dict[str, str]:
        # Nobody else connects, and a host name that does not resolve then does no harm.
        ours = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        # Other users of this machine can: Spark draws a secret of its own.
        ours["spark.authenticate"] = "true"
        kept = {name: conf.get(name, value) for name, value in ours.items()}
        return kept | super().properties(jars, conf)


LOCAL = _Local(
    masters=re.compile(r"local(\[(?P<slots>\*|[1-9]\d*)(,\s*(?P<failures>[1-9]\d*))?\])?"),
    beginning="local",
    written="local[N]",
    traits=RuntimeSpec(tasks_share_driver=True),
    starts_without_user_name=True,
)


class _LocalCluster(Runtime):
    """Executors are processes of this machine."""

    def properties(self, jars: Sequence[Path], conf: Mapping[str, str]) -> dict[str, str]:
        found = {"spark.authenticate": conf.get("spark.authenticate", "true")}
        if found["spark.authenticate"] == "true":
            # Here Spark draws none. It hands it to executors in their environment.
            found["spark.authenticate.secret"] = secrets.token_hex(32)
        return found | super().properties(jars, conf)


LOCAL_CLUSTER = _LocalCluster(
    masters=re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"),
    beginning="local-cluster",
    written="local-cluster[…]",
    traits=RuntimeSpec(tasks_share_driver=True, tasks_retried=True),
)


STANDALONE = Runtime(
    masters=re.compile(r"spark://[^\s/:@]+:\d{1,5}(,[^\s/:@]+:\d{1,5})*"),
    beginning="spark:",
    written="spark://HOST:PORT",
    traits=RuntimeSpec(tasks_share_driver=False, tasks_retried=True),
)


RUNTIMES: tuple[Runtime, ...] = (
    LOCAL,
    LOCAL_CLUSTER,
    STANDALONE,
)


def find_runtime(master: str) -> Runtime | None:
    """Return the runtime that accepts `master`, None where none does."""
    return next((runtime for runtime in RUNTIMES if runtime.accepts(master)), None)


def runtime_of(master: str) -> Runtime:
    """Return the runtime of a master that was checked when it was read."""
    if found := find_runtime(master):
        return found
    raise ValueError(f"no runtime supports the master {master}")


def misspelt(master: str) -> bool:
    """Tell whether `master`, which no runtime accepts, begins as those of one do."""
    return any(master.startswith(runtime.beginning) for runtime in RUNTIMES)


def masters_written() -> str:
    """Return how masters are written, for messages."""
    *first, last = (f"`{runtime.written}`" for runtime in RUNTIMES)
    return f"{', '.join(first)} and {last}"
