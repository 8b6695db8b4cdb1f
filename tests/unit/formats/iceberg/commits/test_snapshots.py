"""Snapshots without a partition, in tables that pyiceberg has written and reads again."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, StaticTable, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.manifests import (
    DELETED,
    read_list,
    read_manifest,
    read_paths,
    write_list,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    add_snapshot,
    set_branch,
    updated,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import new_snapshot_id, without_partition
from lakeload_jobs.formats.iceberg.commits.values import avro_name, binary, leaves, ordered, stored
from tests.unit.formats.iceberg.commits.own_table import BY_CITY, OwnTable, data_file


class Folder:
    """Metadata files of this machine."""

    def read(self, location: str) -> bytes:
        return Path(location.removeprefix("file://")).read_bytes()

    def write(self, location: str, data: bytes) -> None:
        Path(location.removeprefix("file://")).write_bytes(data)


class OneTable(NoopCatalog):
    """A catalog of one table, of which it forgets nothing and compares nothing."""

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Take a commit."""
        place = table.metadata_location
        changed = update_table_metadata(table.metadata, updates, metadata_location=place)
        return CommitTableResponse.model_validate({"metadata": changed, "metadata-location": place})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of three partitions, written by four appends."""
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "round", StringType(), required=False),
    )
    place = f"{tmp_path}/lake"
    Path(place, "metadata").mkdir(parents=True)
    metadata = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, place, {}
    )
    first = f"{place}/metadata/v1.json"
    made = Table(("shop", "rejected"), metadata, first, PyArrowFileIO(), OneTable("test"))
    with made.update_spec() as update:
        update.add_identity("round")
    for rows, name in enumerate(("a", "b", "c", "b"), start=1):
        ids = pa.array(range(rows), pa.int64())
        made.append(pa.table({"id": ids, "round": [name] * rows}))
    return made


def metadata_of(table: Table) -> Json:
    found: Json = table.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def left(table: Table, partition: tuple[str, str], metadata: Json | None = None) -> Json | None:
    """The metadata after a commit of the snapshot without a partition."""
    metadata, identifier = metadata or metadata_of(table), new_snapshot_id()
    made = without_partition(
        Folder(), metadata, partition, identifier, {"who": "we"}, now_ms=9_999_999_999_999
    )
    if made is None:
        return None
    updates = [add_snapshot(made), set_branch(MAIN, identifier)]
    return updated(metadata, updates, replaces=table.metadata_location, now_ms=9_999_999_999_999)


def read(metadata: Mapping[str, Any], folder: Path) -> Table:
    import json

    place = folder / "after.metadata.json"
    place.write_text(json.dumps(metadata), encoding="utf-8")
    return StaticTable.from_metadata(str(place))


def rounds(table: Table) -> list[str]:
    names: list[str] = table.scan().to_arrow()["round"].to_numpy(zero_copy_only=False).tolist()
    return sorted(names)


def test_paths_of_manifests_are_those_of_live_files_with_their_bytes(table: Table) -> None:
    after = left(table, ("round", "b"))
    assert after is not None
    rows = read_list(Folder(), after["snapshots"][-1])

    found = [read_paths(Folder(), row) for row in rows]

    live = {
        entry["data_file"]["file_path"]: entry["data_file"]["file_size_in_bytes"]
        for row in rows
        for entry in read_manifest(Folder(), row).entries
        if entry["status"] != DELETED
    }
    assert {place: size for paths in found for place, size in paths.items()} == live
    assert {Path(place).stat().st_size for place in live} == set(live.values())
    before = {task.file.file_path for task in table.scan().plan_files()}
    assert len(live) == 2 < len(before)
    assert live.keys() < before


def test_partition_is_gone_and_the_others_stay(table: Table, tmp_path: Path) -> None:
    after = left(table, ("round", "b"))
    assert after is not None
    now = read(after, tmp_path)
    assert rounds(table) == ["a", "b", "b", "b", "b", "b", "b", "c", "c", "c"]
    assert rounds(now) == ["a", "c", "c", "c"]
    snapshot = now.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    told = snapshot.summary
    assert (told["deleted-records"], told["deleted-data-files"]) == ("6", "2")
    assert (told["total-records"], told["total-data-files"], told["who"]) == ("4", "2", "we")
    assert snapshot.summary.operation.value == "delete"


def test_manifests_without_the_partition_are_not_written_again(table: Table) -> None:
    before = {
        row["manifest_path"] for row in read_list(Folder(), metadata_of(table)["snapshots"][-1])
    }
    after = left(table, ("round", "c"))
    assert after is not None
    rows = read_list(Folder(), after["snapshots"][-1])
    new = [row for row in rows if row["manifest_path"] not in before]
    assert len(rows) == len(before)
    assert [(row["deleted_files_count"], row["existing_files_count"]) for row in new] == [(1, 0)]


def test_partition_that_is_not_there_makes_no_snapshot(table: Table) -> None:
    assert left(table, ("round", "nosuch")) is None


def test_removed_partition_is_not_removed_twice(table: Table, tmp_path: Path) -> None:
    after = left(table, ("round", "b"))
    assert after is not None
    assert left(table, ("round", "b"), after) is None
    last = left(table, ("round", "a"), after)
    assert last is not None
    assert rounds(read(last, tmp_path)) == ["c", "c", "c"]


def test_rows_keep_their_ids_in_a_table_of_version_3(table: Table) -> None:
    metadata = updated(
        metadata_of(table),
        [{"action": "upgrade-format-version", "format-version": 3}],
        replaces=table.metadata_location,
        now_ms=9_999_999_999_000,
    )
    after = left(table, ("round", "b"), metadata)
    assert after is not None
    snapshot = after["snapshots"][-1]
    rows = read_list(Folder(), snapshot)
    assert (snapshot["first-row-id"], after["next-row-id"]) == (0, 4)
    entries = [entry for row in rows for entry in read_manifest(Folder(), row).entries]
    ids = {
        entry["data_file"]["partition"]["round"]: entry["data_file"].get("first_row_id")
        for entry in entries
        if entry["status"] != 2
    }
    assert sorted(ids.items()) in ([("a", 0), ("c", 1)], [("a", 3), ("c", 0)])
    # Once given, an id stays, whoever writes the manifest again.
    again = left(table, ("round", "a"), after)
    assert again is not None
    kept = [
        entry["data_file"].get("first_row_id")
        for row in read_list(Folder(), again["snapshots"][-1])
        for entry in read_manifest(Folder(), row).entries
        if entry["status"] != 2
    ]
    assert kept == [ids["c"]]
    assert again["next-row-id"] == 4


def test_files_of_other_partitions_are_not_guessed(table: Table) -> None:
    with pytest.raises(Unsupported, match="not partitioned by `city`"):
        left(table, ("city", "b"))


CASES: dict[str, tuple[PrimitiveType, st.SearchStrategy[Any]]] = {
    "boolean": (BooleanType(), st.booleans()),
    "int": (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "long": (LongType(), st.integers(-(2**63), 2**63 - 1)),
    "double": (DoubleType(), st.floats(allow_nan=False)),
    "date": (DateType(), st.integers(-(2**31), 2**31 - 1)),
    "timestamp": (TimestampType(), st.integers(-(2**63), 2**63 - 1)),
    "timestamptz": (TimestamptzType(), st.integers(-(2**63), 2**63 - 1)),
    "string": (StringType(), st.text()),
    "binary": (BinaryType(), st.binary()),
    "decimal(9, 2)": (
        DecimalType(9, 2),
        st.decimals(-(10**6), 10**6, places=2, allow_nan=False, allow_infinity=False),
    ),
}


@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
def test_values_are_written_as_pyiceberg_writes_them(kind: str, data: st.DataObject) -> None:
    iceberg, values = CASES[kind]
    value = data.draw(values)
    unscaled = int(value.scaleb(2)) if isinstance(value, Decimal) else value
    assert binary(kind, unscaled) == to_bytes(iceberg, value)


@given(st.decimals(places=10, min_value=-(10**27), max_value=10**27))
def test_decimal_partition_is_stored_whole_and_in_order(value: Decimal) -> None:
    kind = "decimal(38, 10)"
    found = stored(kind, format(value, "f"))
    assert (len(found), ordered(kind, found)) == (16, int(value.scaleb(10, Context(prec=50))))
    assert stored(kind, None) is None


@pytest.mark.parametrize(
    ("name", "avro"),
    [
        ("city_2", "city_2"),
        ("at hour", "at_x20hour"),
        ("2nd", "_2nd"),
        ("a-b.c", "a_x2Db_x2Ec"),
        ("é", "_xE9"),
        ("🎁", "_xD83C_xDF81"),
    ],
)
def test_names_of_partition_fields_are_those_of_iceberg_in_avro(name: str, avro: str) -> None:
    assert avro_name(name) == avro


def test_primitive_fields_are_found_at_every_depth() -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "a", "type": "long"},
            {"id": 2, "name": "b", "type": {"type": "list", "element-id": 3, "element": "string"}},
            {
                "id": 4,
                "name": "c",
                "type": {
                    "type": "map",
                    "key-id": 5,
                    "key": "int",
                    "value-id": 6,
                    "value": {"type": "struct", "fields": [{"id": 7, "name": "d", "type": "date"}]},
                },
            },
        ],
    }
    assert {leaf.id: leaf.kind for leaf in leaves(schema)} == {
        1: "long",
        3: "string",
        5: "int",
        7: "date",
    }


def test_deletes_of_single_rows_go_with_their_partition(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=BY_CITY)
    table.append(*(data_file(name, 3, city=name) for name in "ab"))
    snapshot = table.snapshot()
    deletes = table.manifest(
        *({**data_file(f"{name}-deletes", 1, city=name), "content": 1} for name in "ab")
    )
    numbers = {"sequence_number": 1, "min_sequence_number": 1, "content": 1}
    rows = [*table.rows(), {**deletes.row, **numbers}]
    snapshot["manifest-list"] = write_list(
        table.files,
        table.metadata,
        rows,
        snapshot_id=snapshot["snapshot-id"],
        parent=None,
        sequence=1,
        first_row_id=None,
    )

    number = new_snapshot_id()
    made = without_partition(
        table.files, table.metadata, ("city", "a"), number, {}, now_ms=9_999_999_999_999
    )

    assert made is not None
    table.commit(made)
    places = [entry["data_file"]["file_path"] for entry in table.entries()]
    assert places == ["s3://lake/b-deletes.parquet", "s3://lake/b.parquet"]
    told = made["summary"]
    assert (told["deleted-records"], told["removed-position-deletes"]) == ("3", "1")
