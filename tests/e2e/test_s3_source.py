"""A sync from S3 with a role of the source's own: everything in, and its secrets nowhere."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.command import lakeload, sync
from tests.e2e.watching import ArgvWatcher
from tests.servers.fault_proxy import FaultProxy, edit_body
from tests.servers.ministack import Lake, MakeLake
from tests.servers.standalone_spark import QUICK_DRIVER, QUICK_EXECUTOR

pytestmark = pytest.mark.e2e

_ISSUED = re.compile(rb"<(?:AccessKeyId|SecretAccessKey|SessionToken)>([^<]+)<")


@pytest.fixture
def source(make_lake: MakeLake) -> Lake:
    """The bucket that is read, with a user, a role and an ExternalId that the lake has not."""
    return make_lake(prefix="exports")


def test_a_sync_from_s3_with_another_role_leaves_no_secret_anywhere(
    lake: Lake, source: Lake, fault_proxy: FaultProxy, jars_cache: Path, tmp_path: Path
) -> None:
    # The ExternalId, the keys of both users, and the keys that AssumeRole issues meanwhile.
    secrets = {lake.seeded.external_id, source.seeded.external_id}
    secrets |= {lake.seeded.base_key.secret_access_key, source.seeded.base_key.secret_access_key}

    def remember(body: bytes) -> bytes:
        secrets.update(value.decode() for value in _ISSUED.findall(body))
        return body

    fault_proxy.on("AssumeRole", edit_body(remember))
    for number in range(3):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [number]}), sink)
        for ending, body in (
            ("csv", f"id,name\n{number},x\n".encode()),
            ("parquet", sink.getvalue().to_pybytes()),
        ):
            key = f"exports/day 1/part+{number}.{ending}"
            lake.server.s3.put_object(Bucket=source.seeded.bucket, Key=key, Body=body)
    event_log = tmp_path / "event-log"
    event_log.mkdir()
    lake.write_pipeline(
        tmp_path,
        endpoint=fault_proxy.endpoint,
        source={
            "type": "FILES",
            "format": "CSV",
            "options": {"header": True},
            "credentials": {
                "role_arn": source.seeded.role_arn,
                "external_id": {"env": "SOURCE_EXTERNAL_ID"},
                "access_key_id": {"env": "SOURCE_KEY"},
                "secret_access_key": {"env": "SOURCE_SECRET"},
            },
        },
        tables=[
            {"table": "orders", "path": f"s3://{source.seeded.bucket}/exports/day 1/*.csv"},
            {
                "table": "by_spark",
                "path": f"s3://{source.seeded.bucket}/exports/day 1/*.parquet",
                "format": "PARQUET",
                "options": {"datetimeRebaseMode": "LEGACY"},
            },
        ],
    )
    environment = {
        "SOURCE_EXTERNAL_ID": source.seeded.external_id,
        "SOURCE_KEY": source.seeded.base_key.access_key_id,
        "SOURCE_SECRET": source.seeded.base_key.secret_access_key,
        "LAKELOAD_CACHE_DIR": str(jars_cache),
    }
    flags = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log.as_uri(),
        "spark.eventLog.compress": "false",
    }

    planned = lakeload(lake, tmp_path, "plan", "pipeline.yml", "--output", "json", **environment)
    asked = len(fault_proxy.requests)
    with ArgvWatcher() as watcher:
        ended = sync(
            lake,
            tmp_path,
            *("--master", "local-cluster[1,2,1024]", "-vv", "--log-file", "load.log"),
            *(*QUICK_DRIVER, *QUICK_EXECUTOR),
            *(part for name, value in flags.items() for part in ("--conf", f"{name}={value}")),
            **environment,
        )

    assert planned.code == 0, planned.stderr
    assert planned.document["tables"][0]["files"] == 3
    assert ended.code == 0, ended.stderr
    assert [ended.tables[name]["rows"] for name in ("orders", "by_spark")] == [3, 3]
    assert ended.tables["orders"]["reader"] == "direct"
    roles = [
        parse_qs(request.body.decode())["RoleArn"][0]
        for request in fault_proxy.requests[asked:]
        if request.operation == "AssumeRole"
    ]
    # Driver, executor, its Python workers and the programs that Java asks for keys assume no role.
    assert Counter(roles) == {lake.seeded.role_arn: 1, source.seeded.role_arn: 1}
    commands = [argv for argv in watcher.seen if b"process_credentials" in argv]
    assert commands
    assert len(secrets) >= 4 + 3 * 4  # three of each AssumeRole: of both roles, twice
    forms = {form.encode() for value in secrets for form in (value, quote(value, safe=""))}
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"0.profile", "spark.log", "load.log"} <= {path.name for path in files}
    assert any(b"SparkListenerApplicationStart" in content for content in files.values())
    places = [*files.items(), *(("argv", argv) for argv in watcher.seen)]
    places += [("output", (ended.stdout + ended.stderr).encode())]
    assert [place for place, content in places if any(form in content for form in forms)] == []


@pytest.mark.usefixtures("forked_commands")
def test_s3_source_denied_or_missing_fails_before_spark_starts(
    lake: Lake, source: Lake, tmp_path: Path
) -> None:
    given = {
        "type": "FILES",
        "format": "PARQUET",
        "credentials": {
            "role_arn": source.seeded.role_arn,
            "external_id": {"env": "SOURCE_EXTERNAL_ID"},
            "access_key_id": {"env": "SOURCE_KEY"},
            "secret_access_key": {"env": "SOURCE_SECRET"},
        },
    }
    lake.write_pipeline(
        tmp_path,
        source=given,
        tables=[{"table": "orders", "path": f"s3://{source.seeded.bucket}/exports/orders/"}],
    )
    environment = {
        "SOURCE_EXTERNAL_ID": source.seeded.external_id,
        "SOURCE_KEY": source.seeded.base_key.access_key_id,
        "SOURCE_SECRET": source.seeded.base_key.secret_access_key,
    }

    missing = sync(lake, tmp_path, **environment)
    wrong = sync(lake, tmp_path, **{**environment, "SOURCE_EXTERNAL_ID": "CANARY-wrong"})

    assert missing.code == 1, missing.stderr
    assert "there is no object or folder" in missing.tables["orders"]["error"]["message"]
    assert wrong.code == 3, wrong.stderr
    error = wrong.tables["orders"]["error"]
    assert "assuming the role" in error["message"]
    assert "CANARY" not in wrong.stdout + wrong.stderr
    assert not list(tmp_path.rglob("spark.log"))


@pytest.mark.usefixtures("forked_commands")
def test_s3_source_on_a_cluster_is_rejected(lake: Lake, tmp_path: Path) -> None:
    lake.write_pipeline(
        tmp_path,
        tables=[{"table": "orders", "path": f"s3://{lake.seeded.bucket}/x.csv"}],
        destination={"credentials": None},
    )

    ended = sync(lake, tmp_path, "--master", "spark://127.0.0.1:7077")

    assert ended.code == 2, ended.stderr
    assert "not supported yet on cluster masters" in ended.stderr + ended.stdout
