"""The record of each job. Nothing here fails a load: a failure is one warning."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from lakeload.monitoring.metrics import Document, Metrics, read_file, write_file

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

    def add_metrics(self, document: Document, targets: Sequence[str], path: Path | None) -> None:
        """Add a job to the metrics, given the document that `sync --output json` prints and its
        tables, and write them into a file."""
        if path is None and self._publish is None:
            return
        where = f"the metrics file `{path}`" if path else "metrics"
        self._try(f"writing {where}", lambda: self._add_metrics(document, targets, path))

    def _add_metrics(self, document: Document, targets: Sequence[str], path: Path | None) -> None:
        text = read_file(path) if path is not None else None
        metrics = Metrics(document["pipeline"], text or self._text)
        metrics.add(document, targets)
        self._text = metrics.text()
        if self._publish is not None:
            self._publish(self._text)
        if path is not None:
            write_file(path, self._text)

    def _try(self, doing: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            logger.info("%s failed", doing, exc_info=True)
            reason = getattr(error, "strerror", None) or getattr(error, "message", None)
            self._warn(f"{doing}: {str(reason or type(error).__name__).lower()}")
