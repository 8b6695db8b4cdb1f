"""The oracle of the Iceberg campaign must see what it is there for: each test spoils a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tests.faults.findings import Findings
from tests.faults.iceberg.oracle import JOB_ID, Oracle
from tests.faults.iceberg.rows import FIRST, JOB, NEXT, Mode, loaded, rejected_of, rows_of
from tests.faults.iceberg.world import World
from tests.faults.iceberg.worlds import glue_world
from tests.faults.product.syncs import Told
from tests.servers.ministack import AwsServer, Lake

TABLE = "orders"
_FIELDS: list[pa.Field[Any]] = [
    pa.field("_supa_job_id", pa.string()),
    pa.field("id", pa.int64()),
    pa.field("version", pa.int64()),
]
SCHEMA = pa.schema(_FIELDS)


@pytest.fixture
def world(aws: AwsServer, lake: Lake, tmp_path: Path) -> Iterator[World]:
    """A lake in Glue, by pyiceberg alone."""
    with glue_world(aws, lake, tmp_path, "1") as found:
        found.modes[TABLE] = "APPEND"
        yield found


def opened(world: World) -> Catalog:
    catalog = world.open_directly()
    assert isinstance(catalog, Catalog)
    return catalog


@pytest.fixture
def table(world: World) -> Table:
    """A table with two jobs, as it has to be."""
    catalog = opened(world)
    place = f"s3://{world.lake.seeded.bucket}/data-lake/test/{world.schema}"
    catalog.create_namespace(world.schema, {"location": place})
    made = catalog.create_table((world.schema, TABLE), SCHEMA)
    for job in (FIRST, JOB):
        made.append(rows(job), snapshot_properties={JOB_ID: job})
    return made


def rows(job: str) -> pa.Table:
    """Return what an append of a job writes."""
    names = SCHEMA.names
    found = [dict(zip(names, row, strict=True)) for row in loaded([], "APPEND", job)]
    return pa.Table.from_pylist(found, SCHEMA)


def findings(world: World, *told: Told) -> Findings:
    return Oracle(world).check(TABLE, told)


def said(status: str, job: str, **error: Any) -> Told:
    result = {"table": TABLE, "status": status, "error": error or None}
    return Told(job, 0, "", {"tables": [result]})


def test_oracle_accepts_a_complete_table(world: World, table: Table) -> None:
    assert findings(world, said("LOADED", JOB)) == Findings()
    assert Oracle(world).jobs(TABLE) == [FIRST, JOB]
    assert Oracle(world).denies(TABLE, said("LOADED", JOB)) == []


def test_oracle_detects_a_job_committed_twice(world: World, table: Table) -> None:
    table.append(rows(JOB), snapshot_properties={JOB_ID: JOB})
    assert f"{TABLE}: {JOB} is 2 times in the lineage" in findings(world).problems


def test_oracle_counts_rows_without_a_job_as_duplicates(world: World, table: Table) -> None:
    table.append(rows(JOB))
    assert findings(world).doubled == len(rows_of(JOB))


def test_oracle_counts_missing_rows_as_lost(world: World, table: Table) -> None:
    table.delete("id = 3")
    assert findings(world).lost == 1


def test_oracle_detects_an_incomplete_snapshot_before_a_complete_one(
    world: World, table: Table
) -> None:
    half = rows(NEXT)
    table.append(half.slice(0, 10), snapshot_properties={JOB_ID: NEXT})
    table.append(half.slice(10))
    assert findings(world).lost == 20


def test_oracle_detects_an_orphan_branch(world: World, table: Table) -> None:
    head = table.metadata.current_snapshot_id
    assert head is not None
    table.manage_snapshots().create_branch(head, "lakeload_left").commit()
    assert findings(world).left == 1


def test_oracle_detects_open_uploads_and_files_of_no_snapshot(
    world: World, table: Table, lake: Lake
) -> None:
    oracle, s3, bucket = Oracle(world), lake.server.s3, lake.seeded.bucket
    assert (oracle.uploads(TABLE), oracle.files(TABLE)) == (Findings(), Findings())
    folder = table.location().removeprefix(f"s3://{bucket}/") + "/data/"
    s3.create_multipart_upload(Bucket=bucket, Key=f"{folder}a.parquet")
    s3.put_object(Bucket=bucket, Key=f"{folder}b.parquet", Body=b"b")
    assert (oracle.uploads(TABLE).left, oracle.files(TABLE).left) == (1, 1)
    s3.delete_object(Bucket=bucket, Key=f"{folder}b.parquet")
    (file, _) = lake.keys(folder)
    s3.delete_object(Bucket=bucket, Key=file)
    (problem,) = oracle.files(TABLE).problems
    assert file in problem


def test_oracle_detects_lost_duplicate_and_unowned_rejected_records(
    world: World, table: Table
) -> None:
    world.rejecting.add(TABLE)
    kinds: list[pa.Field[Any]] = [
        pa.field("_supa_job_id", pa.string()),
        pa.field("raw_record", pa.string()),
    ]
    names = pa.schema(kinds)

    def add(*found: tuple[str, str]) -> Findings:
        columns = [list(column) for column in zip(*found, strict=True)]
        side.append(
            pa.Table.from_arrays([pa.array(one, pa.string()) for one in columns], schema=names)
        )
        return findings(world)

    whole = [(job, record) for job in (FIRST, JOB) for record in rejected_of(job)]
    assert findings(world).lost == len(whole) == 5
    side = opened(world).create_table((world.schema, f"{TABLE}_rejected"), names)
    assert add(*whole) == Findings()
    assert add(whole[0]).doubled == 1
    assert add((NEXT, rejected_of(NEXT)[0])).doubled == 2


@pytest.mark.parametrize(
    ("status", "job", "error"),
    [
        ("LOADED", NEXT, {}),
        ("NO_OP", NEXT, {}),
        ("FAILED", JOB, {"message": "nothing was committed"}),
        ("FAILED", JOB, {"message": "the catalog does not answer"}),
    ],
)
def test_oracle_detects_a_wrong_reported_result(
    world: World, table: Table, status: str, job: str, error: dict[str, str]
) -> None:
    assert Oracle(world).denies(TABLE, said(status, job, **error))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("APPEND", 40 + 40 + 30), ("OVERWRITE", 30), ("UPSERT", 20 + 25 + 28)],
)
def test_oracle_expects_the_rows_of_each_mode(mode: Mode, expected: int) -> None:
    held = loaded(loaded(loaded([], mode, FIRST), mode, JOB), mode, NEXT)
    assert len(held) == expected
