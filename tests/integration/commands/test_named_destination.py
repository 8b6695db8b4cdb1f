"""`--destination`: one pipeline is loaded into two lakes, and commands work on the one named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.e2e.command import Ended, lakeload
from tests.integration.commands.conftest import ADMIN
from tests.servers.ministack import Lake

TABLES = [{"table": "orders", "path": "orders.csv"}]
FILES = {"type": "FILES", "format": "CSV", "options": {"header": True}, "incremental": True}


@pytest.fixture
def folder(lake: Lake, tmp_path: Path) -> Path:
    """A pipeline whose own destination no variable names, and two destinations."""
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n2,b\n")
    lake.write_pipeline(tmp_path, tables=TABLES, source=FILES, destination_prefix="shop")
    text = (tmp_path / "pipeline.yml").read_text()
    (tmp_path / "pipeline.yml").write_text(text.replace("destination.yml", "${LAKE}.yml"))
    (tmp_path / "lakes").mkdir()
    for name in ("dev", "production"):
        settings = lake.destination(prefix=name, credentials=ADMIN)
        (tmp_path / f"lakes/{name}.yml").write_text(yaml.safe_dump(settings))
    return tmp_path


@pytest.mark.usefixtures("warm_spark")
def test_one_pipeline_in_two_lakes_has_two_histories(lake: Lake, folder: Path) -> None:
    def run(name: str, command: str, *arguments: str) -> Ended:
        option = ("--destination", f"lakes/{name}.yml")
        words = (command, "pipeline.yml", *arguments, *option)
        return lakeload(lake, folder, *words, LAKE_ADMIN_KEY="test")

    def action(name: str) -> str:
        (table,) = run(name, "plan", "--no-schema", "--output", "json").document["tables"]
        return str(table["action"])

    assert run("dev", "sync", "--job-id", "one").code == 0
    assert [action("dev"), action("production")] == ["NO_OP", "LOAD"]
    assert run("production", "sync", "--job-id", "one").code == 0
    assert run("production", "sync", "--job-id", "two").code == 0
    for name in ("dev", "production"):
        (loaded,) = run(name, "runs", "--output", "json").document["runs"]
        assert (loaded["job_id"], loaded["rows"]) == ("one", 2)
        (local,) = run(name, "runs", "--local", "--output", "json").document["runs"]
        assert local["destination"] == f"s3://{lake.seeded.bucket}/{name}"

    shown = run("dev", "reset", "orders")
    command = "lakeload reset pipeline.yml --destination lakes/dev.yml orders --yes"
    assert command in shown.stderr
    assert run("dev", "reset", "orders", "--yes").code == 0
    assert [action("dev"), action("production")] == ["LOAD", "NO_OP"]
    assert [key.split("/")[0] for key in lake.data_keys()] == ["production"]


@pytest.mark.usefixtures("forked_commands")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["validate", "pipeline.yml"], 0, "pipeline.yml is a valid pipeline"),
        (["plan", "pipeline.yml", "--no-schema"], 0, "pipeline.yml --destination lakes/dev.yml --"),
        (["recover", "pipeline.yml", "--dry-run"], 0, "shop.orders"),
        (["maintain", "pipeline.yml"], 0, "orders"),
        (["test-connection", "pipeline.yml"], 0, "/dev"),
        (["policy", "pipeline.yml", "--principal", "123456789012"], 0, "/dev"),
        (["policy", "pipeline.yml", "--for", "duckdb"], 0, "/dev"),
        (["doctor", "pipeline.yml", "--offline"], None, "pipeline.yml --destination lakes/dev.yml"),
        (["jars", "list", "pipeline.yml"], 0, "cache: "),
        (["validate", "lakes/dev.yml"], 2, "`lakes/dev.yml` is a destination"),
        (["recover", "lakes/dev.yml"], 2, "`lakes/dev.yml` is a destination"),
        (["runs"], 2, "no file is given"),
        (["doctor"], 2, "no file is given"),
        (["jars", "list"], 2, "no file is given"),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else None,
)
def test_every_command_takes_the_destination(
    lake: Lake, folder: Path, arguments: list[str], code: int | None, words: str
) -> None:
    option = ("--destination", "lakes/dev.yml")
    ended = lakeload(lake, folder, *arguments, *option, LAKE_ADMIN_KEY="test")

    assert code is None or ended.code == code, ended.stdout + ended.stderr
    assert words in ended.stdout + ended.stderr
