"""What a runtime is: the masters it accepts, its Spark properties, what the job is told of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakeload_jobs.contract.spec import RuntimeSpec


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

    def accepts(self, master: str) -> bool:
        """Tell whether `master` is one of this runtime's."""
        return self.masters.fullmatch(master) is not None

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

    def arguments(self, master: str) -> tuple[str, ...]:
        """Return the arguments that make spark-submit start the job at `master`."""
        return ("--master", master, "--deploy-mode", "client")


def _joined(between: str, ours: list[str], conf: Mapping[str, str], name: str) -> str:
    """Put what the user gives under `name` behind ours."""
    return between.join([*ours, *filter(None, [conf.get(name, "").strip()])])
