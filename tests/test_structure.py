"""Decisions by the name of a format, a catalog, a source, an engine or a master: what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.structure import (
    PRODUCT,
    ROOT,
    circles,
    comparisons,
    imports,
    reading_lists,
    second_currency,
)

_SYNC = "The modules of a sync, in reading order"
_COMMIT = "The modules of the commit of a Parquet table"
_STARTED_BY_NAME = (
    "cli/lakeload/app.py",
    "cli/lakeload/commands/sync.py",
    "sparkjobs/lakeload_jobs/jobs/attempt.py",
    "sparkjobs/lakeload_jobs/jobs/load.py",
)


def test_names_are_compared_in_the_contract_the_registries_and_the_rooms() -> None:
    assert [f"{item.path}:{item.line}: {item.text}" for item in comparisons()] == []


def test_no_modules_import_each_other() -> None:
    assert circles() == []


@pytest.mark.parametrize(
    ("back", "found"),
    [
        ("import product.a", [["product/a.py", "product/b.py", "product/c.py"]]),
        ("def f():\n    from product import a", [["product/a.py", "product/b.py", "product/c.py"]]),
        ("if TYPE_CHECKING:\n    from product.a import A", []),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from product.c import C", []),
    ],
)
def test_modules_that_import_each_other_are_found(
    tmp_path: Path, back: str, found: list[list[str]]
) -> None:
    package = tmp_path / "product"
    package.mkdir()
    for name, text in (
        ("__init__", ""),
        ("a", "from product.b import B"),
        ("b", "def f():\n    import product.c"),
        ("c", back),
        ("d", "from product.a import A"),
    ):
        (package / f"{name}.py").write_text(text)

    assert circles(tmp_path, ["product"]) == found


def test_no_module_has_words_of_rows_as_frames() -> None:
    assert second_currency() == {}


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("a = spec.table_format == 'ICEBERG'", ["table format"]),
        ("if catalog.type not in ('GLUE', 'NESSIE'): pass", ["catalog type"]),
        ("match table_format:\n    case 'PARQUET': pass\n    case _: pass", ["table format"]),
        ("if traits.interface is Interface.REST: pass", ["catalog type"]),
        ("if data.get('type') == 'FILES': pass", ["source type"]),
        ("if isinstance(table.input, FilesInput): pass", ["source type"]),
        ("if str(context.master).startswith('local'): pass", ["master"]),
        ("if isinstance(error, InvalidInput): pass", []),
        ("if source.format == 'PARQUET': pass", ["file format"]),
        ("readers = {'ORC': orc, 'AVRO': avro}", ["file format"]),
        ("match file_format:\n    case 'CSV' | 'NDJSON': pass", ["file format"]),
        ("if read.database != 'MYSQL': pass", ["engine"]),
        ("ports = {'postgresql': 5432}", ["engine"]),
        ("if nested == 'JSON': pass", []),
        ("if traits.has_catalog: pass", []),
        ("rules = {'ICEBERG': iceberg}['ICEBERG']", []),
    ],
)
def test_a_comparison_is_found_by_what_it_compares(
    tmp_path: Path, code: str, kinds: list[str]
) -> None:
    module = tmp_path / PRODUCT[0] / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(code, encoding="utf-8")
    assert [item.kind for item in comparisons(tmp_path)] == kinds


def test_templates_and_registries_are_distinguished(tmp_path: Path) -> None:
    folder = tmp_path / PRODUCT[1]
    (folder / "formats").mkdir(parents=True)
    compared = 'a = kind == "ICEBERG"\n'
    (folder / "formats" / "registry.py").write_text(compared, encoding="utf-8")
    (folder / "page.jinja").write_text("% if catalog.type == 'GLUE'\n", encoding="utf-8")
    found = comparisons(tmp_path)
    assert [(item.path, item.line) for item in found] == [(f"{PRODUCT[1]}/page.jinja", 1)]


def test_a_room_may_name_its_engine_or_format_and_others_may_not(tmp_path: Path) -> None:
    room = tmp_path / PRODUCT[1] / "sources/databases/engines/mysql/facts.py"
    room.parent.mkdir(parents=True)
    room.write_text("if database == 'MYSQL': pass\nwhy_spark = ''\n", encoding="utf-8")
    assert comparisons(tmp_path) == []
    assert sum(second_currency(tmp_path).values()) == 1
    room.rename(tmp_path / PRODUCT[1] / "other.py")
    assert [item.kind for item in comparisons(tmp_path)] == ["engine"]


def test_sync_reading_order_is_short_and_follows_the_imports() -> None:
    """docs/layout.md lists what to read: every module is imported by one listed before it."""
    sync, commit = reading_lists()[_SYNC], reading_lists()[_COMMIT]
    assert len(commit) <= 12
    assert len(sync) + len(commit) <= 60
    reached = set(_STARTED_BY_NAME)
    unreached = []
    for path in [*sync, *commit]:
        if path not in reached:
            unreached.append(path)
        reached |= imports(ROOT / path)
    assert unreached == []


def test_the_commit_needs_no_module_of_formats_or_storage_that_is_not_listed() -> None:
    commit = reading_lists()[_COMMIT]
    todo, reached = commit[:1], set(commit[:1])
    while todo:
        new = {
            path
            for path in imports(ROOT / todo.pop()) - reached
            if "/formats/" in path or "/storage/" in path
        }
        reached |= new
        todo += new
    assert reached - set(commit) == set()
