"""What a sync says when something refuses it, and that nothing is left behind (issue bar 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Ended, lakeload, sync
from tests.servers.ministack import Lake, MakeLake

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]

NOBODY = "127.0.0.1:9"
"""The discard port, on which nothing listens."""


def _orders(folder: Path) -> list[dict[str, Any]]:
    (folder / "orders.csv").write_text("id,amount\n1,2.50\n2,3.75\n")
    return [{"table": "orders", "path": "orders.csv"}]


def _nothing_left(lake: Lake) -> None:
    assert lake.data_keys() == []
    assert lake.uploads() == []


def _refused(ended: Ended, *words: str) -> None:
    """The command ended with exit code 3, one JSON document and a message with these words."""
    assert ended.code == 3, ended.stderr
    error = ended.document["error"]
    said = f"{error['message']} {error['hint']}"
    for word in words:
        assert word in said
    assert "Traceback" not in ended.stderr


def test_a_wrong_external_id_names_the_role_and_the_three_checks(
    lake: Lake, tmp_path: Path
) -> None:
    lake.write_pipeline(tmp_path, tables=_orders(tmp_path))
    ended = sync(lake, tmp_path, LAKELOAD_EXTERNAL_ID="not-the-external-id")
    _refused(ended, lake.seeded.role_arn, "sts:AssumeRole", "ExternalId")
    assert "not-the-external-id" not in ended.stdout + ended.stderr
    _nothing_left(lake)


def test_a_wrong_region_names_both_regions(make_lake: MakeLake, tmp_path: Path) -> None:
    lake = make_lake(region="eu-central-1")
    lake.write_pipeline(tmp_path, tables=_orders(tmp_path), destination={"region": "us-east-1"})
    _refused(sync(lake, tmp_path), "eu-central-1", "us-east-1")
    _nothing_left(lake)


def test_a_missing_bucket_is_named(lake: Lake, tmp_path: Path) -> None:
    lake.write_pipeline(
        tmp_path, tables=_orders(tmp_path), destination={"bucket": "no-such-lake-here"}
    )
    _refused(sync(lake, tmp_path), "no-such-lake-here")
    _nothing_left(lake)


def test_a_prefix_outside_the_policy_names_the_action(lake: Lake, tmp_path: Path) -> None:
    lake.write_pipeline(tmp_path, tables=_orders(tmp_path), destination={"prefix": "somebody/else"})
    _refused(sync(lake, tmp_path), "s3:ListBucket", "somebody/else")
    _nothing_left(lake)


def test_an_unreachable_endpoint_is_named(lake: Lake, tmp_path: Path) -> None:
    lake.write_pipeline(
        tmp_path,
        tables=_orders(tmp_path),
        destination={"endpoints": {"s3": f"http://{NOBODY}", "sts": lake.server.endpoint}},
    )
    ended = sync(lake, tmp_path)
    _refused(ended, NOBODY)
    assert ended.document["error"]["retryable"] is True
    _nothing_left(lake)


def test_a_missing_input_file_is_named_before_spark_starts(lake: Lake, tmp_path: Path) -> None:
    lake.write_pipeline(tmp_path, tables=[{"table": "orders", "path": "order.csv"}])
    ended = sync(lake, tmp_path)
    _refused(ended, "order.csv")
    _nothing_left(lake)


def test_bad_files_fail_alone_and_say_what_is_wrong(lake: Lake, tmp_path: Path) -> None:
    """One submit, of a pipeline in another folder: two good tables, one of them beside that folder,
    a malformed CSV, a line break in quotes, more than a list of JSON, a Parquet file that is none,
    a missing file."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    tables = _orders(project)
    (tmp_path / "above.csv").write_text("id\n1\n")
    (project / "torn.csv").write_text("id,amount\n1,2.50\ntwo,3.75,surplus\n")
    (project / "split.csv").write_text('id,text\n1,"Dear,\nSir\n')
    (project / "lines.json").write_text('[{"id": 1}]\n{"id": 2}\n')
    (project / "noise.parquet").write_bytes(b"PAR1 this is not a footer")
    tables += [
        {"table": "above", "path": "../above.csv"},
        {"table": "torn", "path": "torn.csv", "columns": {"types": {"id": "int"}}},
        {"table": "split", "path": "split.csv"},
        {"table": "lines", "path": "lines.json", "format": "JSON", "options": {}},
        {"table": "noise", "path": "noise.parquet", "format": "PARQUET", "options": {}},
        {"table": "absent", "path": "nowhere/*.csv"},
    ]
    lake.write_pipeline(project, tables=tables)
    ended = lakeload(lake, elsewhere, "sync", "../project/pipeline.yml", "--output", "json")
    assert ended.code == 1, ended.stderr
    status = {name: table["status"] for name, table in ended.tables.items()}
    loaded, failed = ("orders", "above"), ("torn", "split", "lines", "noise", "absent")
    assert status == dict.fromkeys(loaded, "LOADED") | dict.fromkeys(failed, "FAILED")
    for name, words in {
        "torn": ("torn.csv",),
        "split": ("split.csv", "line 2"),
        "lines": ("lines.json", "line 2"),
        "noise": ("noise.parquet", "Parquet"),
        "absent": ("nowhere/*.csv",),
    }.items():
        error = ended.tables[name]["error"]
        for word in words:
            assert word in error["message"], (name, error)
        assert error["hint"]
        assert "Traceback" not in error["message"]
    assert "quote: ''" in ended.tables["split"]["error"]["hint"]
    assert {key.split("/")[3] for key in lake.data_keys()} == set(loaded)
    assert lake.uploads() == []
    assert "--job-id" in ended.stderr
