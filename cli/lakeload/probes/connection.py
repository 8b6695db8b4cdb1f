"""The connection test of one destination: its probes, in order, and their verdict."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass

from lakeload.probes.glue import glue_probes
from lakeload.probes.model import Probe, ProbeResult, Verdict
from lakeload.probes.probe_objects import ProbeObjects
from lakeload.probes.probe_tables import ProbeTables
from lakeload.probes.runner import Deadline, run_probes
from lakeload.probes.s3 import s3_probes
from lakeload.probes.sts import sts_probes
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.lake.aws import AwsSession
from lakeload_jobs.lake.objects import Objects
from lakeload_jobs.lake.waits import Waits
from lakeload_jobs.rules.suggest import did_you_mean

CLEANUP_SHARE = 0.25
"""The part of the time-out that is kept for cleaning up."""


@dataclass(frozen=True)
class ConnectionOptions:
    """How to test. `timeout` (seconds) is for everything but the waiting that `wait` allows."""

    timeout: float = 30
    wait: float = 0
    """How long a denied AssumeRole is repeated: IAM takes up to a minute to know a new role."""
    read_only: bool = False
    skip: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    """Leave every other probe out; None runs them all."""
    attempts: int = 2
    """How often a request is sent that the server or the network fails."""


class ConnectionTest:
    """One test. Iterate `run` to its end or close it: either way it cleans up."""

    def __init__(self, destination: DestinationSpec, options: ConnectionOptions) -> None:
        """Prepare the probes; nothing is called yet. Raises `InvalidInput` for an unknown skip."""
        self._options = options
        self._deadline = Deadline(options.timeout * (1 - CLEANUP_SHARE))
        session = AwsSession(
            destination,
            label="test-connection",
            # All tries fit, so that AWS's own error comes before "no answer within …".
            connect_timeout=min(5, options.timeout / 6),
            read_timeout=min(10, options.timeout / 5),
            max_attempts=options.attempts,
        )
        objects = Objects(
            session,
            destination,
            waits=Waits(answer=min(5, options.timeout / 6)),
            # What the store can do is for the probes to say, with objects of their own.
            conditional=not destination.single_writer,
        )
        self._objects = ProbeObjects(destination, session, objects)
        self._tables = ProbeTables(destination, session)
        sts = sts_probes(destination, session, wait=options.wait, deadline=self._deadline)
        uses_glue = destination.parquet.update_glue_catalog
        glue = glue_probes(destination, self._tables) if uses_glue else []
        self.probes = tuple(
            probe
            for probe in [*sts, *s3_probes(destination, self._objects), *glue]
            if not (options.read_only and probe.writes)
            and (options.only is None or probe.name in options.only)
        )
        self._results: list[ProbeResult] = []
        self._left_behind: tuple[str, ...] = ()
        self._started = time.monotonic()
        _check_skip(options.skip, self.probes)

    def run(self) -> Generator[ProbeResult, None, None]:
        """Yield each probe's result as it comes; remove what the probes wrote at the end."""
        try:
            for result in run_probes(self.probes, self._deadline, skip=self._options.skip):
                self._results.append(result)
                yield result
        finally:
            rest = Deadline(self._deadline.left + self._options.timeout * CLEANUP_SHARE)
            tables = self._tables.remove_all(rest)
            self._left_behind = (*self._objects.remove_all(rest), *tables)

    def verdict(self) -> Verdict:
        """Return what has been found so far."""
        seconds = time.monotonic() - self._started
        return Verdict(tuple(self._results), self._left_behind, seconds)


def _check_skip(skip: frozenset[str], probes: tuple[Probe, ...]) -> None:
    names = [probe.name for probe in probes]
    for name in sorted(skip - set(names)):
        raise InvalidInput(
            f"there is no probe `{name}` to skip",
            hint=did_you_mean(name, names) or f"the probes are {', '.join(names)}",
        )
