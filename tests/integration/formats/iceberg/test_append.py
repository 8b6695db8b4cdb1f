"""Appends: what is in the table, what is told, and that no job comes in twice."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lakeload.formats.iceberg.inspect import inspect
from lakeload.formats.inspection import InspectionRequest
from lakeload.launch.spec import new_attempt
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.result import RowChanges
from lakeload_jobs.contract.spec import (
    NO_OPTIONS,
    EndpointsSpec,
    FilesInput,
    PartitionField,
    TableSpec,
)
from tests.integration.formats.iceberg.conftest import SYNCED, Loads, Row
from tests.servers.fault_proxy import MakeProxy


def test_each_append_is_one_snapshot_with_its_job_id(loads: Loads) -> None:
    first = [{"id": n, "name": f"n{n}"} for n in range(1, 6)]
    types: dict[str, pa.DataType] = {"id": pa.int64(), "name": pa.string()}
    typed = pa.schema(types)
    table = loads.table(
        loads.file(first),
        loads.file([{"id": 6, "name": None}], typed),
        primary_key=("id",),
        partition_by=(PartitionField("bucket", "id", 2),),
        table_properties={"write.parquet.compression-codec": "gzip"},
    )

    result = loads.loaded(table)
    again = loads.run(loads.last).tables[0] if loads.last else None
    second = loads.loaded(loads.table(loads.file([{"id": 7, "name": "n7"}]), primary_key=("id",)))

    assert (result.rows, result.index, sum(file.rows for file in result.files)) == (6, "dense", 6)
    assert result.bytes == sum(file.bytes for file in result.files) > 0
    assert again is not None
    assert (again.status, again.rows, again.snapshot_id) == ("NO_OP", 6, result.snapshot_id)
    assert loads.rows() == [*first, {"id": 6, "name": None}, {"id": 7, "name": "n7"}]
    assert len(loads.rows(snapshot_id=result.snapshot_id)) == 6
    found = loads.read()
    assert found.metadata.current_snapshot_id == second.snapshot_id
    assert list(found.metadata.refs) == ["main"]
    assert found.schema().identifier_field_names() == {"id"}
    assert str(found.spec().fields[0].transform) == "bucket[2]"
    assert found.properties["write.parquet.compression-codec"] == "gzip"
    assert found.properties["lakeload.created-by"] == "shop"
    assert found.properties["lakeload.seq"] == "2"
    summary = found.current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert loads.last is not None
    assert summary["lakeload.job-id"] == loads.last.job_id
    assert summary["lakeload.rows"] == "1"


def test_tracking_columns_are_those_of_the_first_row_to_the_last(loads: Loads) -> None:
    files = [loads.file([{"id": n * 10 + k} for k in range(3)]) for n in range(4)]

    result = loads.loaded(loads.table(*files, primary_key=("id",), deleted_when="id = 11"))

    assert result.writer == "direct"
    tracking = loads.tracking()
    assert [row["_supa_index"] for row in tracking] == list(range(1, 13))
    assert {row["_supa_synced"] for row in tracking} == {SYNCED}
    assert loads.last is not None
    assert {row["_supa_job_id"] for row in tracking} == {loads.last.job_id}
    numbers = [n * 10 + k for n in range(4) for k in range(3)]
    ids = {hashlib.sha256(f"n{number};".encode()).hexdigest() for number in numbers}
    assert {row["_supa_id"] for row in tracking} == ids
    gone = hashlib.sha256(b"n11;").hexdigest()
    assert [row["_supa_id"] for row in tracking if row["_supa_deleted"]] == [gone]


def test_a_load_without_rows_is_a_snapshot_too(loads: Loads) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1}])))

    empty = loads.loaded(loads.table(loads.file([{"id": 1}]), where="id > 5"))

    assert (empty.rows, empty.files) == (0, ())
    assert len(loads.read().metadata.snapshots) == 3  # the empty root of a new table, and two
    assert loads.rows() == [{"id": 1}]


def test_a_null_in_the_key_names_table_and_column(loads: Loads) -> None:
    result = loads.load(loads.table(loads.file([{"id": None}, {"id": 1}]), primary_key=("id",)))

    assert result.error is not None
    assert (result.error.type, result.error.exit_code) == ("InvalidInput", 2)
    assert "`orders`" in result.error.message
    assert "`id`" in result.error.message
    assert list(loads.read().metadata.refs) == []

    # The empty table that it has left is a first run's own.
    assert loads.loaded(loads.table(loads.file([{"id": 1}]), primary_key=("id",))).rows == 1


def test_incremental_files_are_loaded_once_each(loads: Loads) -> None:
    pattern = str(loads.folder / "*.parquet")
    source = FilesInput("PARQUET", (pattern,), {}, incremental=True, folder=str(loads.folder))
    loads.file([{"id": 1}])
    table = loads.table(input=source)

    one = loads.loaded(table)
    nothing = loads.load(table)
    # As old as the first: neither time nor name says that it is new, so the ledger has to.
    path = Path(loads.file([{"id": 2}]))
    first = (loads.folder / "001.parquet").stat()
    os.utime(path, ns=(first.st_atime_ns, first.st_mtime_ns))
    two = loads.loaded(table)

    assert (one.rows, nothing.status, two.rows) == (1, "NO_OP", 1)
    assert "1 new file (1 known)" in two.notes[0]
    assert loads.rows() == [{"id": 1}, {"id": 2}]


def test_another_branch_than_main_is_loaded(loads: Loads) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1}])))
    audit = replace(loads.destination.iceberg, branch="audit")
    loads.destination = replace(loads.destination, iceberg=audit)

    for number in (2, 3):
        loads.loaded(loads.table(loads.file([{"id": number}])))

    assert loads.rows() == [{"id": 1}]
    found = loads.read().metadata.refs
    assert set(found) == {"main", "audit"}
    assert len(loads.rows(snapshot_id=found["audit"].snapshot_id)) == 3


def test_branch_that_is_not_there_yet_begins_with_the_jobs_of_main(loads: Loads) -> None:
    source = FilesInput("PARQUET", (str(loads.folder / "*.parquet"),), {}, incremental=True)
    table = loads.table(input=source)
    loads.file([{"id": 1}])
    loads.loaded(table)
    audit = replace(loads.destination.iceberg, branch="audit")
    loads.destination = replace(loads.destination, iceberg=audit)
    assert loads.last is not None
    again = loads.run(replace(loads.last, destination=loads.destination)).tables[0]
    loads.file([{"id": 2}])
    more = loads.loaded(table)

    assert (again.status, more.rows) == ("NO_OP", 1)
    found = loads.read().metadata.refs["audit"].snapshot_id
    assert loads.rows(snapshot_id=found) == [{"id": 1}, {"id": 2}]


def test_rows_are_merged_with_those_that_a_new_branch_begins_with(loads: Loads) -> None:
    def table(*versions: tuple[int, int]) -> TableSpec:
        rows: list[Row] = [{"id": number, "at": at} for number, at in versions]
        return loads.table(loads.file(rows), mode="UPSERT", primary_key=("id",), cursor="at")

    loads.loaded(table((1, 5), (2, 1)))
    audit = replace(loads.destination.iceberg, branch="audit")
    loads.destination = replace(loads.destination, iceberg=audit)
    merged = loads.loaded(table((1, 3), (2, 2), (3, 1)))

    assert merged.changes == RowChanges(1, 1, 0, unchanged=0, ignored=1)
    found = loads.read().metadata.refs["audit"].snapshot_id
    rows = [(row["id"], row["at"]) for row in loads.rows(snapshot_id=found)]
    assert rows == [(1, 5), (2, 2), (3, 1)]


def test_requests_of_a_load_are_counted(loads: Loads, make_proxy: MakeProxy) -> None:
    """One small file each. docs/protocol-iceberg.md says what each request is for."""
    catalog, store = make_proxy(loads.uri), make_proxy(loads.store["s3.endpoint"])
    there = replace(loads.destination.iceberg.catalog, uri=catalog.endpoint)
    loads.destination = replace(
        loads.destination,
        endpoints=EndpointsSpec(s3=store.endpoint),
        iceberg=replace(loads.destination.iceberg, catalog=there),
    )
    source = FilesInput("PARQUET", (str(loads.folder / "*.parquet"),), {}, incremental=True)
    table = loads.table(input=source)

    def sent(work: Callable[[], object]) -> tuple[Counter[str], Counter[str]]:
        catalog.requests.clear()
        store.requests.clear()
        work()
        asked = Counter(one.method for one in catalog.requests)
        return asked, Counter(one.operation for one in store.requests)

    def look() -> None:
        request = InspectionRequest(
            loads.destination, "shop", new_attempt(None), NO_OPTIONS, loads=True
        )
        inspect(AwsSession(loads.destination), [table], request)

    def load() -> None:
        loads.loaded(table)

    for gets, posts, requests in ((6, 5, 8), (4, 2, 8), (4, 2, 8)):
        loads.file([{"id": loads.files}])
        sent(look)
        asked, stored = sent(load)
        assert (asked["GET"], asked["POST"], stored.total()) == (gets, posts, requests)
        # Two for the file and one for its part. None is only there to name the file in the result.
        uploads = ("CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload")
        assert [stored[name] for name in uploads] == [1, 1, 1]
        assert stored["PutObject"] == (4 if posts == 5 else 3)
    assert sent(look) == ({"GET": 2}, {"GetObject": 1})
