"""A sync from S3 with a role of the source's own that fails before Spark starts.

The one that loads is in test_secrets.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command import sync
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
