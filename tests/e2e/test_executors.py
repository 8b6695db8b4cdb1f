"""Executors on a real standalone cluster: processes on workers whose environment the test chooses.

`local-cluster` would hide what is missing: its executors inherit the environment of the command.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import boto3
import pyarrow.parquet as pq
import pytest

from lakeload.demo.aws import allow_assume_role, embedded_policy, loader_policy
from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog
from lakeload_jobs.formats.iceberg.catalogs.rows import read_rows
from tests.e2e.command import Ended, sync
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, after, before
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake
from tests.servers.standalone_spark import ON_A_CLUSTER, StandaloneSpark

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("forked_commands"),
]

ROWS = 500


def test_executors_load_with_their_own_identity_and_without_one_fail_with_a_hint(
    base_identity: Lake,
    fault_proxy: FaultProxy,
    standalone_spark: StandaloneSpark,
    jars_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One cluster, whose worker knows the base identity alone, and then nothing."""
    lake = base_identity
    name = _keep_external_id(lake)
    standalone_spark.add_worker("own", _environment(lake, own=True))
    _check_iceberg(lake, standalone_spark, name, jars_cache, tmp_path / "iceberg", monkeypatch)
    _check_parquet(lake, standalone_spark, name, fault_proxy, tmp_path / "parquet")


def _check_iceberg(
    lake: Lake,
    cluster: StandaloneSpark,
    name: str,
    cache: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Executors assume the role themselves."""
    endpoint = lake.server.endpoint
    _write(
        lake,
        folder,
        name,
        [{"table": "orders", "primary_key": ["id"]}],
        destination={
            "endpoints": {"s3": endpoint, "sts": endpoint, "glue": endpoint},
            "table_format": "ICEBERG",
            "glue_database_prefix": "lakes",
        },
    )
    spec = destination_spec(load_destination(folder / "destination.yml", {}))
    lake.server.admin.put_role_policy(lake.seeded.role, embedded_policy(spec))
    loaded = _sync(lake, folder, cluster, LAKELOAD_CACHE_DIR=str(cache))
    shown = loaded.stdout + loaded.stderr + cluster.executor_logs("own")
    assert loaded.code == 0, shown
    assert loaded.tables["orders"]["rows"] == ROWS
    assert lake.seeded.external_id not in shown

    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", endpoint)
    assert _iceberg_ids(spec) == list(range(ROWS))


def _check_parquet(
    lake: Lake, cluster: StandaloneSpark, name: str, proxy: FaultProxy, folder: Path
) -> None:
    """The first table loads, although Python workers are killed while one uploads. Between the
    tables its worker gives way to one without an identity."""
    policy = loader_policy(lake.seeded.bucket, lake.seeded.prefix)
    lake.server.admin.put_role_policy(lake.seeded.role, policy)
    before_load = lake.data_keys()
    killed: list[int] = []
    swapped = threading.Event()

    def kill(request: Request) -> None:
        for process in cluster.python_workers("own"):
            process.kill()
            killed.append(process.pid)

    def swap(request: Request) -> None:
        cluster.stop_worker("own")
        cluster.add_worker("empty", _environment(lake, own=False))
        swapped.set()

    proxy.on("UploadPart", before(kill), key="*/people/*", times=1)
    proxy.on("PutObject", after(swap), key="*/people/log/*.end", times=1)
    tables = [{"table": "people"}, {"table": "denied"}]
    _write(lake, folder, name, tables, endpoint=proxy.endpoint, concurrency=1)
    ended = _sync(lake, folder, cluster)
    assert (bool(killed), swapped.is_set()) == (True, True)
    logs = cluster.executor_logs("own") + cluster.executor_logs("empty")
    assert ended.code == 1, ended.stdout + ended.stderr + logs

    loaded, denied = ended.tables["people"], ended.tables["denied"]
    assert (loaded["status"], loaded["rows"]) == ("LOADED", ROWS), loaded
    (key,) = set(lake.data_keys()) - set(before_load)
    (file,) = [file for file in lake.download(folder / "seen") if str(file).endswith(key)]
    ids = pq.read_table(file)["id"].to_pylist()
    assert sorted(int(id_ or 0) for id_ in ids) == list(range(ROWS))
    assert "this executor finds no AWS identity" in denied["error"]["message"]
    assert "its own base identity" in denied["error"]["hint"]
    assert [upload for upload in lake.uploads() if "/denied/" in upload] == []


def _write(
    lake: Lake,
    folder: Path,
    name: str,
    tables: list[dict[str, Any]],
    *,
    destination: dict[str, Any] | None = None,
    **settings: Any,
) -> None:
    """Write documents whose ExternalId is the secret `name`, and the file of all tables."""
    folder.mkdir()
    lines = "".join(f"{number},name {number}\n" for number in range(ROWS))
    (folder / "rows.csv").write_text("id,name\n" + lines)
    credentials = {"role_arn": lake.seeded.role_arn, "external_id": {"aws_secret": name}}
    lake.write_pipeline(
        folder,
        tables=[{**table, "path": str(folder / "rows.csv")} for table in tables],
        destination={"credentials": credentials, **(destination or {})},
        **settings,
    )


def _keep_external_id(lake: Lake) -> str:
    """Keep the ExternalId in AWS, where the base identity may read it from any machine; return the
    secret's name."""
    name = f"lakeload/{lake.seeded.role}"
    administrator = boto3.client(
        "secretsmanager",
        endpoint_url=lake.server.endpoint,
        region_name=lake.seeded.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    arn = administrator.create_secret(Name=name, SecretString=lake.seeded.external_id)["ARN"]
    assume = allow_assume_role(lake.seeded.role_arn)["Statement"]
    assert isinstance(assume, list)
    read = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": arn}
    lake.server.admin.put_user_policy(
        lake.seeded.user, {"Version": "2012-10-17", "Statement": [*assume, read]}
    )
    return name


def _environment(lake: Lake, *, own: bool) -> dict[str, str]:
    """Return the environment of a worker, with a base identity of its `own` or none.

    Endpoints of S3, STS and Glue and the region are not among what a worker has to know. Instance
    metadata would be an identity where the tests run on AWS.
    """
    variables = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": lake.server.endpoint,
    }
    if own:
        variables["AWS_ACCESS_KEY_ID"] = lake.seeded.base_key.access_key_id
        variables["AWS_SECRET_ACCESS_KEY"] = lake.seeded.base_key.secret_access_key
    return variables


def _sync(lake: Lake, folder: Path, cluster: StandaloneSpark, **variables: str) -> Ended:
    variables["AWS_ENDPOINT_URL_SECRETS_MANAGER"] = lake.server.endpoint
    arguments = ("--master", cluster.master, *ON_A_CLUSTER)
    return sync(lake, folder, *arguments, **variables, **{EXTERNAL_ID_VARIABLE: None})


def _iceberg_ids(destination: DestinationSpec) -> list[int]:
    """Return what a reader with the destination's own identity reads."""
    session = AwsSession(destination)
    table = open_catalog(destination, session).load_table("lakes_shop", "orders")
    return sorted(int(id_ or 0) for id_ in read_rows(table, destination, session)["id"].to_pylist())
