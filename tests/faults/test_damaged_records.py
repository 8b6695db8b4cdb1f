"""A publish that stopped half-way and whose other uploads are gone: nothing is loaded until a
person has decided, and then every row is there once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakeload.demo.aws import loader_policy
from tests.faults.product.kills import Victim
from tests.faults.product.oracle import Row, Snapshot
from tests.faults.product.syncs import Sync, Told, run_command, run_untroubled
from tests.faults.product.world import FILES, ROWS, World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Drop, FaultProxy, Forward, Response
from tests.servers.ministack import Lake

TABLES = ("removed", "kept")
DAYS = 3


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_sync_with_lost_uploads_stops_until_recover_void_or_accept(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path, warm_spark_home: Path
) -> None:
    world = World(lake, fault_proxy, tmp_path, "damaged", warm_spark=warm_spark_home)
    folder = world.write("documents", TABLES)
    _interrupt_after_the_first_file(world, folder)
    lost = _lose_the_other_uploads(world)
    _let_days_pass(world)

    _check_stopped(run_untroubled(world, folder, "monday"), lost)
    for table in TABLES:
        assert Snapshot(world, TABLES).rows(table)[0].total() == ROWS

    _allow_deletion(lake)
    for decision in (["--void", "interrupted", "--yes"], ["--accept", "interrupted"]):
        table = TABLES[decision[0] == "--accept"]
        code, stderr = run_command(
            world, folder, "recover", "pipeline.yml", "--table", table, *decision
        )
        assert code == 0, stderr

    told = run_untroubled(world, folder, "tuesday")
    assert told.code == 0, told.stderr
    for table, jobs in (("removed", ["tuesday"]), ("kept", ["interrupted", "tuesday"])):
        assert _jobs(world, table) == {
            job: ROWS * (FILES if job == "tuesday" else 1) for job in jobs
        }
    assert lake.uploads() == []


def _interrupt_after_the_first_file(world: World, folder: Path) -> None:
    """kill -9 when one file of each table is visible, and the next about to be."""
    victim = Victim()
    both = threading.Barrier(len(TABLES), action=victim.kill)

    def hold(request: Request, forward: Forward) -> Response:
        both.wait(240)
        raise Drop

    for table in TABLES:
        world.on("CompleteMultipartUpload", hold, tables=[table], skip=1, times=1)
    sync = Sync(world, folder, "interrupted", spark_home=world.warm_spark)
    assert victim.run(sync).code is None
    assert len(world.lake.data_keys()) == len(TABLES)


def _lose_the_other_uploads(world: World) -> dict[str, str]:
    """Abort every open upload, as a lifecycle rule does after some days; return lost keys."""
    s3, bucket = world.lake.server.s3, world.lake.seeded.bucket
    lost = {}
    for upload in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]:
        s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        lost[next(table for table in TABLES if f"/{table}/" in upload["Key"])] = upload["Key"]
    assert set(lost) == set(TABLES)
    return lost


def _let_days_pass(world: World) -> None:
    """Date the records back: a young one is looked at again for a quarter of an hour."""
    long_ago = (datetime.now(UTC) - timedelta(days=DAYS)).isoformat().replace("+00:00", "Z")
    bucket = world.lake.seeded.bucket
    records = [key for key in world.lake.keys("data-lake/") if key.endswith(f"{1:020d}.json")]
    assert len(records) == len(TABLES)
    for key in records:
        record = json.loads(world.lake.read(key)) | {"created_at": long_ago}
        world.lake.server.s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(record).encode())


def _check_stopped(told: Told, lost: dict[str, str]) -> None:
    assert told.code == 1, told.stderr
    for table, key in lost.items():
        result = told.tables[table]
        assert result["status"] == "FAILED"
        assert f"`{key}` ({ROWS} rows)" in result["error"]["message"]
        assert "--void" in result["error"]["hint"]


def _allow_deletion(lake: Lake) -> None:
    """Voiding removes what is visible, which loading never needs to."""
    policy = loader_policy(lake.seeded.bucket, lake.seeded.prefix)
    statements = policy["Statement"]
    assert isinstance(statements, list)
    data = f"arn:aws:s3:::{lake.seeded.bucket}/{lake.seeded.prefix}/*"
    delete = {"Effect": "Allow", "Action": "s3:DeleteObject", "Resource": data}
    lake.server.admin.put_role_policy(
        lake.seeded.role, {**policy, "Statement": [*statements, delete]}
    )


def _jobs(world: World, table: str) -> dict[str, int]:
    """Return the rows of each job; no row may be there twice."""
    rows: Counter[Row] = Snapshot(world, TABLES).rows(table)[0]
    assert set(rows.values()) == {1}
    return dict(Counter(job for job, _, _ in rows))
