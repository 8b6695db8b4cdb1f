"""Which worker runs a test file that needs Spark."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

ON_SPARK = tuple(
    f"tests/integration/{name}/"
    for name in ("databases", "formats", "iceberg", "job", "readers", "rows")
)
"""Folders with the tests that use the Spark session of their worker."""
SPARK_WORKERS = 2
"""One for each core of a small machine: every further JVM compiles Spark's classes once more, for
some 40 CPU seconds."""


class FewSparkSessions(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Distributes whole files, those of `ON_SPARK` to the first workers as long as there are others
    for the rest."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker the next file of its kind, or else the next of all."""
        takes_spark = node in self.nodes[:SPARK_WORKERS]
        suitable = (file for file in self.workqueue if file.startswith(ON_SPARK) == takes_spark)
        if (file := next(suitable, None)) is not None:
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)
