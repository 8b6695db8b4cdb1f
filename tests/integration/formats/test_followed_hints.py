"""Hints about tables, followed literally: the setting that each names lets the rows be loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.formats.followed import Case, Settings, Shop, follow_all, follow_one
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.jobs.conftest import Job
from tests.servers.glue import allow_glue, glue_of
from tests.servers.seaweedfs import KEY, SECRET

FAIL = {"schema_changes": "FAIL"}
FIRST = [{"id": 1, "A": {"x": 1}, "yes: no": 1}]
ROW = {"id": 2, "a, b": 1, "r": "eu"}
UPSERT = {"mode": "UPSERT", "primary_key": ["id"], "partition_by": ["bucket(2, `a, b`)", "r"]}


def _exclude(*names: str) -> Any:
    return lambda table, folder: table.update(columns={"exclude": list(names)})


def _with(**settings: Any) -> Any:
    return lambda table, folder: table.update(settings)


def _write(table: Settings, rows: list[Settings]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), table["path"])


COLUMNS = {
    "a new column, left out": Case(
        "leave the new columns out with `columns.exclude`", [{"id": 2, "new, one": 1}], FIRST,
        then=FAIL, by_hand=_exclude("new, one"),
    ),
    "a new column": Case("set `schema_changes: ", [{"id": 2, "new, one": 1}], FIRST, then=FAIL),
    "a new field, left out": Case(
        "leave the whole column out with `columns: {exclude: ", [{"id": 2, "A": {"x": 1, "y": 1}}],
        FIRST, then=FAIL,
    ),
    "a new field": Case(
        "set `schema_changes: ", [{"id": 2, "A": {"x": 1, "y": 1}}], FIRST, then=FAIL
    ),
    "a name of Iceberg": Case(
        "`columns: {rename: ", [{"id": 2, "-pos": 1}], FIRST, values={"…": "place"}
    ),
    "another type, cast": Case("set `columns.types: ", [{"id": 2, "yes: no": 1.0}], FIRST),
    "another type, in a column of its own": Case(
        "set `on_type_conflict: ", [{"id": 2, "yes: no": "t"}], FIRST
    ),
    "another type, left out": Case(
        "leave the column out with `columns.exclude`", [{"id": 2, "yes: no": "t"}], FIRST,
        by_hand=_exclude("yes: no"),
    ),
    "another type where no column is added": Case(
        "set `on_type_conflict: NEW_COLUMN` and `schema_changes: ADD_COLUMNS`",
        [{"id": 2, "yes: no": "t"}], FIRST, then=FAIL,
    ),
    "another type of a key": Case(
        "load everything into a table of another `name`, in a pipeline of another `name`",
        [{"id": "x"}], FIRST, table={"primary_key": ["id"]},
        by_hand=_with(name="other"), elsewhere=True,
    ),
    "another type of a key that is moved": Case(
        "load everything into a table of another `name`, in a pipeline of another `name`",
        [{"id": "x"}], FIRST, table={"primary_key": ["id"]},
        then={"on_type_conflict": "NEW_COLUMN"}, by_hand=_with(name="another"), elsewhere=True,
    ),
}  # fmt: skip
KEYS = {
    "other partitions, taken back": Case(
        "write `partition_by: ", [ROW], [{**ROW, "id": 1}], table=UPSERT,
        then={**FAIL, "partition_by": ["r"]},
    ),
    "other partitions": Case(
        "set `schema_changes: EVOLVE`", [ROW], [{**ROW, "id": 1}], table=UPSERT,
        then={**FAIL, "partition_by": ["r"]},
    ),
    "two rows of one key": Case(
        "set `on_same_key: ", [ROW] * 2, table=UPSERT, then={"on_same_key": "FAIL"}, rows=2
    ),
    "another type of the key": Case(
        "set `columns.types: ", [{**ROW, "id": "5"}], [ROW], table=UPSERT
    ),
    "a null in the key of an Iceberg table": Case(
        "exclude such rows with `where`", [ROW, {**ROW, "id": None}], table=UPSERT,
        by_hand=_with(where="id IS NOT NULL"),
    ),
    "a name of Iceberg's metadata": Case(
        "`columns: {rename: ", [{**ROW, "_spec_id": 1}], table=UPSERT, values={"…": "spec"}
    ),
    "a key of floating point": Case(
        "give the column an exact type with `columns.types`", [{**ROW, "id": 1.5}], table=UPSERT,
        by_hand=_with(columns={"types": {"id": "string"}}),
    ),
    "a key of columns that rows lack": Case(
        "name columns in `primary_key` that have a value in every row", [ROW],
        [ROW, {**ROW, "id": 3, "r": None}], table={"mode": "UPSERT", "primary_key": ["id"]},
        then={"primary_key": ["r"]}, by_hand=_with(primary_key=["id"]),
    ),
    "a load without the key": Case(
        "load that column too", [{"r": "eu"}], [ROW],
        table={"mode": "UPSERT", "primary_key": ["id"]},
        then={"mode": "APPEND", "primary_key": [], **FAIL},
        by_hand=lambda table, folder: _write(table, [ROW]),
    ),
    "partitions of a type that has none": Case(
        "correct `partition_by` of the table", [ROW], then={"partition_by": ["day(r)"]},
        by_hand=_with(partition_by=["r"]),
    ),
    "a codec that cannot be written": Case(
        "name a codec such as `zstd` in `table_properties`", [ROW],
        then={"table_properties": {"write.parquet.compression-codec": "lzo"}},
        by_hand=_with(table_properties={"write.parquet.compression-codec": "zstd"}),
    ),
    "a filter of a boolean in Iceberg": Case(
        "remove it from `bloom_filters`", [{**ROW, "b": True}], then={"bloom_filters": ["b"]},
        by_hand=_with(bloom_filters=[]),
    ),
}  # fmt: skip


def parquet(job: Job) -> Shop:
    """Return a pipeline into a lake of Parquet files."""
    credentials: Settings = {"role_arn": job.lake.seeded.role_arn}
    for name in ("external_id", "access_key_id", "secret_access_key"):
        credentials[name] = {"file": getattr(job.destination().credentials, name).name}
    destination = job.lake.destination(credentials=credentials)
    source = {"type": "FILES", "format": "PARQUET"}
    return Shop(job.spark, job.folder, destination=destination, source=source, nested="NATIVE")


def iceberg(loads: Loads) -> Shop:
    """Return a pipeline into a REST catalog."""
    secrets = {"access_key_id": KEY, "secret_access_key": SECRET}
    for name, secret in secrets.items():
        (loads.folder / name).write_text(secret, encoding="utf-8")
    own = loads.destination
    destination = {
        "version": 1, "bucket": own.bucket, "region": own.region, "prefix": own.prefix,
        "credentials": {name: {"file": str(loads.folder / name)} for name in secrets},
        "endpoints": {"s3": own.endpoints.s3},
        "table_format": "ICEBERG",
        "iceberg": {"catalog": {"type": "REST", "uri": loads.uri, "access_delegation": "NONE"}},
    }  # fmt: skip
    return Shop(
        loads.spark, loads.folder, destination=destination, namespace=loads.schema,
        source={"type": "FILES", "format": "PARQUET"}, nested="NATIVE",
    )  # fmt: skip


@pytest.mark.parametrize(("fixture", "shop"), [("job", parquet), ("loads", iceberg)])
def test_hints_about_columns_are_followed_and_load(
    fixture: str, shop: Any, request: pytest.FixtureRequest
) -> None:
    follow_all(__file__, shop(request.getfixturevalue(fixture)), COLUMNS)


def test_hints_about_keys_and_partitions_are_followed_and_load(loads: Loads) -> None:
    follow_all(__file__, iceberg(loads), KEYS)


@pytest.fixture
def glue(job: Job) -> Iterator[Job]:
    """A job whose role may use Glue, and whose databases end with the test."""
    allow_glue(job.lake)
    yield job
    for database in (client := glue_of(job.lake)).get_databases()["DatabaseList"]:
        client.delete_database(Name=database["Name"])


def test_hints_about_glue_are_followed_and_load(glue: Job) -> None:
    shop, client = parquet(glue), glue_of(glue.lake)
    shop.settings["namespace"] = "supaflow_shop"
    place = glue.lake.server.endpoint
    own = shop.settings["destination"]
    catalog = {"update_glue_catalog": True, "partition_strategy": "DAY"}
    with_glue = {
        **own, "endpoints": {**own["endpoints"], "glue": place},
        "parquet": catalog,
    }  # fmt: skip
    path = str(shop.write("orders.parquet", [{"id": 1, "a": {"x": 1}}]))
    orders: Settings = {"table": "orders", "path": path, "on_append_again": "ALLOW"}

    def walk(case: str, begins: str, table: Settings, **values: Any) -> None:
        follow_one(__file__, case, shop, begins, table, **values)

    def destination(**changes: Any) -> None:
        shop.settings["destination"] = {**with_glue, **changes}

    destination()
    assert shop.load([orders])["orders"].error is None
    for name, setting, value in (
        ("Glue, left out", "update_glue_catalog", False),
        ("another partition key", "partition_strategy", "HOUR"),
        ("partitions that are projected", "partition_projection", True),
    ):
        destination(parquet={**catalog, setting: value})
        walk(name, f"restore `{setting}: ", orders)
    destination(parquet={})
    plain = {**orders, "table": "plain"}
    assert shop.load([plain])["plain"].error is None
    destination()
    walk("Glue, added", "restore `update_glue_catalog: false`", plain)

    view = {"Name": "view", "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "SELECT 1"}
    client.create_table(DatabaseName="supaflow_shop", TableInput=view)  # type: ignore[arg-type]
    taken = {**orders, "table": "taken", "name": "view"}
    walk("a view of the name", "give the table another `name`", taken, name="other")


def test_hints_about_a_table_of_another_writer_are_followed_and_load(job: Job) -> None:
    shop = parquet(job)
    path = str(shop.write("orders.parquet", [{"id": 1}]))
    orders: Settings = {"table": "orders", "path": path}
    assert shop.load([orders])["orders"].error is None

    for name, begins in (
        ("rows of another pipeline", "set `table_handling: APPEND`"),
        ("a pipeline of another name", "restore `name: "),
    ):
        shop.settings["name"] = name.replace(" ", "-")
        follow_one(__file__, name, shop, begins, {**orders, "on_append_again": "ALLOW"})
