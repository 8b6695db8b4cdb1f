"""The whole AppCDS archive: made by `jars fetch`, used by `sync`.

test_interrupts.py does the same with an archive of the classes with which Spark starts.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakeload.machine.spark import find_spark
from tests.e2e.command import sync
from tests.servers.class_data import whole_archive
from tests.servers.ministack import Lake

# A minute of CPU to make, which may be several on a machine that is busy.
pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(1800)]


def test_class_data_archive_is_built_and_used(lake: Lake, tmp_path: Path) -> None:
    cache, document = whole_archive()
    # The others are of other checkouts.
    made = [one for one in document["archives"] if one["state"] == "usable"]
    if " " in str(find_spark({}).home):
        assert made == []
        return
    assert [one["sets"] for one in made] == [[]]

    (tmp_path / "t.csv").write_text("id\n1\n2\n")
    lake.write_pipeline(tmp_path, tables=[{"table": "t", "path": "t.csv"}])
    log = tmp_path / "classes.log"
    option = f"spark.driver.extraJavaOptions=-Xlog:class+load:file={log}"
    # Relative, and with what parts arguments.
    (tmp_path / "my cache").symlink_to(cache)
    ended = sync(lake, tmp_path, "--conf", option, LAKELOAD_CACHE_DIR="my cache")
    assert ended.code == 0, ended.stderr
    assert {table["status"] for table in ended.tables.values()} == {"LOADED"}
    text = log.read_text(encoding="utf-8", errors="replace")
    assert len(re.findall(r"source: shared objects file \(top\)", text)) > 5000
    (spark_log,) = (tmp_path / "runs").glob("*/spark.log")
    assert "cds" not in spark_log.read_text(encoding="utf-8", errors="replace")
