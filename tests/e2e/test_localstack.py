"""A second, independent S3: one real sync into LocalStack."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.e2e.command import argv
from tests.servers.jars import CACHE
from tests.servers.localstack import localstack, session

BUCKET = f"second-lake-{secrets.token_hex(4)}"
"""A new one each time: the server may be one that stays."""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with localstack(tmp_path_factory.mktemp("localstack")) as running:
        yield running


@pytest.mark.e2e
@pytest.mark.localstack
@pytest.mark.usefixtures("warm_spark")
def test_a_sync_into_localstack_reads_back_row_for_row(endpoint: str, tmp_path: Path) -> None:
    s3 = session(endpoint).client("s3")
    s3.create_bucket(Bucket=BUCKET)
    (tmp_path / "cities.csv").write_text("id,Straße\n1,Zürich 🏔\n2,\n3,Malmö\n", encoding="utf-8")
    _write_documents(tmp_path, endpoint)
    ended = subprocess.run(
        argv("sync", "pipeline.yml", "--output", "json", "--job-id", "first"),
        cwd=tmp_path,
        env={
            **os.environ,
            "LAKELOAD_RUN_DIR": str(tmp_path / "runs"),
            "LAKELOAD_CACHE_DIR": str(CACHE),
            "LAKE_KEY": "test",
            "LAKE_SECRET": "test",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (table,) = json.loads(ended.stdout)["tables"]
    assert (table["status"], table["rows"]) == ("LOADED", 3)
    (file,) = table["files"]
    assert file["key"] == "p/geo/cities/part-first-00000.gzip.parquet"
    body = s3.get_object(Bucket=BUCKET, Key=file["key"])["Body"].read()
    rows = pq.read_table(pa.BufferReader(body), columns=["id", "Strasse", "_supa_index"])
    assert rows.to_pylist() == [
        {"id": 1, "Strasse": "Zürich 🏔", "_supa_index": 1},
        {"id": 2, "Strasse": None, "_supa_index": 2},
        {"id": 3, "Strasse": "Malmö", "_supa_index": 3},
    ]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)


def _write_documents(folder: Path, endpoint: str) -> None:
    destination = {
        "version": 1,
        "bucket": BUCKET,
        "region": "us-east-1",
        "prefix": "p",
        "credentials": {
            "access_key_id": {"env": "LAKE_KEY"},
            "secret_access_key": {"env": "LAKE_SECRET"},
        },
        "endpoint_url": endpoint,
        "parquet": {"partition_strategy": "NONE"},
    }
    pipeline = {
        "version": 1,
        "name": "geo",
        "namespace": "geo",
        "destination": "destination.yml",
        "source": {"type": "FILES", "format": "CSV", "options": {"header": True}},
        "tables": [
            {"table": "cities", "path": "cities.csv", "columns": {"types": {"id": "int"}}},
        ],
    }
    (folder / "destination.yml").write_text(yaml.safe_dump(destination))
    (folder / "pipeline.yml").write_text(yaml.safe_dump(pipeline, allow_unicode=True))
