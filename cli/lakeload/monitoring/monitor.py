"""The record of each job. Nothing here fails a load: a failure is one warning."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakeload.monitoring.metrics import Document, add_to_file

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Monitor:
    """Where jobs of a pipeline are recorded."""

    pipeline: str
    warn: Callable[[str], None]
    metrics_file: Path | None = None

    def record(self, document: Document, targets: Sequence[str]) -> None:
        """Record a job, given the document that `sync --output json` prints, and its tables."""
        if (path := self.metrics_file) is not None:
            self._try(
                f"the metrics file `{path}` was not written",
                lambda: add_to_file(path, self.pipeline, document, targets),
            )

    def _try(self, failed: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            logger.info("%s", failed, exc_info=True)
            reason = getattr(error, "strerror", None) or getattr(error, "message", None)
            self.warn(f"{failed}: {reason or type(error).__name__}")
