"""Hints about which files a load takes, followed literally in the pipeline: it takes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakeload.documents.spec import table_specs
from lakeload.launch.spec import check_options, run_options
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import FilesInput, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.databases.bookmark import CursorState
from lakeload_jobs.sources.files.selection import Selection, choose_files
from lakeload_jobs.sources.paths.file_state import FileState
from tests.hints import clauses, follow, follows
from tests.unit.documents.documents import pipeline

NEW = Bookmark(None, first_run=True, next_number=1, evidence=lambda since: [])
"""What a table keeps of a pipeline that has not loaded it."""


@pytest.fixture
def document() -> dict[str, Any]:
    return {
        "version": 1, "name": "shop", "namespace": "shop",
        "destination": {"version": 1, "bucket": "my-data-lake", "region": "us-east-1"},
        "source": {"type": "FILES", "format": "CSV", "incremental": True},
        "tables": [{"table": "orders", "path": "orders.csv"}],
    }  # fmt: skip


def _table(folder: Path, document: dict[str, Any], *, limit: int | None = None) -> TableSpec:
    """Return the table as `sync` loads it, with `--limit`."""
    read = pipeline(folder, yaml.safe_dump(document))
    [table] = table_specs(read)
    check_options([table], "ICEBERG", run_options(read, limit=limit))
    return table


def _selection(table: TableSpec, bookmark: Bookmark, file: FileState) -> Selection:
    given = table.input
    assert isinstance(given, FilesInput)
    return choose_files(bookmark, given.folder, [file], on_changed_file=given.on_changed_file)


def test_a_hint_about_some_rows_lets_another_pipeline_load_them(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        _table(tmp_path, document, limit=5)
    hint = refused.value.hint or ""
    follows(__file__, "some rows of files that are loaded once", hint)

    values = {"name": "other", "namespace": "elsewhere"}
    changed = follow(document, hint, "source.incremental", **values)
    changed["source"]["incremental"] = False
    some = _table(tmp_path, changed, limit=5)

    # A table of one pipeline refuses another one.
    assert (some.schema, some.table) == ("elsewhere", "orders")
    assert _table(tmp_path, document).schema == "shop"


def test_a_hint_about_the_state_of_another_source_lets_all_files_be_loaded(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    file = FileState(str(tmp_path / "orders.csv"), 10, 1)
    database = replace(NEW, state=CursorState("id", "INTEGER", "2").to_json(), first_run=False)
    kept = {"shop": database}
    table = _table(tmp_path, document)
    with pytest.raises(LoadFailed, match="the state of this pipeline cannot be used") as refused:
        _selection(table, kept["shop"], file)
    hint = refused.value.hint or ""
    follows(__file__, "the state of a database", hint)

    changed = follow(document, hint, "source.incremental", name="other")

    assert changed["name"] == "other"
    bookmark = kept.get(changed["name"], NEW)
    assert _selection(_table(tmp_path, changed), bookmark, file).files == (file,)


def test_hints_about_a_changed_file_with_rejected_records_choose_what_is_loaded(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    file = FileState(str(tmp_path / "orders.csv"), 10, 1)
    table = _table(tmp_path, document)
    first = _selection(table, NEW, file)
    evidence = first.noted({file.path})
    before = Bookmark(
        first.state.after, first_run=False, next_number=2, evidence=lambda since: [evidence]
    )
    file = replace(file, size=12, modified=2)
    with pytest.raises(LoadFailed, match="records of the version that was loaded") as refused:
        _selection(table, before, file)
    hint = refused.value.hint or ""
    follows(__file__, "a file with rejected records that has changed", hint)

    skip, load = clauses(hint)
    assert "run `lakeload sync --retry-rejected JOB`" in skip
    skipped, loaded = (
        _selection(_table(tmp_path, follow(document, clause, "tables[0].table")), before, file)
        for clause in (skip, load)
    )

    assert (skipped.files, skipped.skipped) == ((), (file.path,))
    assert (loaded.files, loaded.again) == ((file,), (file.path,))
