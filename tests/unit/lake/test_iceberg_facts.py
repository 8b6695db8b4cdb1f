"""What is read of an Iceberg table, from its metadata as the specification writes it."""

from __future__ import annotations

from datetime import UTC, datetime

from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.catalogs.catalog import facts_of, partition_fields
from lakeload_jobs.formats.iceberg.orphan_branches import left_branches
from lakeload_jobs.formats.iceberg.rules.history import staging_branch
from tests.unit.lake.iceberg_metadata import LOCATION, open_table, snapshot

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


def test_the_partition_spec_is_as_documents_write_it() -> None:
    assert partition_fields(open_table()) == (
        PartitionField("bucket", "id", 16),
        PartitionField("identity", "price"),
    )


def test_branches_of_attempts_are_told_from_those_of_people() -> None:
    at = datetime(2026, 11, 21, 10, tzinfo=UTC)
    name = staging_branch(at, ATTEMPT)
    table = open_table(snapshot(1), snapshot(2, 1), refs={"main": 1, "audit": 1, name: 2})
    (left,) = left_branches(facts_of(table))
    assert (left.name, left.attempt, left.created_at, left.snapshot_id) == (name, ATTEMPT, at, 2)
