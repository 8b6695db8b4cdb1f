"""What is read of an Iceberg table, from its metadata as the specification writes it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import (
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.rules.branches import staging_branch, staging_branches
from tests.unit.formats.iceberg.metadata import LOCATION, open_table, snapshot

ATTEMPT = "3f1e0c5a-7c1e-4f1b-9d55-1f0e6e3b2a10"


def test_facts_are_those_of_the_metadata() -> None:
    first, second = snapshot(1), snapshot(2, 1, lakeload__rows="7")
    table = open_table(first, second, properties={"lakeload.seq": "2"}, refs={"main": 2, "tag": 1})
    facts = facts_of(table)
    assert facts.location == LOCATION
    assert facts.properties == {"lakeload.seq": "2"}
    assert facts.refs == {"main": 2, "tag": 1}
    assert facts.columns == {"id": "long", "price": "decimal(12, 2)"}
    assert (facts.required, facts.identifiers) == (frozenset({"id"}), ("id",))
    assert facts.metadata_location == f"{LOCATION}/metadata/3.metadata.json"
    assert facts.snapshots[2].parent == 1
    assert facts.snapshots[2].summary == {"operation": "append", "lakeload.rows": "7"}
    assert facts.snapshots[1].parent is None


def test_an_empty_table_has_facts_too() -> None:
    facts = facts_of(open_table())
    assert (facts.refs, facts.snapshots) == ({}, {})


def test_partition_spec_is_shown_as_in_partition_by() -> None:
    assert facts_of(open_table()).partitions == ("bucket(16, id)", "price")


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_nested_columns_are_written_without_their_comments(version: str) -> None:
    schema = Schema(
        NestedField(1, "tags", ListType(2, StringType(), element_required=False), doc="words"),
        NestedField(3, "by", MapType(4, StringType(), 5, LongType()), required=True),
        NestedField(6, "at", StructType(NestedField(7, "x y", FixedType(4), doc="a (b)"))),
        NestedField(8, "seen", TimestamptzType()),
    )
    metadata = new_table_metadata(
        schema,
        UNPARTITIONED_PARTITION_SPEC,
        UNSORTED_SORT_ORDER,
        LOCATION,
        {"format-version": version},
    )
    facts = facts_of(ReadTable("shop", "t", metadata.model_dump(mode="json"), "1.json"))
    assert facts.columns == {
        "tags": "list<string>",
        "by": "map<string, long>",
        "at": "struct<8: x y: optional fixed[4]>",
        "seen": "timestamptz",
    }
    assert facts.uuid == str(metadata.table_uuid)
    assert (facts.format_version, facts.partitions) == (int(version), ())
    assert (facts.refs, facts.snapshots) == ({}, {})


def test_staging_branches_are_distinguished_from_user_branches() -> None:
    at = datetime(2026, 11, 21, 10, tzinfo=UTC)
    name = staging_branch(at, ATTEMPT)
    table = open_table(snapshot(1), snapshot(2, 1), refs={"main": 1, "audit": 1, name: 2})
    (left,) = staging_branches(facts_of(table).refs)
    assert (left.name, left.attempt_id, left.created_at, left.snapshot_id) == (name, ATTEMPT, at, 2)
