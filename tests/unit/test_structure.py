"""Decisions by the name of a format, a catalog, a source or a master: how many are left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.structure import PRODUCT, comparisons

MOST = 7
"""As many as there are; it only goes down."""


def test_names_are_compared_in_the_contract_and_the_registries() -> None:
    found = comparisons()
    assert len(found) <= MOST, "\n".join(f"{item.path}:{item.line}: {item.text}" for item in found)


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
        ("if source.format == 'PARQUET': pass", []),
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


def test_templates_and_registries_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / PRODUCT[1]
    (folder / "formats").mkdir(parents=True)
    compared = 'a = kind == "ICEBERG"\n'
    (folder / "formats" / "registry.py").write_text(compared, encoding="utf-8")
    (folder / "page.jinja").write_text("% if catalog.type == 'GLUE'\n", encoding="utf-8")
    found = comparisons(tmp_path)
    assert [(item.path, item.line) for item in found] == [(f"{PRODUCT[1]}/page.jinja", 1)]
