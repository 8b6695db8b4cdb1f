"""Loads from S3 with an identity of the source's own: refused before Spark starts, and in rounds.

The one that loads with a role is in test_secrets.py.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload.demo.aws import loader_policy
from tests.e2e.command import sync
from tests.e2e.conftest import LakeOfFormat
from tests.e2e.rounds import rounds
from tests.e2e.test_rotated_credentials import deny_deleted_keys, write_profile
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake, MakeLake

pytestmark = pytest.mark.e2e


@pytest.fixture
def source(make_lake: MakeLake) -> Lake:
    """The bucket that is read, with a user, a role and an ExternalId that the lake has not."""
    return make_lake(prefix="exports")


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


@pytest.mark.timeout(600)
def test_replaced_keys_of_a_source_that_spark_reads_cost_one_round_at_most(
    lake: Lake, source: Lake, fault_proxy: FaultProxy, tmp_path: Path, jars_cache: Path
) -> None:
    seeded, admin = source.seeded, source.server.admin
    admin.put_user_policy(seeded.user, loader_policy(seeded.bucket, seeded.prefix))
    keys = [seeded.base_key, *(admin.create_access_key(seeded.user) for _ in range(2))]
    lake.write_pipeline(
        tmp_path,
        tables=[
            {
                "table": "t",
                "path": f"s3://{seeded.bucket}/exports/t/",
                # Only Spark reads with it.
                "options": {"datetimeRebaseMode": "LEGACY"},
            }
        ],
        source={
            "type": "FILES",
            "format": "PARQUET",
            "incremental": True,
            "credentials": {"profile": "shop"},
        },
        endpoint=fault_proxy.endpoint,
    )
    deleted = deny_deleted_keys(fault_proxy)

    def arrives_in_s3(number: int) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"n": [number]}), sink)
        source.server.s3.put_object(
            Bucket=seeded.bucket,
            Key=f"exports/t/{number}.parquet",
            Body=sink.getvalue().to_pybytes(),
        )

    write_profile(tmp_path, keys[0])
    arrives_in_s3(0)
    with rounds(
        lake,
        tmp_path,
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "aws"),
        LAKELOAD_CACHE_DIR=str(jars_cache),
    ) as running:
        assert running.loaded() == 1
        for number, key in enumerate(keys[1:], 1):
            deleted.add(keys[number - 1].access_key_id)
            write_profile(tmp_path, key)
            arrives_in_s3(number)
            assert running.loaded() == 1
            assert len(running.failed) <= number, running.failed

    found = LakeOfFormat(lake, None).rows("t", "n")
    assert sorted(n for (n,) in found) == [0, 1, 2]
