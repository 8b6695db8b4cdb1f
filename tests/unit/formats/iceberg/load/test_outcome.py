"""What the user of a loaded Iceberg table is told."""

from __future__ import annotations

from pathlib import Path

from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.aws import AwsError
from lakeload_jobs.formats.iceberg.load import outcome
from lakeload_jobs.formats.iceberg.load.outcome import already
from tests.unit.formats.iceberg.commits.own_table import Folder
from tests.unit.formats.iceberg.test_operations import OURS, facts, loaded
from tests.unit.launch.specs import job_spec, table


def test_committed_job_without_file_names_has_its_file_count() -> None:
    snapshot = loaded(1, None, "job-1")
    summary = snapshot["summary"]
    assert isinstance(summary, dict)
    summary |= {"added-data-files": "512"}

    result = already(table("orders"), facts(snapshot, properties=OURS, head=1), 1, "shop")

    assert (result.files, result.file_count, result.bytes) == ((), 512, 2048)
    assert result.already


def test_committed_job_whose_files_cannot_be_read_is_loaded(tmp_path: Path) -> None:
    class Unreadable(Folder):
        def read(self, location: str) -> bytes:
            raise AwsError("reading", code="SlowDown", status=503)

    snapshot = {**loaded(1, None, "job-1"), "manifest-list": "s3://lake/orders/list.avro"}
    summary = snapshot["summary"]
    assert isinstance(summary, dict)
    summary |= {"added-data-files": "2"}

    result = outcome.loaded(
        job_spec(RunFolder(tmp_path)),
        table("orders"),
        "s3://lake/orders",
        Unreadable(),
        snapshot,
        index="sparse",
        merged=None,
    )

    assert (result.status, result.files, result.file_count) == ("LOADED", (), 2)
