"""The class-data archive: made by `jars fetch`, used by `sync`, and never in its way."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.e2e.command import Ended, lakeload, sync
from tests.servers.ministack import Lake

pytestmark = pytest.mark.e2e


def shared_classes(lake: Lake, folder: Path, name: str) -> tuple[Ended, int]:
    """Run a sync; return its end, and how many classes its driver took from the archive."""
    log = folder / f"{name}.log"
    option = f"spark.driver.extraJavaOptions=-Xlog:class+load:file={log}"
    ended = sync(lake, folder, "--conf", option, "--job-id", name)
    text = log.read_text(encoding="utf-8", errors="replace")
    return ended, len(re.findall(r"source: shared objects file \(top\)", text))


def test_an_archive_is_made_used_and_harmless(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n2\n")
    lake.write_pipeline(tmp_path, tables=[{"table": "t", "path": "t.csv"}])

    fetched = lakeload(lake, tmp_path, "jars", "fetch", "pipeline.yml", "--output", "json")
    assert fetched.code == 0, fetched.stderr
    (made,) = fetched.document["archives"]
    assert (made["state"], made["sets"]) == ("usable", [])

    ended, shared = shared_classes(lake, tmp_path, "with")
    assert ended.code == 0, ended.stderr
    assert shared > 5000
    (log,) = (tmp_path / "runs").glob("*/spark.log")
    assert "cds" not in log.read_text(encoding="utf-8", errors="replace")

    # Even one that is described as it is, and is garbage: Java refuses it and goes on.
    archive = Path(made["file"])
    garbage = archive.read_bytes()[:4096][::-1] * 100
    archive.chmod(0o644)
    archive.write_bytes(garbage)
    description = archive.with_suffix(".json")
    document = json.loads(description.read_text(encoding="utf-8"))
    document |= {"size": len(garbage), "sha256": hashlib.sha256(garbage).hexdigest()}
    description.write_text(json.dumps(document), encoding="utf-8")

    ended, shared = shared_classes(lake, tmp_path, "garbage")
    assert ended.code == 0, ended.stderr
    assert shared == 0
    assert {table["status"] for table in ended.tables.values()} == {"LOADED"}
