"""The pages of text files: every example of their tables is executed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.files.formats.csv.options import read_csv_options
from lakeload_jobs.sources.files.formats.json.values import JsonEvidence
from lakeload_jobs.sources.files.text.inference import ColumnEvidence, reconcile
from lakeload_jobs.sources.files.text.options import option_text
from lakeload_jobs.sources.files.text.patterns import compile_pattern
from lakeload_jobs.sources.files.text.table import TextFiles
from lakeload_jobs.sources.files.text.values import TextFormats, parse_text
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.local_listing import file_state
from lakeload_jobs.sources.type_names import declared_type
from tests.text_tables import csv_table, json_table

_DOCS = Path(__file__).parents[5] / "docs"
_EXAMPLE = re.compile(r"`([^`]+)`(?: → `([^`]+)`)?")


def _rows(page: str, header: str) -> list[list[str]]:
    """Return the cells of the table of a page below a header."""
    lines = (_DOCS / page).read_text(encoding="utf-8").splitlines()
    rows = []
    for line in lines[lines.index(header) + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line[1:-1].split("|")])
    return rows


def _codes(cell: str) -> list[str]:
    return [text for text, _ in _EXAMPLE.findall(cell)]


def _values() -> Iterator[tuple[str, str, str]]:
    for types, good, bad in _rows("text-values.md", "| type | text → value | bad |"):
        for text, value in _EXAMPLE.findall(good):
            yield types.strip("`"), text, value or text
        for text in _codes(bad):
            yield types.strip("`"), text, "bad"


@pytest.mark.parametrize(("kind", "text", "value"), [*_values()])
def test_text_is_the_value_of_the_table(kind: str, text: str, value: str) -> None:
    arrow, unit = declared_type(kind)
    formats = TextFormats(timestamp_unit=unit)
    values, bad = parse_text(pa.array([text]), arrow, formats)
    assert ("bad" if len(bad) else str(values[0].as_py())) == value


@pytest.mark.parametrize(
    "cell",
    [row[-1] for row in _rows("text-values.md", "| letters | stand for | pattern, text → value |")],
)
def test_texts_match_the_patterns_of_the_table(cell: str) -> None:
    (pattern, _), (text, value) = _EXAMPLE.findall(cell)
    moment = compile_pattern(pattern).parse(text)
    shown: date | datetime = moment if ":" in value else moment.date()
    assert str(shown) == value


@pytest.mark.parametrize(
    ("texts", "safe", "full"), _rows("text-values.md", "| values of a column | SAFE | FULL |")
)
def test_types_are_inferred_as_the_table_says(texts: str, safe: str, full: str) -> None:
    evidence = ColumnEvidence()
    evidence.add(pa.array(_codes(texts)))
    assert [f"`{evidence.infer('SAFE')}`", f"`{evidence.infer('FULL')}`"] == [safe, full]


@pytest.mark.parametrize(
    ("recorded", "texts", "kind"), _rows("text-values.md", "| in the table | values | read as |")
)
def test_columns_have_the_type_that_the_table_says(recorded: str, texts: str, kind: str) -> None:
    evidence = ColumnEvidence()
    evidence.add(pa.array(_codes(texts)))
    assert f"`{reconcile(None, recorded.strip('`'), evidence).name}`" == kind


_ESCAPE = re.compile(r"\\([nrt])")


@pytest.mark.parametrize(
    ("values", "safe", "full"), _rows("json-files.md", "| values of a key | SAFE | `infer: FULL` |")
)
def test_types_of_json_are_inferred_as_the_table_says(values: str, safe: str, full: str) -> None:
    texts = [None if text == "null" else text.encode() for text in _codes(values)]
    for mode, kind in (("SAFE", safe), ("FULL", full)):
        evidence = JsonEvidence(mode=mode)  # type: ignore[arg-type]
        evidence.add(pa.array(texts, pa.binary()))
        assert evidence.infer(mode).replace("`", "") == kind.strip("`")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("file", "options", "rows"), _rows("csv-files.md", "| file | options | rows |")
)
def test_csv_files_are_read_as_the_table_says(
    tmp_path: Path, file: str, options: str, rows: str
) -> None:
    given = {"header": "true", **_settings(options)}
    _check(rows, csv_table(_written(tmp_path, file), given))


_DUMP = re.compile(r"```text\n(.*?)```\n\n```yaml\n(.*?)```\n\n```json\n(.*?)\n```", re.DOTALL)


@pytest.mark.parametrize(
    ("file", "options", "rows"), _DUMP.findall((_DOCS / "dumps.md").read_text(encoding="utf-8"))
)
def test_dumps_are_read_as_the_page_says(
    tmp_path: Path, file: str, options: str, rows: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(file.replace("^I", "\t").replace("^A", "\x01").encode())
    given = yaml.safe_load(options)["options"]
    assert read_csv_options(given)[1] == []
    texts = {name: option_text(value) for name, value in given.items()}
    _check(f"`{rows}`", csv_table((file_state(str(path)),), texts))


@pytest.mark.parametrize(
    ("file", "settings", "rows"), _rows("json-files.md", "| JSON file | settings | rows |")
)
def test_json_files_are_read_as_the_table_says(
    tmp_path: Path, file: str, settings: str, rows: str
) -> None:
    given = _settings(settings)
    lines, as_text = given.pop("format", "") != "JSON", given.pop("nested", "") == "JSON"
    files = _written(tmp_path, file)
    _check(rows, json_table(files, given, lines=lines, nested_as_text=as_text))


def _written(folder: Path, file: str) -> tuple[FileState, ...]:
    content = _ESCAPE.sub(lambda found: {"n": "\n", "r": "\r", "t": "\t"}[found[1]], file[1:-1])
    path = folder / "a.csv"
    path.write_bytes(content.encode())
    return (file_state(str(path)),)


def _settings(cell: str) -> dict[str, str]:
    pairs = (code.partition(":") for code in _codes(cell))
    return {name: value.strip() for name, _, value in pairs}


def _check(rows: str, table: TextFiles) -> None:
    def scan(work: Any, parts: Any) -> Any:
        return [work(part) for part in parts]

    if not rows.startswith("`"):
        with pytest.raises(LoadFailed, match=re.escape(rows)):
            table.split(scan)
        return
    splits = table.split(scan).splits
    found = [
        row for part in splits.parts for batch in splits.read(part) for row in batch.to_pylist()
    ]
    assert json.loads(json.dumps(found, default=str)) == json.loads(rows[1:-1])
