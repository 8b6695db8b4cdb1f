"""How often a command assumes the role, and what CloudTrail would show of it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from tests.e2e.command import lakeload
from tests.fakes.spark_home import fake_spark_home
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake

pytestmark = pytest.mark.usefixtures("forked_commands")


def session_names(proxy: FaultProxy) -> list[str]:
    """Return the name in each AssumeRole that was sent."""
    forms = [
        parse_qs(request.body.decode())
        for request in proxy.requests
        if request.operation == "AssumeRole"
    ]
    return [form["RoleSessionName"][0] for form in forms]


@pytest.fixture
def folder(lake: Lake, tmp_path: Path, fault_proxy: FaultProxy) -> Path:
    """Two tables, one of them read from S3, and a SPARK_HOME whose spark-submit is the fake."""
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n")
    key = f"{lake.seeded.prefix}/landing/customers.csv"
    lake.server.s3.put_object(Bucket=lake.seeded.bucket, Key=key, Body=b"id,name\n1,a\n")
    tables = [
        {"table": "orders", "path": "orders.csv"},
        {"table": "customers", "path": f"s3://{lake.seeded.bucket}/{key}"},
    ]
    lake.write_pipeline(tmp_path, tables=tables, endpoint=fault_proxy.endpoint)
    fake_spark_home(tmp_path)
    return tmp_path


def test_sync_assumes_the_role_once_with_its_session_name(
    lake: Lake, folder: Path, fault_proxy: FaultProxy, jars_cache: Path
) -> None:
    ended = lakeload(
        lake,
        folder,
        *("sync", "pipeline.yml", "--output", "json"),
        SPARK_HOME=str(folder / "spark"),
        FAKE_SPARK_SCENARIO="success",
        LAKELOAD_CACHE_DIR=str(jars_cache),
    )

    assert ended.code == 0, ended.stderr
    assert session_names(fault_proxy) == [f"lakeload-sync-{ended.document['attempt_id']}"]
    (run,) = (folder / "runs").glob("2*")
    told = json.loads((run / "spec.json").read_bytes())
    assert told["attempt_id"] == ended.document["attempt_id"]


def test_a_plan_assumes_the_role_once(lake: Lake, folder: Path, fault_proxy: FaultProxy) -> None:
    ended = lakeload(lake, folder, "plan", "pipeline.yml", "--no-schema", "--output", "json")

    assert ended.code == 0, ended.stderr
    (name,) = session_names(fault_proxy)
    assert name.startswith("lakeload-plan-")


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        (("recover", "pipeline.yml"), 1),
        (("runs", "pipeline.yml"), 1),
        (("maintain", "pipeline.yml"), 1),
        # The second is the one without the ExternalId, which the role has to refuse.
        (("test-connection", "destination.yml"), 2),
    ],
)
def test_role_session_of_each_command_has_its_name(
    lake: Lake, folder: Path, fault_proxy: FaultProxy, command: tuple[str, ...], calls: int
) -> None:
    ended = lakeload(lake, folder, *command)

    assert ended.code == 0, ended.stderr
    names = session_names(fault_proxy)
    assert len(names) == calls
    assert all(name.startswith(f"lakeload-{command[0]}") for name in names)
