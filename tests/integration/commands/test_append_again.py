"""`lakeload plan` of tables whose rows an earlier job has appended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.integration.commands.conftest import TABLES, Command
from tests.integration.formats.parquet.log.writer import Writer


def test_plan_warns_of_rows_that_are_appended_again(
    command: Command, load: Callable[..., Writer], tmp_path: Path
) -> None:
    for name in TABLES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("id\n1\n", encoding="utf-8")
    load("monday", files=3)
    flags = ("--no-schema", "--output", "json")

    ended = command("plan", "pipeline.yml", *flags)

    assert ended.code == 0, ended.err
    warnings = {one["table"]: one["warnings"] for one in ended.document["tables"]}
    [text] = warnings.pop("orders")
    assert "job `monday` of this pipeline has loaded 3 rows of it at 20" in text
    assert "set `incremental: true` in `source`" in text
    assert warnings == {"visits": [], "payments": []}
    shown = command("plan", "pipeline.yml", "--no-schema").err
    assert "`orders` are appended" in " ".join(shown.split())

    def orders(*arguments: str) -> dict[str, object]:
        found: dict[str, object] = command("plan", "pipeline.yml", *flags, *arguments).document
        return found["tables"][0]  # type: ignore[index,no-any-return]

    assert orders("--reload")["warnings"] == []
    path = tmp_path / "pipeline.yml"
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\non_append_again: ALLOW\n", encoding="utf-8")
    assert orders()["warnings"] == []
    path.write_text(f"{text}\non_append_again: FAIL\n", encoding="utf-8")
    assert orders()["action"] == "BLOCKED"
    assert orders("--reload")["action"] == "LOAD"
