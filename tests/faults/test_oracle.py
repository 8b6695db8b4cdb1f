"""The campaign's oracle must see what it is there for: each test spoils a lake in one way."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.faults.findings import Findings
from tests.faults.product.oracle import Snapshot, check_tables, check_truth
from tests.faults.product.syncs import Told
from tests.faults.product.world import World
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake

TABLE = "orders"
DATA = f"data-lake/test/shop/{TABLE}/part-job-1.gzip.parquet"
LOG = f"data-lake/test/_lakeload/shop/{TABLE}/log/{1:020d}"


@pytest.fixture
def world(lake: Lake, fault_proxy: FaultProxy, tmp_path: Path) -> World:
    """A lake that holds one job of one file, as it has to be."""
    found = World(lake, fault_proxy, tmp_path, "1")
    found.write("documents", [TABLE])
    rows = [
        {
            "id": number,
            "name": name,
            "_supa_job_id": "job-1",
            "_supa_index": index,
            "_supa_id": str(number),
        }
        for index, (number, name) in enumerate(found.rows(TABLE), 1)
    ]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    record = {"kind": "LOAD", "job_id": "job-1", "attempt_id": "a", "files": [{"key": DATA}]}
    put(found, DATA, file.getvalue())
    put(found, LOG + ".json", json.dumps(record).encode())
    put(found, LOG + ".end", b"")
    return found


def put(world: World, key: str, body: bytes) -> None:
    world.lake.server.s3.put_object(Bucket=world.lake.seeded.bucket, Key=key, Body=body)


def delete(world: World, key: str) -> None:
    world.lake.server.s3.delete_object(Bucket=world.lake.seeded.bucket, Key=key)


def findings(world: World) -> Findings:
    return check_tables(world, Snapshot(world, [TABLE]), [TABLE], {TABLE: {"job-1"}})


def told(status: str, code: int) -> Told:
    table = {"table": TABLE, "status": status, "error": None}
    return Told("job-1", code, "", {"attempt_id": "a", "tables": [table]})


def test_oracle_accepts_a_correct_lake(world: World) -> None:
    assert findings(world) == Findings()
    assert check_truth(world, told("LOADED", 0), [TABLE]) == []


def _copy(world: World) -> None:
    put(world, DATA.replace("job-1", "job-2"), world.lake.read(DATA))


def _upload(world: World) -> None:
    world.lake.server.s3.create_multipart_upload(Bucket=world.lake.seeded.bucket, Key=DATA)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda world: delete(world, DATA), Findings(lost=40)),
        (_copy, Findings(doubled=40)),
        (_upload, Findings(left=1)),
    ],
    ids=["lost", "doubled", "upload"],
)
def test_oracle_counts_lost_duplicate_and_orphan_objects(
    world: World, spoil: Callable[[World], None], expected: Findings
) -> None:
    spoil(world)
    found = findings(world)
    counted = (found.lost, found.doubled, found.left)
    assert counted == (expected.lost, expected.doubled, expected.left)


def test_oracle_detects_an_open_record_a_gap_and_a_wrong_result(world: World) -> None:
    delete(world, LOG + ".end")
    assert any("is not settled" in problem for problem in findings(world).problems)
    assert check_truth(world, told("LOADED", 0), [TABLE]) != []
    put(world, LOG + ".end", b"")
    assert check_truth(world, told("FAILED", 1), [TABLE]) != []
    assert check_truth(world, told("LOADED", 1), [TABLE]) != []
    put(world, LOG.replace("01", "03") + ".json", world.lake.read(LOG + ".json"))
    assert any("gap" in problem for problem in findings(world).problems)
