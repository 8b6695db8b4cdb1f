"""Executors of an Iceberg load into Glue, on workers whose environment holds a base identity alone.

`local-cluster` would hide what is missing: its executors inherit this process's environment.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.demo.aws import embedded_policy
from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.catalog import read_rows
from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog
from tests.e2e.command import sync
from tests.e2e.test_executors import keep_external_id
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake
from tests.servers.standalone_spark import ON_A_CLUSTER, StandaloneSpark

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROWS = 500


def test_executors_write_iceberg_files_with_the_role_they_assume_themselves(
    base_identity: Lake,
    standalone_spark: StandaloneSpark,
    jars_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, endpoint = base_identity, base_identity.server.endpoint
    lines = "".join(f"{number},name {number}\n" for number in range(ROWS))
    (tmp_path / "orders.csv").write_text("id,name\n" + lines)
    lake.write_pipeline(
        tmp_path,
        tables=[{"table": "orders", "path": str(tmp_path / "orders.csv"), "primary_key": ["id"]}],
        destination={
            "credentials": {
                "role_arn": lake.seeded.role_arn,
                "external_id": {"aws_secret": keep_external_id(lake)},
            },
            "endpoints": {"s3": endpoint, "sts": endpoint, "glue": endpoint},
            "table_format": "ICEBERG",
            "glue_database_prefix": "lakes",
        },
    )
    spec = destination_spec(load_destination(tmp_path / "destination.yml", {}))
    lake.server.admin.put_role_policy(lake.seeded.role, embedded_policy(spec))
    arguments = ("--master", standalone_spark.master, *ON_A_CLUSTER)
    variables = {
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": endpoint,
        "LAKELOAD_CACHE_DIR": str(jars_cache),
        EXTERNAL_ID_VARIABLE: None,
    }
    # Instance metadata would be an identity where the tests run on AWS. Endpoints and region are
    # not among what a worker has to know.
    base = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ACCESS_KEY_ID": lake.seeded.base_key.access_key_id,
        "AWS_SECRET_ACCESS_KEY": lake.seeded.base_key.secret_access_key,
    }
    standalone_spark.add_worker("own", base)
    loaded = sync(lake, tmp_path, *arguments, "--job-id", "own", **variables)
    told = loaded.stdout + loaded.stderr + standalone_spark.executor_logs("own")
    assert loaded.code == 0, told
    assert loaded.tables["orders"]["rows"] == ROWS
    assert lake.seeded.external_id not in told

    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", endpoint)
    assert ids(spec) == list(range(ROWS))


def ids(destination: DestinationSpec) -> list[int]:
    """Return what a reader with the destination's own identity finds."""
    session = AwsSession(destination)
    table = open_catalog(destination, session).load_table("lakes_shop", "orders")
    return sorted(int(one or 0) for one in read_rows(table, destination, session)["id"].to_pylist())
