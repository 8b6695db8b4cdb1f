"""What a table is created with, where, and what becomes of two creators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T

from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    DestinationSpec,
    IcebergSpec,
    JobSpec,
    PartitionField,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.definitions import UNSORTED
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.metadata import NewTable
from lakeload_jobs.formats.iceberg.load.definition import (
    create,
    definition,
    ensure_namespace,
    iceberg_schema,
    new_location,
    schema_columns,
)
from tests.unit.launch.specs import job_spec

COLUMNS = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("at", T.TimestampType(), metadata={"comment": "when"}),
        T.StructField("tags", T.ArrayType(T.StringType(), containsNull=False)),
    ]
)
CATALOGS = {
    "GLUE": CatalogSpec(type="GLUE"),
    "NESSIE": CatalogSpec(type="NESSIE", uri="http://nessie.example.com"),
    "REST": CatalogSpec(type="REST", uri="http://catalog.example.com"),
}
BUSY = CatalogError("the catalog is busy", code="ServiceUnavailable", status=503)


def destination(catalog: str, **changes: Any) -> DestinationSpec:
    iceberg = IcebergSpec(catalog=CATALOGS[catalog], **changes)
    return DestinationSpec("lake", "us-east-1", "raw", table_format="ICEBERG", iceberg=iceberg)


def spec(folder: Path, catalog: str = "GLUE", **changes: Any) -> tuple[JobSpec, TableSpec]:
    found = replace(job_spec(RunFolder(folder)), destination=destination(catalog, **changes))
    return found, found.tables[0]


@dataclass
class Store:
    """A `TableStore` in memory. `answers` are raised after a call has had its effect."""

    namespaces: dict[str, str] = field(default_factory=dict)
    tables: dict[tuple[str, str], NewTable] = field(default_factory=dict)
    answers: list[Exception] = field(default_factory=list)
    lost: list[Exception] = field(default_factory=list)
    """Raised before a call has any effect."""
    asked: list[str] = field(default_factory=list)

    def _answer(self, name: str, *, done: bool) -> None:
        if not done:
            self.asked.append(name)
        if raised := self.answers if done else self.lost:
            raise raised.pop(0)

    def open(self) -> None:
        raise NotImplementedError

    def namespace_location(self, namespace: str) -> str | None:
        self.asked.append("namespace_location")
        return self.namespaces.get(namespace)

    def create_namespace(self, namespace: str, location: str | None) -> None:
        self._answer("create_namespace", done=False)
        if namespace in self.namespaces:
            raise CommitRejected("the namespace exists already")
        self.namespaces[namespace] = location or ""
        self._answer("create_namespace", done=True)

    def load(self, namespace: str, name: str) -> ReadTable | None:
        self.asked.append("load")
        return ReadTable(namespace, name, {}, "") if (namespace, name) in self.tables else None

    def create(self, namespace: str, name: str, table: NewTable, location: str | None) -> ReadTable:
        self._answer("create", done=False)
        if (namespace, name) in self.tables:
            raise CommitRejected("the table exists already")
        self.tables[namespace, name] = table
        self._answer("create", done=True)
        return ReadTable(namespace, name, {"location": location}, "")

    def drop(self, table: ReadTable) -> None:
        raise NotImplementedError

    def commit(
        self,
        table: ReadTable,
        requirements: Iterable[Mapping[str, Any]],
        updates: Iterable[Mapping[str, Any]],
    ) -> ReadTable:
        raise NotImplementedError


def test_columns_of_spark_are_optional_with_ids_from_1() -> None:
    assert iceberg_schema(COLUMNS) == {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "required": False, "type": "long"},
            {"id": 2, "name": "at", "required": False, "type": "timestamptz", "doc": "when"},
            {
                "id": 3,
                "name": "tags",
                "required": False,
                "type": {
                    "type": "list",
                    "element-id": 4,
                    "element": "string",
                    "element-required": True,
                },
            },
        ],
    }


@pytest.mark.parametrize("kind", [T.TimeType(), T.DayTimeIntervalType(), T.YearMonthIntervalType()])
def test_a_type_that_iceberg_does_not_have_is_refused(kind: T.DataType) -> None:
    nested = T.StructType([T.StructField("list", T.ArrayType(kind))])
    with pytest.raises(InvalidInput) as failed:
        iceberg_schema(T.StructType([T.StructField("a", nested)]))
    assert f"the column `list` is `{kind.simpleString()}`" in str(failed.value)


def test_types_are_written_as_iceberg_writes_them() -> None:
    columns = T.StructType([*COLUMNS.fields, T.StructField("d", T.DecimalType(9, 2))])
    assert schema_columns(iceberg_schema(columns)) == {
        "id": "long", "at": "timestamptz", "tags": "list<string>", "d": "decimal(9, 2)",
    }  # fmt: skip


def test_a_key_is_required_and_sorts_what_is_merged(tmp_path: Path) -> None:
    job, table = spec(tmp_path)
    made = definition(job, replace(table, mode="UPSERT"), COLUMNS, ["ID"], [])
    assert made.key == ("id",)
    assert made.schema["identifier-field-ids"] == [1]
    assert made.schema["fields"][0]["required"]
    assert made.order is not None
    assert [one["source-id"] for one in made.order["fields"]] == [1]
    assert made.properties["write.distribution-mode"] == "hash"
    appended = definition(job, table, COLUMNS, ["id"], [])
    assert (appended.key, appended.order) == (("id",), None)
    assert "write.distribution-mode" not in appended.properties


def test_a_new_table_has_the_version_and_no_property_of_it(tmp_path: Path) -> None:
    job, table = spec(tmp_path, format_version=3)
    made = definition(job, table, COLUMNS, (), [PartitionField("day", "at")], "all orders", ["id"])
    new = made.new_table()
    assert (new.format_version, new.order) == (3, UNSORTED)
    assert new.spec["fields"][0]["name"] == "at_day"
    assert new.properties == {
        "comment": "all orders",
        "commit.retry.num-retries": "20",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.merge.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.delete.mode": "merge-on-read",
        "lakeload.created-by": "shop",
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.parquet.bloom-filter-adaptive-enabled": "true",
    }


def test_files_of_a_new_table_of_nessie_are_left_to_nessie_by_every_client(tmp_path: Path) -> None:
    job, table = spec(tmp_path, "NESSIE")
    found = definition(job, table, COLUMNS, (), []).new_table().properties
    assert found["gc.enabled"] == "false"
    assert found["write.metadata.delete-after-commit.enabled"] == "false"
    alone = replace(table, table_properties={"gc.enabled": "true"})
    assert definition(job, alone, COLUMNS, (), []).new_table().properties["gc.enabled"] == "true"


@pytest.mark.parametrize(
    ("columns", "fields", "said"),
    [
        (COLUMNS, [PartitionField("day", "id")], "`day` does not apply"),
        (
            T.StructType().add("a.b", T.LongType()).add("a", T.StructType().add("b", T.LongType())),
            [],
            r"two columns are called `a\.b`",
        ),
    ],
)
def test_what_no_table_can_have_is_refused(
    tmp_path: Path, columns: T.StructType, fields: list[PartitionField], said: str
) -> None:
    job, table = spec(tmp_path)
    with pytest.raises(InvalidInput, match=said):
        definition(job, table, columns, (), fields)


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_namespace_is_made_once_where_the_destination_wants_it(catalog: str) -> None:
    store, to = Store(), destination(catalog)
    wanted = "" if catalog == "REST" else "s3://lake/raw/shop"
    assert ensure_namespace(store, to, "shop") == wanted
    assert ensure_namespace(store, to, "shop") == wanted
    assert store.asked.count("create_namespace") == 1


@pytest.mark.parametrize("error", [CommitUnknown("no answer"), BUSY])
def test_a_namespace_that_is_there_after_an_error_is_taken(error: Exception) -> None:
    assert ensure_namespace(Store(answers=[error]), destination("GLUE"), "shop")


def test_a_namespace_of_another_load_is_taken() -> None:
    class Crowded(Store):
        def create_namespace(self, namespace: str, location: str | None) -> None:
            super().create_namespace(namespace, location)
            super().create_namespace(namespace, location)

    assert ensure_namespace(Crowded(), destination("GLUE"), "shop") == "s3://lake/raw/shop"


def test_a_namespace_that_cannot_be_made_is_an_error() -> None:
    with pytest.raises(CatalogError, match="busy"):
        ensure_namespace(Store(lost=[BUSY]), destination("GLUE"), "shop")
    with pytest.raises(LoadFailed, match="did not confirm") as failed:
        ensure_namespace(Store(lost=[CommitUnknown("lost")]), destination("REST"), "shop")
    assert failed.value.retryable


@pytest.mark.parametrize(
    ("location", "fits"),
    [("s3://lake/raw/shop/", True), ("s3a://lake/raw/shop", True), ("", True),
     ("s3://lake/other/shop", False)],
)  # fmt: skip
def test_a_namespace_that_lies_elsewhere_is_refused(location: str, fits: bool) -> None:
    store = Store(namespaces={"shop": location})
    if fits:
        assert ensure_namespace(store, destination("GLUE"), "shop") == location
    else:
        with pytest.raises(LoadFailed, match="is located at `s3://lake/other/shop`"):
            ensure_namespace(store, destination("GLUE"), "shop")
    assert ensure_namespace(store, destination("REST"), "shop") == location


@pytest.mark.parametrize(
    ("catalog", "namespace", "place"),
    [
        ("GLUE", "s3://lake/raw/shop/", "s3://lake/raw/shop/orders"),
        ("GLUE", "", "s3://lake/raw/shop.db/orders"),
        ("NESSIE", "s3://lake/raw/shop", "s3://lake/raw/shop/orders_"),
        ("NESSIE", "", "s3://lake/raw/shop/orders_"),
    ],
)
def test_tables_lie_where_javas_catalogs_place_them(
    catalog: str, namespace: str, place: str
) -> None:
    found = new_location(destination(catalog), "shop", "orders", namespace) or ""
    assert found.startswith(place)
    # Nessie's tables of one name, on two branches, share no file.
    assert len(found) - len(place) == (36 if catalog == "NESSIE" else 0)
    assert new_location(destination("REST"), "shop", "orders", namespace) is None


def test_a_table_is_made_with_what_iceberg_says_of_new_ones(tmp_path: Path) -> None:
    job, table = spec(tmp_path)
    made = definition(job, table, COLUMNS, (), ())
    store = Store()
    found = create(store, table, made, "s3://lake/raw/shop/orders")
    assert found is not None
    assert found.metadata["location"] == "s3://lake/raw/shop/orders"
    codec = "write.parquet.compression-codec"
    assert store.tables["shop", "orders"].properties[codec] == "zstd"
    own = replace(made, properties={**made.properties, codec: "snappy"})
    store = Store()
    assert create(store, table, own, "s3://lake/raw/shop/orders")
    assert store.tables["shop", "orders"].properties[codec] == "snappy"
    store = Store()
    assert create(store, table, made, None)
    assert codec not in store.tables["shop", "orders"].properties


@pytest.mark.parametrize(
    ("store", "there"),
    [
        (Store(lost=[CommitRejected("the table exists already")]), False),
        (Store(lost=[CommitUnknown("no answer")]), False),
        (Store(answers=[CommitUnknown("no answer")]), True),
        (Store(answers=[BUSY]), True),
    ],
)
def test_a_table_that_others_or_nobody_knows_who_made_is_looked_at_anew(
    tmp_path: Path, store: Store, there: bool
) -> None:
    job, table = spec(tmp_path)
    assert create(store, table, definition(job, table, COLUMNS, (), ()), None) is None
    assert bool(store.tables) == there


def test_a_table_that_is_refused_is_an_error(tmp_path: Path) -> None:
    job, table = spec(tmp_path)
    with pytest.raises(CatalogError, match="busy"):
        create(Store(lost=[BUSY]), table, definition(job, table, COLUMNS, (), ()), None)


def test_a_type_of_version_3_needs_a_table_of_version_3(tmp_path: Path) -> None:
    columns: T.StructType = T.StructType().add("v", T.VariantType())
    job, table = spec(tmp_path)
    with pytest.raises(InvalidInput, match="`v` is of the type `variant`"):
        create(Store(), table, definition(job, table, columns, (), ()), None)
    job, table = spec(tmp_path, format_version=3)
    assert create(Store(), table, definition(job, table, columns, (), ()), None)
