"""`lakeload plan` and `sync --dry-run` against the enforcing AWS: they only look."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command import lakeload
from tests.servers.ministack import Lake

pytestmark = pytest.mark.usefixtures("forked_commands")

ORDERS = {"table": "Crème brûlée", "path": "orders.csv"}


@pytest.fixture
def folder(lake: Lake, tmp_path: Path) -> Path:
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n")
    lake.write_pipeline(tmp_path, tables=[ORDERS])
    return tmp_path


@pytest.mark.parametrize("command", [("plan",), ("sync", "--dry-run")], ids=["plan", "dry-run"])
def test_a_plan_names_everything_and_writes_nothing(
    lake: Lake, folder: Path, command: tuple[str, ...]
) -> None:
    name, *flags = command
    flags += ["--job-id", "job-1", "--output", "json"]
    ended = lakeload(lake, folder, name, "pipeline.yml", *flags)
    assert ended.code == 0, ended.stderr
    plan = ended.tables["Crème brûlée"]
    assert (plan["target"], plan["mode"], plan["action"]) == ("shop.Creme_brulee", "APPEND", "LOAD")
    assert (plan["reader"], plan["index"], plan["numbering"]) == (None, "dense", "counting pass")
    assert (plan["files"], plan["bytes"], plan["first_run"]) == (1, 12, True)
    start = f"s3://{lake.seeded.bucket}/{lake.seeded.prefix}/shop/Creme_brulee/"
    assert plan["example"].startswith(start)
    assert plan["example"].endswith("/part-job-1-00000.gzip.parquet")
    assert lake.keys() == []
    assert lake.uploads() == []
    assert not (folder / "runs").exists()


def test_a_table_without_input_fails_the_plan(lake: Lake, folder: Path) -> None:
    (folder / "orders.csv").unlink()
    ended = lakeload(lake, folder, "plan", "pipeline.yml")
    assert ended.code == 3
    assert "FAIL" in ended.stdout
    assert "orders.csv" in ended.stderr


def test_unknown_files_in_the_table_fail_a_first_run(lake: Lake, folder: Path) -> None:
    key = f"{lake.seeded.prefix}/shop/Creme_brulee/old.parquet"
    lake.server.s3.put_object(Bucket=lake.seeded.bucket, Key=key, Body=b"old")
    ended = lakeload(lake, folder, "plan", "pipeline.yml", "--output", "json")
    assert ended.code == 3
    plan = ended.tables["Crème brûlée"]
    assert plan["action"] == "BLOCKED"
    assert "table_handling: APPEND" in plan["error"]["hint"]
    assert lake.keys() == [key]


def test_wrong_external_id_is_denied(lake: Lake, folder: Path) -> None:
    ended = lakeload(lake, folder, "plan", "pipeline.yml", LAKELOAD_EXTERNAL_ID="wrong-id-canary")
    assert ended.code == 3
    assert "sts:AssumeRole" in ended.stderr
    assert "wrong-id-canary" not in ended.stdout + ended.stderr


def test_an_invalid_document_is_exit_code_2(lake: Lake, folder: Path) -> None:
    (folder / "pipeline.yml").write_text("version: 1\nnme: shop\n")
    assert lakeload(lake, folder, "plan", "pipeline.yml").code == 2


def test_a_plan_of_rounds_refuses_what_rounds_refuse(lake: Lake, folder: Path) -> None:
    ended = lakeload(lake, folder, "plan", "pipeline.yml", "--every", "PT5M")
    again = lakeload(lake, folder, "sync", "pipeline.yml", "--every", "PT5M")

    assert (ended.code, again.code) == (2, 2)
    assert "`Crème brûlée` would be appended whole in each round" in ended.stderr
    assert ended.stderr == again.stderr


def test_a_plan_of_rounds_says_what_they_cost_in_a_day(lake: Lake, folder: Path) -> None:
    source = {"type": "FILES", "format": "CSV", "options": {"header": True}, "incremental": True}
    lake.write_pipeline(folder, tables=[ORDERS], source=source, upload_interval="PT10M")
    ended = lakeload(lake, folder, "plan", "pipeline.yml")
    often = lakeload(lake, folder, "plan", "pipeline.yml", "--every", "30s")

    assert "rounds may leave 144 data files and 144 commit records a day" in ended.stdout
    assert "warning" not in ended.stderr
    assert "rounds may leave 2,880 data files" in often.stderr
