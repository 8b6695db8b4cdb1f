"""Loads with Glue switched on, read back as Athena would."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import EndpointsSpec, ParquetSpec, TableSpec
from tests import athena
from tests.integration.jobs.conftest import Job
from tests.servers.fault_proxy import FaultProxy
from tests.servers.glue import LOAD_ACTIONS, allow_glue, glue_of

SCHEMA = "supaflow_shop"
INSTANT = dt.datetime(2024, 2, 29, 1, 2, 3, 456789)


@pytest.fixture
def glue_job(job: Job) -> Iterator[Job]:
    """A job whose role may use Glue, and whose database ends with the test."""
    allow_glue(job.lake)
    yield job
    glue = glue_of(job.lake)
    for database in glue.get_databases()["DatabaseList"]:
        glue.delete_database(Name=database["Name"])


def load(job: Job, table: TableSpec, glue: str | None = None, **changes: Any) -> TableResult:
    """Load with Glue on, at the endpoint `glue` if given."""
    place = job.lake.server.endpoint
    destination = {
        "parquet": ParquetSpec(update_glue_catalog=True),
        "endpoints": EndpointsSpec(s3=place, sts=place, glue=glue or place),
        "glue_database_prefix": "supaflow",
    }
    return job.load_one(replace(table, schema=SCHEMA), destination=destination, **changes)


def query(job: Job, table: str) -> list[dict[str, Any]]:
    """Return what Athena would see without tracking columns, in the order of `id`."""
    rows = athena.query(glue_of(job.lake), job.lake.server.s3, SCHEMA, table)
    kept = [name for name in rows.column_names if not name.startswith("_supa_")]
    found: list[dict[str, Any]] = rows.select(kept).sort_by("id").to_pylist()
    return found


def test_every_kind_of_column_is_read_back_as_it_was_written(glue_job: Job) -> None:
    inner: Any = pa.struct([("Amount", pa.decimal128(10, 2)), ("At", pa.timestamp("us"))])
    outer: Any = pa.struct([("Name", pa.string()), ("Inner", inner)])
    fields: list[tuple[str, Any, Any]] = [
        ("ID", pa.int64(), 1),
        ("Flag", pa.bool_(), True),
        ("Tiny", pa.int8(), -1),
        ("Small", pa.int16(), 300),
        ("Medium", pa.int32(), 70_000),
        ("Ratio", pa.float32(), 0.5),
        ("Double", pa.float64(), 0.1),
        ("Exact", pa.decimal128(38, 6), Decimal("1.500000")),
        ("Crème", pa.string(), "brûlée"),
        ("Bytes", pa.binary(), b"\x00\xff"),
        ("Day", pa.date32(), INSTANT.date()),
        ("Seen At", pa.timestamp("us", "UTC"), INSTANT.replace(tzinfo=dt.UTC)),
        ("Wall", pa.timestamp("us"), INSTANT),
        ("Nested", outer, {"Name": "n", "Inner": {"Amount": Decimal("2.50"), "At": INSTANT}}),
        ("List", pa.list_(outer), [{"Name": "m", "Inner": None}]),
        ("Map", pa.map_(pa.string(), pa.int64()), [("k", 1)]),
    ]
    schema: Any = pa.schema([(name, kind) for name, kind, _ in fields])
    path = glue_job.file("all.parquet", b"")
    row = {name: value for name, _, value in fields}
    pq.write_table(pa.Table.from_pylist([row], schema), path)

    result = load(glue_job, glue_job.table(path, name="kinds", file_format="PARQUET"))

    assert (result.status, result.error) == ("LOADED", None)
    found = query(glue_job, "kinds")
    assert found == [
        {
            "id": 1,
            "flag": True,
            "tiny": -1,
            "small": 300,
            "medium": 70_000,
            "ratio": 0.5,
            "double": 0.1,
            "exact": Decimal("1.500000"),
            "creme": "brûlée",
            "bytes": b"\x00\xff",
            "day": INSTANT.date(),
            "seen_at": INSTANT,
            "wall": INSTANT,
            "nested": {"name": "n", "inner": {"amount": Decimal("2.50"), "at": INSTANT}},
            "list": [{"name": "m", "inner": None}],
            "map": [("k", 1)],
            "lakeload_partition": "2026/11/21/10",
        }
    ]


def test_added_columns_reach_a_glue_catalog_that_was_out_of_date(glue_job: Job) -> None:
    first = glue_job.table(glue_job.file("1.csv", "ID,Name\n1,a\n"))
    assert load(glue_job, first).status == "LOADED"
    second = glue_job.table(glue_job.file("2.csv", "ID,Extra\n2,7\n"))
    allow_glue(glue_job.lake, [action for action in LOAD_ACTIONS if action != "UpdateTable"])

    stale = load(glue_job, second)

    assert (stale.status, stale.rows) == ("LOADED_CATALOG_OUT_OF_DATE", 1)
    assert stale.error is not None
    assert (stale.error.type, stale.error.exit_code) == ("FollowUpFailed", 5)
    assert "`glue:UpdateTable`" in (stale.error.hint or "")
    assert "do not load" in (stale.error.hint or "")
    # A stale catalog stops no load; the older job is told beside the newer one's own result.
    third = glue_job.table(glue_job.file("3.csv", "ID\n3\n"))
    result = load(glue_job, third)
    assert result.status == "LOADED_CATALOG_OUT_OF_DATE"
    # The reason is told once, by the error.
    assert "the catalog is not up to date with earlier jobs" in result.warnings

    allow_glue(glue_job.lake)
    fourth = load(glue_job, glue_job.table(glue_job.file("4.csv", "ID\n4\n")))
    assert fourth.status == "LOADED"
    assert not any("catalog" in warning for warning in fourth.warnings)
    assert [(row["id"], row["name"], row["extra"]) for row in query(glue_job, "orders")] == [
        (1, "a", None),
        (2, None, 7),
        (3, None, None),
        (4, None, None),
    ]


def test_type_conflict_with_glue_is_rejected_before_a_write(
    glue_job: Job, fault_proxy: FaultProxy
) -> None:
    table = glue_job.table(glue_job.file("1.csv", "id\n1\n"))
    assert load(glue_job, table, fault_proxy.endpoint).status == "LOADED"
    sent = [request.operation for request in fault_proxy.requests]
    assert sent.count("BatchCreatePartition") == 1
    assert len(sent) <= 6, "five for the first load and one for its partition"
    fault_proxy.requests.clear()
    glue = glue_of(glue_job.lake)
    found: Any = glue.get_table(DatabaseName=SCHEMA, Name="orders")["Table"]
    storage = found["StorageDescriptor"]
    storage["Columns"].append({"Name": "added", "Type": "string"})
    names = ("Name", "TableType", "PartitionKeys", "Parameters")
    changed: Any = {name: found[name] for name in names} | {"StorageDescriptor": storage}
    glue.update_table(DatabaseName=SCHEMA, TableInput=changed)
    before = glue_job.lake.keys()

    second = glue_job.table(glue_job.file("2.csv", "id,added\n2,2\n"))
    result = load(glue_job, second, fault_proxy.endpoint)

    assert result.status == "FAILED"
    assert result.error is not None
    assert result.error.type == "CatalogConflict"
    assert "`added` is `string` in Glue and `bigint` in this load" in result.error.message
    assert glue_job.lake.keys() == before
    assert glue_job.lake.uploads_left() == []
    assert [request.operation for request in fault_proxy.requests] == ["GetTable"]
    allowed = glue_job.table(glue_job.file("3.csv", "id\n3\n"))
    assert load(glue_job, allowed, fault_proxy.endpoint).status == "LOADED"
    assert len(fault_proxy.requests) <= 1 + 3


DAYS = (
    '{"id": 1, "at": {"city": "x", "geo": {"lat": 1.5}}, "tags": [{"k": "a"}]}\n',
    '{"id": 2, "at": {"zip": "01", "geo": {"lon": 2.5}}, "tags": [{"k": "b", "n": 7}]}\n',
    '{"id": 3, "at": {"city": "y"}, "tags": []}\n',
)
READ = [
    {
        "id": 1,
        "at": {"city": "x", "geo": {"lat": 1.5, "lon": None}, "zip": None},
        "tags": [{"k": "a", "n": None}],
    },
    {
        "id": 2,
        "at": {"city": None, "geo": {"lat": None, "lon": 2.5}, "zip": "01"},
        "tags": [{"k": "b", "n": 7}],
    },
    {"id": 3, "at": {"city": "y", "geo": None, "zip": None}, "tags": []},
]


@pytest.mark.parametrize("reader", ["JVM", "AUTO"])
def test_struct_fields_added_and_removed_are_read_by_every_engine(
    glue_job: Job, tmp_path: Path, reader: Any
) -> None:
    allow_glue(glue_job.lake, [*LOAD_ACTIONS, "BatchUpdatePartition"])
    results = [
        load(
            glue_job,
            glue_job.table(glue_job.file(f"{n}.ndjson", day), file_format="NDJSON"),
            reader=reader,
            job_id=f"job-{n}",
        )
        for n, day in enumerate(DAYS)
    ]

    assert [(result.status, result.error) for result in results] == [("LOADED", None)] * 3
    assert [note for note in results[1].notes if "new" in note] == [
        f"column `{path}` is new: it is null in the rows of earlier loads"
        for path in ("at.geo.lon", "at.zip", "tags.element.n")
    ]
    by_athena = [
        {name: value for name, value in row.items() if name != "lakeload_partition"}
        for row in query(glue_job, "orders")
    ]
    assert by_athena == READ
    folder = tmp_path / "copies"
    folder.mkdir()
    for number, result in enumerate(results):
        (file,) = result.files
        (folder / f"{number}.parquet").write_bytes(glue_job.lake.read(file.key))
    table = glue_of(glue_job.lake).get_table(DatabaseName=SCHEMA, Name="orders")["Table"]
    kinds = {one["Name"]: one["Type"] for one in table["StorageDescriptor"]["Columns"]}
    schema: Any = pa.schema([(name, athena.hive_type(kinds[name])) for name in READ[0]])
    by_arrow = ds.dataset(folder, schema=schema).to_table().sort_by("id").to_pylist()
    assert by_arrow == READ
    relation = duckdb.connect().sql(
        f"select id, \"at\", tags from read_parquet('{folder}/*.parquet', union_by_name=true) "
        "order by id"
    )
    assert [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()] == READ
    ddl = ", ".join(f"{name} {kinds[name]}" for name in READ[0])
    by_spark = glue_job.spark.read.schema(ddl).parquet(str(folder)).orderBy("id").collect()
    assert [row.asDict(recursive=True) for row in by_spark] == READ


def test_new_struct_fields_are_rejected_where_new_columns_are(glue_job: Job) -> None:
    first, second = (
        glue_job.table(glue_job.file(f"{n}.ndjson", day), file_format="NDJSON")
        for n, day in enumerate(DAYS[:2])
    )
    assert load(glue_job, first).status == "LOADED"

    result = load(glue_job, replace(second, schema_changes="FAIL"))

    assert result.error is not None
    assert "the source has fields that the table does not: `at.geo.lon`" in result.error.message
    assert "`schema_changes: ADD_COLUMNS`" in (result.error.hint or "")
