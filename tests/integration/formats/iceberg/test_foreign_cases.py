"""Tables of other programs, feature by feature and mode by mode: loaded as documented, or refused
before anything changes, as the plan says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, get_args

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
    VoidTransform,
)
from pyiceberg.types import (
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakeload.formats.iceberg.plan import judge, plan
from lakeload.formats.inspection import InspectionRequest
from lakeload.formats.plan import TablePlan, with_schema
from lakeload.launch.spec import Attempt
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import Mode, RunOptions, TableSpec
from lakeload_jobs.formats.registry import FORMATS
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.plan import look
from lakeload_jobs.sources.registry import Sources
from tests.integration.formats.iceberg.conftest import Loads, Row
from tests.integration.formats.iceberg.spark_catalog import open_in_spark

APPEND = RunOptions(table_handling="APPEND")
ID = NestedField(1, "id", LongType())
NAME = NestedField(2, "name", StringType())
REQUIRED = "is required in the destination's table, and null in at least one row"
SPARK = "a type that Spark cannot read"


def rows(*pairs: tuple[int, Any], column: str = "name", key: str = "id") -> tuple[Row, ...]:
    """Return rows of a key and one value."""
    return tuple({key: number, column: value} for number, value in pairs)


OLD = rows((1, "old"), (2, "old"))
NEW = rows((2, "new"), (3, "new"))


@dataclass(frozen=True)
class Case:
    """A table with the rows `old`, made by another program, and the rows `new` that are loaded.

    `refused` are parts of the errors of modes that are refused; `by_rows` says that nothing but the
    rows of the load tells. `schema` is that of the file of the load.
    """

    make: Callable[[Loads, Case], object]
    old: tuple[Row, ...] = OLD
    new: tuple[Row, ...] = NEW
    key: str = "id"
    refused: Mapping[Mode, str] = field(default_factory=dict)
    by_rows: bool = False
    schema: pa.Schema | None = None


def pyiceberg(*columns: NestedField, identifiers: tuple[int, ...] = (), **table: Any) -> Any:
    """Return what makes a table, with the rows that it has."""

    def make(loads: Loads, case: Case) -> None:
        catalog = load_catalog("maker", type="rest", uri=loads.uri, **loads.store)
        catalog.create_namespace_if_not_exists((loads.schema,))
        schema = Schema(*(columns or (ID, NAME)), identifier_field_ids=list(identifiers))
        made = catalog.create_table((loads.schema, "orders"), schema, **table)
        if case.old:
            made.append(pa.Table.from_pylist(list(case.old), made.schema().as_arrow()))

    return make


def spark(columns: str, *statements: str, properties: str = "", clause: str = "") -> Any:
    """Return what makes a table with Spark's SQL, and runs further statements."""

    def make(loads: Loads, case: Case) -> None:
        open_in_spark(loads.spark, loads.destination)
        loads.spark.sql(f"CREATE NAMESPACE lake.`{loads.schema}`")
        table = f"lake.`{loads.schema}`.orders"
        settings = f"TBLPROPERTIES ({properties})" if properties else ""
        loads.spark.sql(f"CREATE TABLE {table} ({columns}) {clause} {settings}")
        for statement in statements or ("INSERT INTO {t} VALUES (1, 'old'), (2, 'old')",):
            loads.spark.sql(statement.format(t=table))

    return make


def spec(*fields: tuple[int, Any, str]) -> PartitionSpec:
    """Return a partition spec of column ids, transforms and names."""
    parts = enumerate(fields, 1000)
    return PartitionSpec(*(PartitionField(of, at, how, name) for at, (of, how, name) in parts))


def refused(error: str, *modes: Mode) -> dict[Mode, str]:
    """Return the same error of several modes."""
    return dict.fromkeys(modes or ("APPEND", "UPSERT"), error)


def column(kind: Any, name: str = "v", *, required: bool = False) -> NestedField:
    """Return the second column of a table."""
    return NestedField(2, name, kind, required=required)


A_AND_L = StructType(
    NestedField(3, "a", LongType(), required=True),
    NestedField(4, "l", ListType(5, StringType(), element_required=True)),
)
A_AND_B = StructType(NestedField(3, "a", LongType()), NestedField(4, "b", StringType()))
COUNTS = MapType(3, StringType(), 4, LongType(), value_required=True)
LONGS = ListType(3, LongType(), element_required=True)
ODD = ("a.b", "c`d", "É x", 'q"t')
DOTTED = "my.id`s"
DELETES = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1L, 'old'), (2L, 'old'), (9L, 'x')",
    "DELETE FROM {t} WHERE id = 9",
)
MERGES_ON_READ = "'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
VERSION_1 = "it has format version 1, to which loads do not commit"
NESTED = "id BIGINT, v STRUCT<a: BIGINT, l: ARRAY<STRUCT<x: STRING>>>"
BY_NAME = "PARTITIONED BY (name)"

PYICEBERG = {
    "as it is": Case(pyiceberg()),
    "version 1": Case(
        pyiceberg(properties={"format-version": "1"}),
        refused=refused(VERSION_1),
    ),
    "version 3": Case(pyiceberg(properties={"format-version": "3"}), old=()),
    "required": Case(pyiceberg(ID, column(StringType(), "name", required=True))),
    "identifiers": Case(
        pyiceberg(ID, column(StringType(), "name", required=True), identifiers=(2,))
    ),
    "identifier in a struct": Case(
        pyiceberg(ID, column(A_AND_L, required=True), identifiers=(3,)),
        rows((1, {"a": 1, "l": ["x"]}), column="v"),
        rows((1, {"a": 2, "l": ["y"]}), column="v"),
    ),
    "by value": Case(pyiceberg(partition_spec=spec((2, IdentityTransform(), "name")))),
    "by bucket": Case(
        pyiceberg(
            partition_spec=spec((1, BucketTransform(4), "p`q"), (2, TruncateTransform(1), "x.y"))
        ),
        old=(),
    ),
    "by day": Case(
        pyiceberg(ID, column(TimestamptzType()), partition_spec=spec((2, DayTransform(), "v_day"))),
        (),
        rows((1, None), column="v"),
        schema=pa.schema([("id", pa.int64()), ("v", pa.timestamp("us", "UTC"))]),
    ),
    "by field": Case(
        pyiceberg(ID, column(A_AND_L), partition_spec=spec((3, IdentityTransform(), "v_a"))),
        (),
        rows((1, {"a": 1, "l": ["x"]}), (2, None), column="v"),
    ),
    "void": Case(
        pyiceberg(
            partition_spec=spec((1, VoidTransform(), "nothing")),
            properties={"format-version": "1"},
        ),
        refused=refused(VERSION_1),
    ),
    "sorted": Case(
        pyiceberg(
            sort_order=SortOrder(
                SortField(2, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),
                SortField(1, BucketTransform(4)),
            )
        )
    ),
    "struct": Case(
        pyiceberg(ID, column(A_AND_L)),
        rows((1, {"a": 1, "l": ["x"]}), (2, None), column="v"),
        rows((2, {"a": 2, "l": ["y"]}), (3, {"a": None, "l": []}), column="v"),
    ),
    "struct in another order": Case(
        pyiceberg(ID, column(A_AND_B)),
        rows((1, {"a": 1, "b": "x"}), column="v"),
        rows((2, {"b": "y", "a": 2}), column="v"),
    ),
    "map": Case(
        pyiceberg(ID, column(COUNTS)),
        rows((1, [("a", 1)]), column="v"),
        rows((1, [("b", 2)]), (2, None), column="v"),
        schema=pa.schema([("id", pa.int64()), ("v", pa.map_(pa.string(), pa.int64()))]),
    ),
    "null in a list": Case(
        pyiceberg(ID, column(LONGS)),
        rows((1, [1]), column="v"),
        rows((1, [2]), (2, [3, None]), column="v"),
        refused=refused(f"`v.element` {REQUIRED}", *get_args(Mode)),
        by_rows=True,
    ),
    "null in a map": Case(
        pyiceberg(ID, column(COUNTS)),
        rows((1, [("a", 1)]), column="v"),
        rows((1, [("b", 2), ("c", None)]), column="v"),
        refused=refused(f"`v.value` {REQUIRED}", *get_args(Mode)),
        by_rows=True,
        schema=pa.schema([("id", pa.int64()), ("v", pa.map_(pa.string(), pa.int64()))]),
    ),
    "names": Case(
        pyiceberg(ID, *(NestedField(at, name, StringType()) for at, name in enumerate(ODD, 2))),
        tuple({"id": number, **dict.fromkeys(ODD, "old")} for number in (1, 2)),
        tuple({"id": number, **dict.fromkeys(ODD, "new")} for number in (2, 3)),
    ),
    "name of the key": Case(
        pyiceberg(NestedField(1, DOTTED, LongType()), NAME),
        rows((1, "old"), (2, "old"), key=DOTTED),
        rows((2, "new"), (3, "new"), key=DOTTED),
        key=DOTTED,
    ),
    "twins": Case(
        pyiceberg(ID, column(LongType(), "ID"), NestedField(3, "name", StringType())),
        refused=refused("`id` and `ID` differ in nothing but case"),
    ),
    "twins in a struct": Case(
        pyiceberg(
            ID,
            column(StructType(NestedField(3, "a", LongType()), NestedField(4, "A", LongType()))),
        ),
        (),
        rows((1, {"a": 1}), column="v"),
        refused=refused("`v.a` and `v.A` differ in nothing but case"),
    ),
    "metadata's name": Case(
        pyiceberg(ID, column(LongType(), "_row_id")),
        rows((1, 1), column="_row_id"),
        rows((1, 2), column="_row_id"),
        refused=refused("Spark cannot merge rows beside `_row_id`", "UPSERT"),
    ),
    "uuid and fixed": Case(
        pyiceberg(ID, NAME, NestedField(3, "u", UUIDType()), NestedField(4, "f", FixedType(2))),
        tuple({**row, "u": bytes(16), "f": b"ab"} for row in OLD),
    ),
    "null in the new key": Case(
        pyiceberg(),
        ({"id": None, "name": "old"},),
        refused=refused("has 1 row with null in `id`, a column of the new key", "UPSERT"),
    ),
    "codec": Case(
        pyiceberg(properties={"write.parquet.compression-codec": "brotli"}),
        refused=refused("the codec `brotli`", *get_args(Mode)),
    ),
    "time": Case(
        pyiceberg(ID, column(TimeType())), (), refused=refused(f"`time` in the table, {SPARK}")
    ),
    "time in a list": Case(
        pyiceberg(ID, column(ListType(3, TimeType()))),
        (),
        refused=refused(f"`v.element` is `time` in the table, {SPARK}"),
    ),
    "nanoseconds": Case(
        pyiceberg(ID, column(TimestampNanoType()), properties={"format-version": "3"}),
        (),
        refused=refused(f"`timestamp_ns` in the table, {SPARK}"),
    ),
}
PLAIN = "id BIGINT, name STRING"
SPARKS = {
    "as it is": Case(spark(PLAIN)),
    "version 1": Case(
        spark(PLAIN, properties="'format-version' = '1'"),
        refused=refused(VERSION_1),
    ),
    "version 3": Case(spark(PLAIN, properties="'format-version' = '3'")),
    "deletes": Case(spark(PLAIN, *DELETES, properties=MERGES_ON_READ)),
    "deletes of version 3": Case(
        spark(PLAIN, *DELETES, properties=f"'format-version' = '3', {MERGES_ON_READ}")
    ),
    "required": Case(spark("id BIGINT NOT NULL, name STRING NOT NULL")),
    "identifiers": Case(
        spark(
            "id BIGINT NOT NULL, name STRING",
            "ALTER TABLE {t} SET IDENTIFIER FIELDS id",
            "INSERT INTO {t} VALUES (1, 'old'), (2, 'old')",
        )
    ),
    "specs": Case(
        spark(
            PLAIN,
            "INSERT INTO {t} VALUES (1, 'old')",
            "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)",
            "INSERT INTO {t} VALUES (2, 'old')",
            "ALTER TABLE {t} DROP PARTITION FIELD name",
            clause=BY_NAME,
        )
    ),
    "renamed": Case(
        spark(
            "id BIGINT, other STRING",
            "INSERT INTO {t} VALUES (1, 'old'), (2, 'old')",
            "ALTER TABLE {t} RENAME COLUMN other TO name",
            "ALTER TABLE {t} ALTER COLUMN name FIRST",
            clause="PARTITIONED BY (other)",
        )
    ),
    "ordered": Case(
        spark(
            PLAIN,
            "ALTER TABLE {t} WRITE ORDERED BY name DESC, bucket(4, id)",
            "INSERT INTO {t} VALUES (1, 'old'), (2, 'old')",
        )
    ),
    "nested": Case(
        spark(
            NESTED,
            "INSERT INTO {t} VALUES "
            "(1, named_struct('a', 1L, 'l', array(named_struct('x', 'old'))))",
        ),
        rows((1, {"a": 1, "l": [{"x": "old"}]}), column="v"),
        rows((1, {"a": 2, "l": [{"x": "new"}, None]}), (2, None), column="v"),
    ),
    "names": Case(
        spark(
            "id BIGINT, `a b.c``d` STRING",
            "INSERT INTO {t} VALUES (1, 'old'), (2, 'old')",
            clause="PARTITIONED BY (`a b.c``d`)",
        ),
        rows((1, "old"), (2, "old"), column="a b.c`d"),
        rows((2, "new"), (3, "new"), column="a b.c`d"),
    ),
    "ORC": Case(spark(PLAIN, properties="'write.format.default' = 'orc'")),
}
IN_MAKE_TEST = {
    *(("pyiceberg", "names", "UPSERT"), ("pyiceberg", "null in a list", "APPEND")),
    *(("pyiceberg", "null in the new key", "UPSERT"), ("pyiceberg", "metadata's name", "UPSERT")),
    ("spark", "deletes of version 3", "UPSERT"),
    ("pyiceberg", "struct in another order", "APPEND"),
}


def cases() -> Iterator[Any]:
    """Yield every case in every mode; `make test` runs few."""
    for maker, made in (("pyiceberg", PYICEBERG), ("spark", SPARKS)):
        for name, case in made.items():
            for mode in get_args(Mode):
                few = (maker, name, mode) in IN_MAKE_TEST
                marks = () if few else (pytest.mark.exhaustive,)
                yield pytest.param(case, mode, id=f"{maker}: {name}: {mode}", marks=marks)


def planned(loads: Loads, table: TableSpec) -> TablePlan:
    """Return the plan of a load."""
    job = loads.spec(table, options=APPEND, nested="NATIVE")
    aws = AwsSession(job.destination)
    attempt = Attempt(job.job_id, job.attempt_id, job.synced)
    request = InspectionRequest(job.destination, job.pipeline, attempt, options=APPEND)
    plans = plan(aws, (table,), request, local=True)
    with (
        closing(FORMATS["ICEBERG"].connect(loads.spark, job, aws)) as session,
        EventLog(job.events_path) as events,
    ):
        columns = look(session, Sources(job, aws), job, events)
    (planned,) = with_schema(plans, columns, job, (table,), judge)
    return planned


def state(table: Table) -> object:
    """Return all of a table that its readers see."""
    data = table.metadata
    return data.schemas, data.partition_specs, data.sort_orders, data.properties, data.snapshots


def keyed(row: Row, key: str) -> tuple[bool, Any, str]:
    """Return what sorts rows."""
    return row[key] is None, row[key], str(row)


@pytest.mark.parametrize(("case", "mode"), list(cases()))
def test_table_of_another_program_is_loaded_or_refused_unchanged(
    loads: Loads, case: Case, mode: Mode
) -> None:
    case.make(loads, case)
    key = (case.key,) if mode == "UPSERT" else ()
    table = loads.table(loads.file(case.new, case.schema), mode=mode, primary_key=key)
    before = loads.read()
    stored = before.scan().to_arrow().to_pylist()

    plan_of_load = planned(loads, table)
    assert state(loads.read()) == state(before)
    result = loads.load(table, options=APPEND, nested="NATIVE")

    error = plan_of_load.error or (plan_of_load.schema and plan_of_load.schema.error)
    if mode in case.refused:
        assert result.error is not None
        assert case.refused[mode] in result.error.message
        assert result.error.hint
        assert state(loads.read()) == state(before)
        assert case.by_rows or (error and error.message) == result.error.message
        return
    assert (result.error, error, plan_of_load.action) == (None, None, "LOAD")
    assert plan_of_load.writer == result.writer
    loaded = {row[case.key] for row in case.new}
    kept = [row for row in stored if mode == "APPEND" or row[case.key] not in loaded]
    wanted = [*(kept if mode != "OVERWRITE" else ()), *case.new]
    found = loads.rows(order=case.key)
    names = found[0].keys()
    wanted = [{name: row.get(name) for name in names} for row in wanted]
    assert sorted(found, key=lambda row: keyed(row, case.key)) == sorted(
        wanted, key=lambda row: keyed(row, case.key)
    )
    assert all(row.keys() <= names for row in case.new)
    assert [ref for ref in loads.read().metadata.refs if ref != "main"] == []
