"""Distribution of test files to the workers of pytest-xdist."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

ROOT = Path(__file__).parents[1]
ON_SPARK = tuple(
    f"tests/integration/{name}/" for name in ("formats", "jobs", "rows", "sources/databases")
)
"""Folders with tests that use the Spark session of their worker."""
WITHOUT_SPARK = (
    "tests/integration/formats/iceberg/catalogs/",
    "tests/integration/formats/parquet/",
)
"""Folders below them whose tests do not."""
SPARK_WORKERS = 2
"""Of three. Every JVM compiles Spark's classes anew, 40 seconds of CPU each time. One for all would
not do: the identity of Iceberg's AWS clients and S3A's settings belong to the whole JVM, and each
worker has an AWS of its own."""


class FewSparkSessions(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Distributes whole files: those that need Spark to the first workers alone."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker the next file of its kind; the first workers then help the others, which
        end where no file is left that needs no Spark."""
        has_spark = node in self.nodes[:SPARK_WORKERS]
        suitable = (file for file in self.workqueue if needs_spark(file) == has_spark)
        if (file := next(suitable, None)) is not None:
            self.workqueue.move_to_end(file, last=False)
        elif not has_spark:
            node.shutdown()
            return
        super()._assign_work_unit(node)


@cache
def needs_spark(file: str) -> bool:
    """Return whether a test file uses the session of its worker, by itself or through commands."""
    if file.startswith(ON_SPARK) and not file.startswith(WITHOUT_SPARK):
        return True
    return "warm_spark" in (ROOT / file).read_text(encoding="utf-8")
