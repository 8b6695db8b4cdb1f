"""Rejected records of Iceberg tables: in the side table before the publish, and there only if it
comes in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    FilesInput,
    JobSpec,
    PartitionField,
    RejectedInput,
    RejectLimit,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.load import rejects, write
from lakeload_jobs.formats.iceberg.load.branches import drop_branch
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.jobs import maintain
from lakeload_jobs.jobs.event_log import EventLog
from tests.integration.formats.iceberg.conftest import Loads, Row
from tests.integration.formats.iceberg.spark_catalog import open_in_spark
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Forward, MakeProxy, Response, drop_answer

NUMBERS = ColumnsSpec(types={"n": "bigint"})
QUARANTINE: dict[str, Any] = {
    "on_bad_value": "QUARANTINE",
    "max_rejected": RejectLimit(percent=100),
    "options": RunOptions(table_handling="APPEND"),
}


def table(loads: Loads, text: str, **changes: Any) -> TableSpec:
    loads.files += 1
    path = loads.folder / f"{loads.files:03d}.csv"
    path.write_text(text)
    given = FilesInput("CSV", (str(path),), {"header": "true"})
    return loads.table(input=given, columns=NUMBERS, **changes)


def side(loads: Loads) -> list[Row]:
    rows: list[Row] = loads.read("orders_rejected").scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["_supa_job_id"], row["_supa_index"]))


def pending(loads: Loads) -> list[str]:
    properties = loads.read("orders_rejected").properties
    return [name for name in properties if name.startswith("lakeload.pending.")]


def last(loads: Loads) -> JobSpec:
    assert loads.last is not None
    return loads.last


def test_side_table_that_the_catalog_does_not_confirm_fails_the_load(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejects, "create", lambda *given: False)
    failed = loads.load(table(loads, "id,n\n1,10\n3,x\n"), **QUARANTINE)
    assert failed.error is not None
    assert "did not confirm that it created the table" in failed.error.message
    assert failed.error.retryable
    assert loads.read().metadata.refs == {}


@pytest.mark.parametrize("partitions", [(), (PartitionField("bucket", "id", 2),)])
def test_good_records_are_loaded_and_bad_ones_are_in_the_side_table(
    loads: Loads, partitions: tuple[PartitionField, ...]
) -> None:
    given = table(loads, "id,n\n1,10\n2\n3,x\n4,40\n", partition_by=partitions)
    first = loads.loaded(given, **QUARANTINE)

    assert first.writer == "direct"
    assert (first.rows, first.rejected, first.index) == (2, 2, "sparse")
    assert loads.rows() == [{"id": 1, "n": 10}, {"id": 4, "n": 40}]
    assert [row["_supa_index"] for row in loads.tracking()] == [1, 4]
    found = side(loads)
    assert [(row["raw_record"], row["_supa_index"], row["source_line"]) for row in found] == [
        ("2", 2, 3),
        ("3,x", 3, 4),
    ]
    assert {row["attempt_id"] for row in found} == {last(loads).attempt_id}
    assert pending(loads) == []

    again = loads.run(last(loads)).tables[0]
    assert (again.status, again.rejected) == ("NO_OP", 2)

    clean = loads.loaded(table(loads, "id,n\n5,50\n", partition_by=partitions), **QUARANTINE)
    assert (clean.rejected, clean.index, len(side(loads))) == (0, "dense", 2)


def test_more_rejects_than_allowed_leave_neither_rows_nor_a_side_table(loads: Loads) -> None:
    given = QUARANTINE | {"max_rejected": RejectLimit(rows=0)}

    result = loads.load(table(loads, "id,n\n1,10\n3,x\n"), **given)

    assert result.error is not None
    assert "1 of 2 records (50 %) cannot be read" in result.error.message
    assert loads.read().current_snapshot() is None
    assert not loads.spark.catalog.tableExists(f"lake.{loads.schema}.orders_rejected")


def test_an_upsert_with_more_rejects_than_allowed_changes_no_column(loads: Loads) -> None:
    upsert: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)}
    loads.loaded(table(loads, "id,n\n1,10\n", **upsert), **QUARANTINE)
    before = loads.read().metadata
    given = QUARANTINE | {"max_rejected": RejectLimit(rows=0)}

    result = loads.load(table(loads, "id,n,new\n1,10,a\n3,x,b\n", **upsert), **given)

    assert result.error is not None
    assert "1 of 2 records (50 %) cannot be read" in result.error.message
    after = loads.read().metadata
    # Its branch is gone again, and nothing else has changed.
    assert (after.schemas, after.refs, after.snapshots, after.properties) == (
        before.schemas,
        before.refs,
        before.snapshots,
        before.properties,
    )


def test_an_upsert_leaves_rejected_records_out(loads: Loads) -> None:
    upsert: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)}
    loads.loaded(table(loads, "id,n\n1,10\n2,20\n", **upsert), **QUARANTINE)

    result = loads.loaded(table(loads, "id,n\n2,x\n1,11\n3,30\n4\n", **upsert), **QUARANTINE)

    assert result.rejected == 2
    assert [(row["id"], row["n"]) for row in loads.rows()] == [(1, 11), (2, 20), (3, 30)]
    assert [row["raw_record"] for row in side(loads)] == ["2,x", "4"]


def killed_before_the_publish(loads: Loads, patch: pytest.MonkeyPatch) -> TableResult:
    """Run a load that adds its rejected records, and then dies without a word."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with patch.context() as context:
        context.setattr(write, "publish", die)
        context.setattr(write.StagedIceberg, "_settle", lambda _: False)
        with pytest.raises(KeyboardInterrupt):
            loads.load(table(loads, "id,n\n1,10\n2\n"), **QUARANTINE)
    return TableResult("orders", "", "FAILED")


def test_rejected_records_of_an_abandoned_attempt_are_removed_once_it_cannot_publish(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before_the_publish(loads, monkeypatch)
    (dead,) = pending(loads)
    (branch,) = (name for name in loads.read().metadata.refs if name.startswith("lakeload_"))

    # It may still be alive while its branch is there; and remembered for a day, however slow.
    loads.loaded(table(loads, "id,n\n5,50\n6\n"), **QUARANTINE)
    assert [row["raw_record"] for row in side(loads)] in (["2", "6"], ["6", "2"])
    assert pending(loads) == [dead]

    drop_branch(loads.tables, loads.schema, "orders", branch)
    loads.loaded(table(loads, "id,n\n7,70\n"), **QUARANTINE)
    assert [row["raw_record"] for row in side(loads)] == ["6"]
    assert pending(loads) == [dead]


def test_maintain_removes_rejected_records_of_an_attempt_whose_branch_it_drops(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before_the_publish(loads, monkeypatch)
    assert len(side(loads)) == 1
    wanted = MaintainSpec(("branches",), apply=True, abort_older_than=0)
    spec = replace(loads.spec(loads.table()), job="maintain", maintain=wanted)

    with EventLog(spec.events_path) as events:
        (done,) = maintain.run(loads.spark, spec, events).tables

    assert [step.status for step in done.steps] == ["DONE"]
    assert side(loads) == []


def test_load_that_cannot_publish_removes_its_rejected_records(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        (branch,) = (name for name in loads.read().metadata.refs if name.startswith("lakeload_"))
        drop_branch(loads.tables, loads.schema, "orders", branch)
        raise LoadFailed("another load came first")

    monkeypatch.setattr(write, "publish", refuse)
    result = loads.load(table(loads, "id,n\n1,10\n2\n"), **QUARANTINE)

    assert result.error is not None
    assert result.error.message == "another load came first"
    assert side(loads) == []
    assert pending(loads) == []


def test_side_table_name_of_an_existing_table_is_rejected(loads: Loads) -> None:
    loads.loaded(table(loads, "id,n\n1,1\n", name="orders_rejected"))

    result = loads.load(table(loads, "id,n\n1,10\n2\n"), **QUARANTINE)

    assert result.error is not None
    assert "which is another table" in result.error.message
    assert loads.read().current_snapshot() is None
    assert len(loads.read().metadata.refs) == 0


def test_spark_writes_and_reads_a_side_table_that_tasks_cannot(loads: Loads) -> None:
    spec = table(loads, "id,n\n1,10\n2,2.000\n3,3.000\n")
    loads.loaded(spec, **QUARANTINE)
    open_in_spark(loads.spark, loads.destination)
    name = f"lake.{loads.schema}.orders_rejected"
    loads.spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY _supa_index")

    again = loads.loaded(table(loads, "id,n\n4,4.000\n5,5.000\n"), **QUARANTINE)
    job = last(loads).job_id
    # Deletes of single rows: an operator has done one of them.
    loads.spark.sql(f"DELETE FROM {name} WHERE raw_record IN ('2,2.000', '5,5.000')")
    given = RejectedInput(job, with_marks(spec))
    retried = loads.loaded(replace(spec, input=given, fingerprint="retry"), **QUARANTINE)

    assert (again.rejected, retried.rows, retried.writer) == (2, 1, "direct")
    assert loads.rows() == [{"id": 1, "n": 10}, {"id": 4, "n": 4000}]
    assert {row["raw_record"] for row in side(loads)} == {"3,3.000", "4,4.000"}
    assert pending(loads) == []


def with_marks(spec: TableSpec) -> FilesInput:
    """The files of a table whose numbers have marks for thousands."""
    assert isinstance(spec.input, FilesInput)
    options = {**spec.input.options, "thousands_mark": ".", "decimal_mark": ","}
    return replace(spec.input, options=options)


def test_retry_without_a_commit_response_reads_the_records_once(
    loads: Loads, make_proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_in(_: SparkCatalog, *given: object) -> None:
        raise AssertionError(given)

    monkeypatch.setattr(SparkCatalog, "open_in", open_in)
    spec = table(loads, "id,n\n1,10\n2,2.000\n")
    first = loads.loaded(spec, **QUARANTINE)
    job = last(loads).job_id
    given = RejectedInput(job, with_marks(spec))
    proxy = make_proxy(loads.uri)
    lost: list[Request] = []

    def once(request: Request, forward: Forward) -> Response:
        if b"lakeload.jobs" not in request.body or request.method != "POST" or lost:
            return forward(request)
        lost.append(request)
        return drop_answer(request, forward)

    proxy.on("*", once)
    catalog = replace(loads.destination.iceberg.catalog, uri=proxy.endpoint)
    iceberg = replace(loads.destination.iceberg, catalog=catalog)
    loads.destination = replace(loads.destination, iceberg=iceberg)

    second = loads.loaded(replace(spec, input=given, fingerprint="retry"), **QUARANTINE)
    third = loads.load(replace(spec, input=given, fingerprint="retry"), **QUARANTINE)

    assert len(lost) == 1
    assert (first.rejected, second.status, second.rows, third.status) == (1, "LOADED", 1, "NO_OP")
    assert loads.rows() == [{"id": 1, "n": 10}, {"id": 2, "n": 2000}]
    assert [row["raw_record"] for row in side(loads)] == ["2,2.000"]


@pytest.mark.parametrize("by_spark", [False, True])
def test_source_that_changes_before_its_records_are_set_aside_fails_the_load(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, *, by_spark: bool
) -> None:
    loads.loaded(table(loads, "id,n\n1,10\n2,x\n"), **QUARANTINE)
    if by_spark:
        open_in_spark(loads.spark, loads.destination)
        name = f"lake.{loads.schema}.orders_rejected"
        loads.spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY _supa_index")
    before, spec = side(loads), table(loads, "id,n\n3,30\n4,x\n5,x\n")
    add = rejects.add_rejects

    def change(*given: Any) -> None:
        (loads.folder / f"{loads.files:03d}.csv").write_text("id,n\n3,30\n4,4\n5,x\n")
        add(*given)

    monkeypatch.setattr(write, "add_rejects", change)
    result = loads.load(spec, **QUARANTINE)

    assert result.error is not None
    assert "2 records" in result.error.message
    assert "and 1 when they were set aside" in result.error.message
    assert loads.rows() == [{"id": 1, "n": 10}]
    assert side(loads) == before
    assert list(loads.read().metadata.refs) == ["main"]
