"""Reports of a job to other systems: what the documents ask for, and what becomes of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lakeload.commands.sync_once import LoadJob
from lakeload.documents.load import PipelineDocument
from lakeload.launch.timings import WallTime
from lakeload.reporting.delivery import END_SECONDS
from lakeload.reporting.job import Measurement, ReportedJob
from lakeload.reporting.lineage import LineageReport, receiver_of
from lakeload.reporting.opentelemetry import OpenTelemetryReport, check_opentelemetry
from lakeload.reporting.webhook import webhook_of
from lakeload.sources.registry import facts_of
from lakeload.ui import console
from lakeload.ui.errors import say
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.events import Event

logger = logging.getLogger(__name__)


def check_reports(document: PipelineDocument, environment: Mapping[str, str]) -> None:
    """Raise `MachineNotReady` for an extra that is not installed, `InvalidInput` for a secret or a
    receiver that is missing, and for a protocol that is not spoken."""
    settings = document.model.lineage
    if settings is not None:
        receiver_of(settings, document.path.parent, environment)
    if document.model.notify is not None:
        webhook_of(document.model.notify, document.path.parent)
    if document.model.opentelemetry:
        check_opentelemetry(environment)


class Reports:
    """All reports of one job. `only_news`: a job without anything new is not reported."""

    def __init__(self, job: LoadJob, environment: Mapping[str, str], *, only_news: bool) -> None:
        self._reports: list[OpenTelemetryReport | LineageReport] = []
        document = job.document
        settings = document.model.lineage
        reported = ReportedJob(
            document.model.name,
            job.attempt.job_id,
            job.attempt.attempt_id,
            job.attempt.synced,
            job.destination,
            job.tables,
            {table.source: facts_of(table.input).datasets for table in job.tables},
            only_news,
        )
        if document.model.opentelemetry:
            self._reports.append(OpenTelemetryReport(reported, environment))
        if settings is None:
            return
        try:
            receiver = receiver_of(settings, document.path.parent, environment)
        except LakeloadError as error:
            # It was there when the configuration was read.
            say(console.err, "warning", error.message)
            return
        self._reports.append(LineageReport(reported, receiver, environment))

    def on_event(self, event: Event) -> None:
        """Take in an event of the Spark job."""
        for report in self._reports:
            with _harmless():
                report.on_event(event)

    def end(
        self, document: Mapping[str, Any], wall_time: WallTime, metrics: Sequence[Measurement]
    ) -> None:
        """Report the end of the job, given the document of `sync`, the time of its phases, and its
        metrics, and wait for a few seconds until all is delivered; warn of what is not."""
        for report in self._reports:
            with _harmless():
                report.end(document, wall_time, metrics)
        until = time.monotonic() + END_SECONDS
        for report in self._reports:
            if (problem := report.finish(until)) and not console.quiet():
                say(console.err, "warning", problem)


@contextmanager
def _harmless() -> Iterator[None]:
    """Log what goes wrong, and go on: no load fails for its reports."""
    try:
        yield
    except Exception:
        logger.warning("a report of the job failed", exc_info=True)
