"""Hints about tables, followed literally: the setting that each names lets the rows be loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, NestedField, StringType, TimeType

from lakeload.documents.load import load_pipeline
from lakeload.formats.parquet.reset import reset
from lakeload.formats.tables import TablesRequest
from lakeload_jobs.formats.parquet.log.publish import tell_nobody
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
    "a null in the key of an Iceberg table, by another key": Case(
        "choose a `primary_key` without nulls", [ROW, {**ROW, "id": None, "r": "us"}],
        table={**UPSERT, "partition_by": []}, values={"primary_key": ["r"]}, rows=2,
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
    anew = "give the pipeline another `name` and another `namespace`"
    walk("a new table", anew, plain, name="other", namespace="supaflow_other")
    # The table is emptied as the hint says: by its administrator, with the former setting.
    for secret in ("key", "word"):
        (shop.folder / secret).write_text("test", encoding="utf-8")
    admin = {
        "access_key_id": {"file": str(shop.folder / "key")},
        "secret_access_key": {"file": str(shop.folder / "word")},
    }
    destination(parquet={}, credentials=admin)
    pipeline = shop.write("reset.yml", yaml.safe_dump(shop.document([plain])))
    request = TablesRequest("reset", load_pipeline(pipeline, {}), ["plain"], tell_nobody)
    assert reset(request, with_log=False, act=True).exit_code == 0
    destination()
    assert shop.load([plain])["plain"].error is None

    view = {"Name": "view", "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "SELECT 1"}
    client.create_table(DatabaseName="supaflow_shop", TableInput=view)  # type: ignore[arg-type]
    taken = {**orders, "table": "taken", "name": "view"}
    added: Any = client.get_table(DatabaseName="supaflow_shop", Name="orders")["Table"]
    added["StorageDescriptor"]["Columns"].append({"Name": "added", "Type": "string"})
    kept = ("Name", "TableType", "PartitionKeys", "Parameters", "StorageDescriptor")
    update: Any = client.update_table
    update(DatabaseName="supaflow_shop", TableInput={name: added[name] for name in kept})
    newer = str(shop.write("newer.parquet", [{"id": 2, "Added": 5}]))
    walk(
        "a column that Glue has", "set `columns.types: {Added: string}`", {**orders, "path": newer}
    )

    of_key: Any = pa.struct([("a", pa.int64())])
    odd = pa.table({"id": [1], "m": pa.array([[({"a": 1}, 2)]], pa.map_(of_key, pa.int64()))})
    ways: dict[str, Settings] = {
        "set `nested: JSON`": {},
        "give it another type with `columns.types`": {"columns.types": {"m": "string"}},
        "`columns.exclude`": {"columns.exclude": ["m"]},
    }
    for number, (begins, values) in enumerate(ways.items()):
        table = {"table": f"odd{number}", "path": str(shop.write(f"odd{number}.parquet", odd))}
        walk("a type that Athena cannot read", begins, table, **values)
    walk("a view of the name", "give the table another `name`", taken, name="other")


BOTH = pytest.mark.parametrize(
    ("fixture", "make", "prefix"), [("job", parquet, ""), ("loads", iceberg, "Iceberg: ")]
)


@BOTH
def test_hints_about_a_table_of_another_writer_are_followed_and_load(
    fixture: str, make: Any, prefix: str, request: pytest.FixtureRequest
) -> None:
    shop: Shop = make(request.getfixturevalue(fixture))
    path = str(shop.write("orders.parquet", [{"id": 1}]))
    orders: Settings = {"table": "orders", "path": path, "on_append_again": "ALLOW"}
    assert shop.load([orders])["orders"].error is None

    cases: list[tuple[str, str, Settings]] = [
        ("a pipeline of another name", "restore `name: shop` of the pipeline", {}),
        ("rows of another pipeline, apart", "or load into another `name`", {"name": "own"}),
        ("rows of another pipeline", "set `table_handling: APPEND`", {}),
    ]
    for name, begins, values in cases:
        shop.settings["name"] = re.sub("[ ,]+", "-", name)
        follow_one(__file__, f"{prefix}{name}", shop, begins, orders, **values)


@BOTH
def test_hints_about_tables_of_one_pipeline_are_followed_and_load(
    fixture: str, make: Any, prefix: str, request: pytest.FixtureRequest
) -> None:
    shop: Shop = make(request.getfixturevalue(fixture))
    path = str(shop.write("orders.parquet", [{"id": 1}]))
    bad = str(shop.write("bad.csv", "id,a\n1,x\n2,3\n"))
    orders: Settings = {"table": "orders", "name": "t", "path": path, "on_append_again": "ALLOW"}
    first = [orders, {"table": "kept", "name": "u_rejected", "path": path}]
    assert all(result.error is None for result in shop.load(first).values())

    owner = "another table of the pipeline"
    follow_one(
        __file__, f"{prefix}{owner}", shop, "another `name`", {**orders, "table": "returns"},
        name="returns",
    )  # fmt: skip
    space = f"{shop.settings['namespace']}_2"
    follow_one(
        __file__, f"{prefix}{owner}", shop, "or `namespace`", {**orders, "table": "refunds"},
        namespace=space,
    )  # fmt: skip
    rejects = {
        "table": "bad", "name": "u", "path": bad, "format": "CSV", "options": {"header": True},
        "columns": {"types": {"a": "int"}}, "on_bad_value": "QUARANTINE", "max_rejected": 1,
    }  # fmt: skip
    side = "a side table that is another table"
    follow_one(__file__, f"{prefix}{side}", shop, "another `name`", rejects, name="own")


def test_hints_about_a_table_that_has_moved_are_followed_and_load(job: Job) -> None:
    shop = parquet(job)
    path = str(shop.write("orders.parquet", [{"id": 1}]))
    orders: Settings = {"table": "orders", "name": "a", "path": path, "on_append_again": "ALLOW"}
    assert shop.load([orders])["orders"].error is None
    moved, name = {**orders, "name": "b"}, "a table that has moved"

    follow_one(
        __file__, name, shop, "restore the setting that has changed (`name`", moved, name="a"
    )
    anew = "load everything into the new table with another `name` for the pipeline"
    follow_one(__file__, name, shop, anew, moved, name="other")


NAMED: list[Settings] = [{"id": 1, "name": None}, {"id": 2, "name": "x"}]
NAME = NestedField(2, "name", StringType(), required=True)
LIST = ListType(3, StringType(), element_required=True)
MADE = {
    "required_1": NAME,
    "required_2": NAME,
    "listed": NestedField(2, "items", LIST),
    "timed_1": NestedField(2, "at", TimeType()),
    "timed_2": NestedField(2, "at", TimeType()),
    "tracked": NestedField(2, "_supa_index", StringType()),
}
"""Tables of another program: the second column of each."""
ADD = {"schema_changes": "ADD_COLUMNS"}
FOREIGN = {
    "a required column": Case(
        "set `schema_changes: EVOLVE`", NAMED, table={"name": "required_1"}, then=ADD, rows=2
    ),
    "a required column, without such rows": Case(
        "leave such rows out with `where`", NAMED, table={"name": "required_2"}, then=ADD,
        by_hand=_with(where="name IS NOT NULL"),
    ),
    "an element that is required": Case(
        "leave the column out with `columns: {exclude: ", [{"id": 1, "items": ["a", None]}],
        table={"name": "listed"},
    ),
    "a type that Spark cannot read": Case(
        "load into a table of another `name`", [{"id": 1, "at": "10:00"}],
        table={"name": "timed_1"}, values={"name": "own"},
    ),
    "a type that Spark cannot read, replaced": Case(
        "under `schema_changes: EVOLVE`: set `mode: OVERWRITE`", [{"id": 1, "at": "10:00"}],
        table={"name": "timed_2"}, then=ADD,
    ),
}  # fmt: skip


def test_hints_about_tables_of_another_program_are_followed_and_load(loads: Loads) -> None:
    shop = iceberg(loads)
    shop.settings["table_handling"] = "APPEND"
    catalog = load_catalog("maker", type="rest", uri=loads.uri, **loads.store)
    catalog.create_namespace_if_not_exists((loads.schema,))
    for name, column in MADE.items():
        schema = Schema(NestedField(1, "id", LongType()), column)
        catalog.create_table((loads.schema, name), schema)

    follow_all(__file__, shop, FOREIGN)

    path = str(shop.write("orders.parquet", [{"id": 1}]))
    tracked: Settings = {"table": "orders", "name": "tracked", "path": path}
    name = "a tracking column of another type"
    begins = "leave `_supa_index` out of `tracking_columns`"
    follow_one(__file__, name, shop, begins, tracked, tracking_columns=["_supa_id"])
