"""The record of each job. Nothing here fails a load: a failure is one warning."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from lakeload.monitoring.metrics import (
    Document,
    Metrics,
    locked,
    other_pipeline,
    read_file,
    write_file,
)
from lakeload.reporting.job import Measurement
from lakeload_jobs.contract.errors import Refused

logger = logging.getLogger(__name__)


class Monitor:
    """Records the jobs of a pipeline."""

    def __init__(
        self, warn: Callable[[str], None], publish: Callable[[str], None] | None = None
    ) -> None:
        """`publish` takes the text of the metrics after each job."""
        self._warn = warn
        self._publish = publish
        self._text = ""
        self._measured: tuple[Measurement, ...] = ()

    def add_metrics(
        self, document: Document, targets: Sequence[str], path: Path | None
    ) -> tuple[Measurement, ...]:
        """Add a job to the metrics, given the document that `sync --output json` prints and its
        tables, and write them into a file. Return what OpenTelemetry is sent."""
        where = f"the metrics file `{path}`" if path else "metrics"
        self._measured = ()
        self._try(f"writing {where}", lambda: self._add_metrics(document, targets, path))
        return self._measured

    def _add_metrics(self, document: Document, targets: Sequence[str], path: Path | None) -> None:
        pipeline, other = document["pipeline"], None
        job = Metrics(pipeline)
        job.add(document, targets)
        with locked(path) if path is not None else nullcontext():
            if path is not None and (text := read_file(path)):
                other = other_pipeline(text, pipeline)
                self._text = self._text if other else text
            metrics = Metrics(pipeline, self._text)
            metrics.add(document, targets)
            self._text, self._measured = metrics.text(), metrics.measurements(job)
            if self._publish is not None:
                self._publish(self._text)
            if other is not None:
                raise Refused(
                    f"it has the metrics of pipeline `{other}`: give each pipeline a file of its "
                    "own, or remove this one"
                )
            if path is not None:
                write_file(path, self._text)

    def _try(self, doing: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            logger.info("%s failed", doing, exc_info=True)
            reason = (getattr(error, "strerror", None) or type(error).__name__).lower()
            self._warn(f"{doing}: {getattr(error, 'message', None) or reason}")
