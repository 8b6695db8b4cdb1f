"""The job history: each job is noted on this machine, and moved into the lake."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lakeload.connections import Connections
from lakeload.history.day import FORMAT, HistoryDay, Notified, merge, of_job
from lakeload.history.store import LakeHistory, LocalHistory, is_in_lake, move, record
from lakeload.monitoring.metrics import Document
from lakeload.reporting.delivery import END_SECONDS, Delivery, NotTaken, Rejected, Send
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import DestinationSpec

logger = logging.getLogger(__name__)

ROUND_SECONDS = 60.0
"""Good rounds are moved into the lake this often."""
_REQUEST_SECONDS = 2.0


class JobHistory:
    """Records the jobs of one command. Nothing here fails a load: a failure is one warning."""

    def __init__(self, runs: Path, warn: Callable[[str], None]) -> None:
        self._runs = runs
        self._warn = warn
        self._warned = ""
        self._delivery: Delivery[HistoryDay] | None = None
        self._moved = 0.0
        self._failing = True
        self._open: tuple[DestinationSpec, Connections | None, HistoryDay] | None = None
        self._stored: HistoryDay | None = None

    def begin(
        self,
        document: Document,
        targets: Sequence[str],
        destination: DestinationSpec,
        connections: Connections | None,
        *,
        rounds: bool,
    ) -> None:
        """Note a job, given the document that `sync --output json` prints and all its tables, and
        begin to move what is noted into the lake: of good `rounds` every minute."""
        try:
            found = of_job(document, targets)
            noted = self._note(found, destination)
        except Exception as error:
            logger.info("noting the job failed", exc_info=True)
            self._problem(str(error) or type(error).__name__)
            return
        if not is_in_lake(destination):
            return
        # What this machine has no room for is in no later round.
        left = HistoryDay(found.format, found.pipeline) if noted else found
        self._open = (destination, connections, left)
        failing, self._failing = self._failing, document["exit_code"] != 0
        waited = time.monotonic() - self._moved
        if rounds and noted and not (failing or self._failing) and waited < ROUND_SECONDS:
            return
        self._move()

    def state(self, pipeline: str, destination: DestinationSpec) -> HistoryDay:
        """Return the state after the last job, as far as it is known here: of the lake as of when
        something was last moved there, and what is noted on this machine. Raises `LakeloadError`
        and `OSError`."""
        local = LocalHistory(self._runs, destination)
        found = self._stored or HistoryDay(FORMAT, pipeline)
        names = local.days(pipeline)
        # Days on this machine alone begin with the state of the day before.
        for name in names if is_in_lake(destination) else names[-1:]:
            noted = local.read(pipeline, name)
            found = merge(found, noted.day) if noted else found
        return found

    def note(
        self,
        pipeline: str,
        notified: Notified,
        destination: DestinationSpec,
        connections: Connections | None,
    ) -> None:
        """Record which messages were sent, and begin to move that into the lake."""
        left = HistoryDay(FORMAT, pipeline, notified=notified)
        if self._note(left, destination):
            left = HistoryDay(FORMAT, pipeline)
        if is_in_lake(destination):
            self._open = (destination, connections, left)
            self._move()

    def finish(self, *, last: bool = True) -> None:
        """Wait for a few seconds until all is moved; after the `last` job all that is left."""
        if last and self._delivery is None and self._open is not None:
            self._move()
        if self._delivery is None:
            return
        self._delivery.finish(time.monotonic() + END_SECONDS)
        reason, self._delivery = self._delivery.reason, None
        if reason is None:
            self._open, self._warned = None, ""
        else:
            self._problem(reason)

    def _note(self, found: HistoryDay, destination: DestinationSpec) -> bool:
        """Note a job on this machine; return whether that has worked."""
        local = LocalHistory(self._runs, destination)
        try:
            record(local, found, carried=not is_in_lake(destination))
        except (OSError, LakeloadError):
            if not is_in_lake(destination):
                raise
            logger.info("noting the job on this machine failed", exc_info=True)
            return False
        return True

    def _move(self) -> None:
        if self._open is None:
            return
        destination, connections, left = self._open
        self._moved = time.monotonic()
        runs = self._runs

        def connect() -> Send[HistoryDay]:
            identity = connections or Connections(destination, "history")
            session = identity.before_spark.waiting(
                connect_timeout=_REQUEST_SECONDS, read_timeout=_REQUEST_SECONDS, max_attempts=1
            )
            lake = LakeHistory(session, destination)

            def send(left: HistoryDay) -> None:
                try:
                    found = move(LocalHistory(runs, destination), lake, left.pipeline)
                    if left.health is not None or left.notified is not None:
                        found = record(lake, left)
                    self._stored = found or self._stored
                except LakeloadError as error:
                    told = f"{error.message}; {error.hint}" if error.hint else error.message
                    raise (NotTaken if error.retryable else Rejected)(told) from error

            return send

        self._delivery = Delivery(connect)
        self._delivery.put(left)

    def _problem(self, reason: str) -> None:
        """Warn of what is not recorded, once until it works again."""
        if self._warned:
            return
        self._warned = reason
        self._warn(
            f"the job history could not be written: {reason}. `history: false` in the pipeline "
            "does without it"
        )
