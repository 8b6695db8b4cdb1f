"""Jars of Spark whose advisories do not matter because nothing of them is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.advisories import known
from tests.e2e.command import sync
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]


def test_no_class_of_a_jar_that_is_called_unloaded_is_loaded(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,note\n1,a\n2,b\n")
    rows = pa.table({"id": [1, 2], "note": ["x" * 100, "y"]})
    for codec in ("snappy", "lz4", "zstd", "gzip"):
        pq.write_table(rows, tmp_path / f"b-{codec}.parquet", compression=codec)
    lake.write_pipeline(
        tmp_path,
        spark={"reader": "JVM"},
        tables=[
            {"table": "a", "path": "a.csv", "where": "id > 0"},
            {"table": "b", "path": "b-*.parquet", "format": "PARQUET", "where": "id > 0"},
        ],
    )
    log = tmp_path / "classes.log"
    option = f"spark.driver.extraJavaOptions=-Xshare:off -Xlog:class+load:file={log}"
    # With executors of their own, the processes talk to each other.
    master = ("--master", "local-cluster[1,1,1024]")
    ended = sync(lake, tmp_path, *master, "--conf", option)

    assert ended.code == 0, ended.stderr
    assert [ended.tables[name]["rows"] for name in "ab"] == [2, 8]
    text = log.read_text(encoding="utf-8", errors="replace")
    loaded = set(re.findall(r"source: file:\S*/([^/\s]+\.jar)", text))
    assert "netty-transport-4.2.7.Final.jar" in loaded
    assert {jar["file"] for jar in known()["jar"] if jar.get("unloaded")} & loaded == set()
