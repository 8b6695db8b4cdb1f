"""Settings about what is new: `round_limit` and `commit_at`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakeload.sources.files.source_type import FilesSourceType
from tests.unit.documents.documents import PIPELINE, TABLES, problems_of


@pytest.mark.parametrize(
    ("setting", "asked"),
    [("", 0), ("round_limit: {files: 10}\n", 2), ("commit_at: {age: P1D}\n", 2)],
)
def test_settings_about_new_data_cost_nothing_where_a_pipeline_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, asked: int
) -> None:
    calls: list[object] = []
    written = FilesSourceType.written

    def counted(self: FilesSourceType, source: Any, table: Any) -> Any:
        calls.append(table)
        return written(self, source, table)

    monkeypatch.setattr(FilesSourceType, "written", counted)
    incremental = PIPELINE.replace("format: CSV", "format: CSV, incremental: true")

    assert problems_of(tmp_path, incremental + setting + TABLES) == []
    assert len(calls) == asked
