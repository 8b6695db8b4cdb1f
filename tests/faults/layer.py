"""What the layers of whole syncs share: the command line, the environment, and the report."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.faults.findings import HEAD, Findings, line

_FOREIGN = ("AWS_", "LAKELOAD_", "SPARK_", "PYSPARK_")


@dataclass(frozen=True)
class Wanted:
    """What is to be run, and where. `only` are globs."""

    folder: Path
    seed: int
    only: Sequence[str]
    at_once: int

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self.only == ["*"]

    def includes(self, *names: str) -> bool:
        """Whether one of the names of a thing is wanted."""
        return any(fnmatchcase(name, glob) for glob in self.only for name in names)


@dataclass(frozen=True)
class Outcome:
    """What became of a case. `times`: how many faults of its class it counts for."""

    kind: str
    name: str
    times: int
    findings: Findings
    again: str = ""
    """The arguments that repeat it; blank for those that repeat the whole run."""


def run_layer(
    package: str,
    description: str | None,
    names: str,
    run: Callable[[Wanted], Iterable[Outcome]],
    arguments: Sequence[str] | None = None,
    parents: Sequence[argparse.ArgumentParser] = (),
) -> int:
    """Run what the arguments say and report it; 1 when anything was violated.

    `names` says what `--only` chooses from; the help also lists the options of `parents`. The
    folder is kept after a violation.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}", description=description, parents=parents
    )
    parser.add_argument("--seed", type=int, default=None, help="repeat the run of this seed")
    parser.add_argument("--only", metavar="GLOB", action="append", help=names)
    parser.add_argument("--at-once", type=int, default=2, help="syncs at once")
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    isolate()
    folder = Path(tempfile.mkdtemp(prefix="lakeload-faults-"))
    say(f"seed {seed}, folder {folder}")
    outcomes = list(run(Wanted(folder, seed, given.only or ["*"], given.at_once)))
    if not outcomes:
        shutil.rmtree(folder)
        parser.error(f"nothing was run: `--only` has none of the {names}")
    good = all(outcome.findings.good for outcome in outcomes)
    if good:
        shutil.rmtree(folder)
    for text in report(outcomes, f"python -m {package} --seed {seed}"):
        say(text)
    return 0 if good else 1


def report(outcomes: Sequence[Outcome], command: str) -> list[str]:
    """Return the lines of the table, of what was violated, and of what to run again."""
    lines = ["", HEAD]
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.kind == kind]
        times = sum(outcome.times for outcome in own)
        lines.append(line(kind, times, (outcome.findings for outcome in own)))
    violated = [outcome for outcome in outcomes if not outcome.findings.good]
    for outcome in violated:
        lines += [f"\n{outcome.name}: {problem}" for problem in outcome.findings.problems]
    again = dict.fromkeys(f"{command} {outcome.again}".rstrip() for outcome in violated)
    return [*lines, *(f"again: {one}" for one in again)]


def isolate() -> None:
    """Keep the developer's AWS and Spark settings out, as the tests do."""
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        del os.environ[name]
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
