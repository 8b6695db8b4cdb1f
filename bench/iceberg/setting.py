"""What all runs of the Iceberg benchmark share, and how one is started and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.data import DataSet
from bench.lake import Lake
from bench.measure import Limits, Measurement, measure

SCHEMA = "bench"
"""The Glue database of every table but dlt's, which wants one for itself."""


class BenchFailed(RuntimeError):
    """A contestant failed, or a table does not hold what it must."""


@dataclass(frozen=True)
class Setting:
    """What all runs share. `runs` are the rounds of lakeload and Spark, `peer_runs` of the rest."""

    lake: Lake
    data: DataSet
    scratch: Path
    jars: tuple[Path, ...]
    heap: str
    cores: int
    changes: int
    runs: int
    peer_runs: int
    limits: Limits

    @property
    def inserted(self) -> int:
        """How many changes of a round are new rows; the others update rows there are."""
        return self.changes - self.updated

    @property
    def updated(self) -> int:
        """How many changes of a round update rows that are there."""
        return self.changes * 4 // 5

    def changed(self, number: int) -> Path:
        """The folder of one round's changes."""
        return self.scratch / "changes" / str(number)

    def run(self, command: Sequence[str], environment: dict[str, str], name: str) -> Measurement:
        """Run a command to its end. Raises `BenchFailed` when it does not end with 0."""
        cost, said = self.try_to_run(command, environment, name, None)
        if cost.status != 0:
            raise BenchFailed(f"{name} ended with {cost.status}:\n{said}")
        return cost

    def try_to_run(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        name: str,
        limits: Limits | None,
    ) -> tuple[Measurement, str]:
        """Run a command to its end, or to a limit; return what it cost and its last words.

        The cost is printed. Whether the command did well is for the caller to see.
        """
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        log = folder / "output.log"
        cost = measure(
            list(command), environment=environment, folder=folder, log=log, limits=limits
        )
        figures = f"{cost.cpu:8.1f} s CPU {cost.wall:8.1f} s wall {cost.peak / 2**20:8,.0f} MiB"
        ending = f"  stopped at {cost.stopped}" if cost.stopped else ""
        print(f"{name:24}{figures}{ending}", flush=True)
        return cost, "\n".join(log.read_text(errors="replace").splitlines()[-30:])


@dataclass(frozen=True)
class Run:
    """One run of a contestant. `why` is empty when it finished, else says why it did not."""

    what: str
    name: str
    number: int
    cost: Measurement
    why: str = ""
