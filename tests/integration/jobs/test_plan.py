"""The job behind `lakeload plan --schema`: it sees what a load would write, and writes nothing."""

from __future__ import annotations

from dataclasses import replace

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.plan import TableColumns
from lakeload_jobs.contract.spec import ColumnsSpec, JobSpec
from lakeload_jobs.formats.parquet.format import ParquetFormat
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.plan import look
from lakeload_jobs.sources.registry import Sources
from tests.inputs import files_of
from tests.integration.jobs.conftest import Job

TYPED = {"header": "true", "inferSchema": "true"}


def looked(job: Job, spec: JobSpec) -> dict[str, TableColumns]:
    """Return what the job finds out, by source table."""
    aws = AwsSession(spec.destination)
    session = ParquetFormat().connect(job.spark, spec, aws)
    with EventLog(spec.events_path) as events:
        return {found.table: found for found in look(session, Sources(spec, aws), spec, events)}


def test_columns_are_those_of_the_load_and_of_the_table(job: Job) -> None:
    first = job.table(job.file("a.csv", "id,old\n1,x\n"), options=TYPED)
    assert job.load_one(first).status == "LOADED"
    before = job.lake.keys()
    grown = job.file("b.csv", "id,new\n2,2026-03-01\n")
    table = replace(first, input=replace(files_of(first), paths=(grown,)), fingerprint="f01")
    changed = replace(table, columns=ColumnsSpec(types={"id": "string"}), fingerprint="f02")

    found = looked(job, job.spec(table, tracking_columns=()))["orders"]
    assert found.columns == {"id": "bigint", "new": "date"}
    assert found.existing is not None
    assert found.existing.columns["old"] == "string"
    assert found.error is None

    refused = looked(job, job.spec(changed, tracking_columns=()))["orders"]
    assert refused.error is not None
    assert "`id` was `bigint` and is `string`" in refused.error.message
    assert job.lake.keys() == before


def test_a_source_that_cannot_be_read_leaves_the_other_tables_alone(job: Job) -> None:
    missing = job.table(str(job.folder / "nowhere.csv"), name="missing")
    fine = job.table(job.file("fine.csv", "n\n1\n"), name="fine")
    found = looked(job, job.spec(missing, fine))
    assert found["missing"].error is not None
    assert (found["fine"].error, found["fine"].existing) == (None, None)
    assert "_supa_id" in found["fine"].columns
