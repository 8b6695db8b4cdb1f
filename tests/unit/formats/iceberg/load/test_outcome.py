"""What the user of a loaded Iceberg table is told."""

from __future__ import annotations

from lakeload_jobs.formats.iceberg.load.outcome import already
from tests.unit.formats.iceberg.test_operations import OURS, facts, loaded
from tests.unit.launch.specs import table


def test_committed_job_without_file_names_has_its_file_count() -> None:
    snapshot = loaded(1, None, "job-1")
    summary = snapshot["summary"]
    assert isinstance(summary, dict)
    summary |= {"added-data-files": "512"}

    result = already(table("orders"), facts(snapshot, properties=OURS, head=1), 1, "shop")

    assert (result.files, result.file_count, result.bytes) == ((), 512, 2048)
    assert result.already
