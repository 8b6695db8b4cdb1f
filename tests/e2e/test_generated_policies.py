"""What `lakeload policy` prints, attached as it stands: the connection test and a sync pass."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakeload.demo.aws import ACCOUNT_ID, SeededLake
from tests.e2e.command import Ended, lakeload, sync
from tests.published_policies import attach
from tests.servers.jars import CACHE
from tests.servers.ministack import AwsServer, Lake
from tests.servers.standalone_spark import QUICK_DRIVER

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SHAPES: dict[str, dict[str, Any]] = {
    "prefix with special characters, Glue, a key by its alias": {
        "prefix": "Größe & Co/a+b (1)=$x",
        "glue_database_prefix": "supaflow",
        "parquet": {"update_glue_catalog": True},
        "encryption": {"type": "SSE_KMS", "kms_key_id": "alias/lake"},
    },
    "no prefix, projection, a source in S3": {
        "glue_database_prefix": "My Company",
        "parquet": {"update_glue_catalog": True, "partition_projection": True},
    },
}


@dataclass(frozen=True)
class Run:
    """What became of one shape."""

    lake: Lake
    policy: Ended
    tested: Ended
    synced: Ended


@pytest.fixture(scope="module")
def runs(
    exact_aws: AwsServer, warm_spark_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Run]]:
    """Both shapes."""
    found = {
        name: _run(exact_aws, settings, warm_spark_home, tmp_path_factory.mktemp("run"))
        for name, settings in SHAPES.items()
    }
    yield found
    for run in found.values():
        run.lake.empty()


def _run(server: AwsServer, settings: dict[str, Any], spark_home: Path, folder: Path) -> Run:
    mark = secrets.token_hex(4)
    bucket, user, role = f"lake-{mark}", f"runner-{mark}", f"loader-{mark}"
    arn = f"arn:aws:iam::{ACCOUNT_ID}:"
    server.admin.create_bucket(bucket)
    key = server.admin.create_user(user)
    prefix = settings.get("prefix", "")
    seeded = SeededLake(
        bucket, prefix, "us-east-1", user, key, role, f"{arn}role/{role}", f"ext-{mark}"
    )
    lake = Lake(server, seeded)
    path = _input(lake, folder, from_s3=not prefix)
    place = server.endpoint
    lake.write_pipeline(
        folder,
        tables=[{"table": "Orders", "path": path}],
        on_bad_value="QUARANTINE",
        max_rejected="50 %",
        destination={
            "prefix": None,
            "endpoints": {"s3": place, "sts": place, "glue": place},
            **settings,
        },
    )
    # Java starts the command that gives it the credentials of a source, in its own environment.
    warm = {"SPARK_HOME": str(spark_home)}
    changes = warm if prefix else {"LAKELOAD_CACHE_DIR": str(CACHE)}
    options = () if prefix else QUICK_DRIVER
    policy = lakeload(
        lake,
        folder,
        *("policy", "pipeline.yml", "--principal", f"{arn}user/{user}", "--reveal-external-id"),
        **warm,
    )
    attach(server, policy.json, user, role)
    tested = lakeload(lake, folder, "test-connection", "pipeline.yml", "--output", "json", **warm)
    return Run(lake, policy, tested, sync(lake, folder, *options, **changes))


def _input(lake: Lake, folder: Path, *, from_s3: bool) -> str:
    """Write the input and return its path."""
    text = "ID,Name\n1,a\n2,b\n3\n"
    if not from_s3:
        (folder / "orders.csv").write_text(text)
        return "orders.csv"
    bucket = lake.seeded.bucket
    lake.server.s3.put_object(Bucket=bucket, Key="exports/1.csv", Body=text.encode())
    return f"s3://{bucket}/exports/*.csv"


@pytest.mark.parametrize("name", SHAPES)
def test_generated_policies_allow_every_check_and_a_sync(name: str, runs: dict[str, Run]) -> None:
    run = runs[name]
    expected = {"trust", "s3", "glue", "base"} | (
        {"kms"} if "encryption" in SHAPES[name] else {"source"}
    )
    assert set(run.policy.json) == expected
    assert run.tested.code == 0, run.tested.stdout + run.tested.stderr
    statuses = {probe["name"]: probe["status"] for probe in run.tested.document["probes"]}
    assert "warning" not in statuses.values(), statuses
    assert run.synced.code == 0, run.synced.stdout + run.synced.stderr
    table = run.synced.tables["Orders"]
    assert (table["status"], table["rows"], table["rejected"]) == ("LOADED", 2, 1)
    (warning,) = table["warnings"]
    assert "1 of 3 records were set aside" in warning
    loaded = [key for key in run.lake.data_keys() if key.endswith(".parquet")]
    assert ["/orders_rejected/" in f"/{key}" for key in sorted(loaded)] == [False, True]
