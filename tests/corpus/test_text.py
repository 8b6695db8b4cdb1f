"""Files that other libraries wrote: each is read as the oracle reads it, or refused by its line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.files.text.table import TextTable
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.corpus.oracle import Refused, json_records
from tests.text_tables import csv_table, json_table

_CORPUS = Path(__file__).parent
_CSV = ("csv_written", "csv_structure", "csv_values")
_JSON = ("json_written", "json_by_hand")


def _cases(*folders: str) -> Iterator[Any]:
    for folder in folders:
        lines = (_CORPUS / "expected" / f"{folder}.jsonl").read_text(encoding="ascii")
        for line in lines.splitlines():
            case = json.loads(line)
            yield pytest.param(folder, case, id=case["name"])


def _here(scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
    return [scan(part) for part in parts]


def _open(folder: str, case: dict[str, Any]) -> TextTable:
    paths = [str(_CORPUS / "files" / folder / name) for name in case["files"]]
    files = tuple(local_files(paths))
    if "format" in case:
        return json_table(files, {}, lines=case["format"] == "NDJSON").split(_here)
    columns = ColumnsSpec(types=case.get("types") or None)
    return csv_table(files, case["options"], columns).split(_here)


def _rows(table: TextTable) -> list[list[Any]]:
    batches = [batch for part in table.splits.parts for batch in table.splits.read(part)]
    return [list(row.values()) for batch in batches for row in batch.to_pylist()]


def _says(value: Any, text: str | None) -> bool:
    """Return whether a value says exactly what its text says."""
    if value is None or text is None:
        return value is text
    if isinstance(value, bool):
        return str(value).lower() == text.lower()
    if isinstance(value, float):
        is_word = text in ("NaN", "Inf", "-Inf") and str(value) == text.lower()
        return is_word or Decimal(repr(value)) == Decimal(text)
    if isinstance(value, Decimal):
        return value == Decimal(text)
    if isinstance(value, datetime):
        return value == _moment(text)
    return value.isoformat() == text if isinstance(value, date) else str(value) == text


def _moment(text: str) -> datetime:
    """Return the moment of a text; digits beyond microseconds must be zeros."""
    text = re.sub(r"(\.\d{6})0+", r"\1", text.replace(" UTC", "+00:00"))
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


@pytest.mark.parametrize(("folder", "case"), [*_cases(*_CSV)])
def test_csv_corpus_is_read_exactly_or_rejected(folder: str, case: dict[str, Any]) -> None:
    if "refused" in case:
        _check_refused(folder, case)
        return
    table = _open(folder, case)
    rows = _rows(table)
    assert list(table.names) == case["names"]
    if "kinds" in case:
        assert [str(field.type) for field in table.schema] == case["kinds"]
    if "values" in case:
        assert [[_shown(value) for value in row] for row in rows] == case["values"]
        return
    assert len(rows) == len(case["rows"])
    for row, texts in zip(rows, case["rows"], strict=True):
        for value, text in zip(row, texts, strict=True):
            assert _says(value, text), (value, text)


def _check_refused(folder: str, case: dict[str, Any]) -> None:
    with pytest.raises(LoadFailed) as failed:
        _rows(_open(folder, case))
    message = failed.value.message
    assert case["refused"] in message + (failed.value.hint or "")
    assert any(Path(name).name in message for name in case["files"]), message
    if case["line"] is not None:
        assert f"line {case['line']}" in message


def _is(value: Any, stored: Any) -> bool:
    """Return whether a value is the one that the corpus stores, as itself or as JSON text."""
    if value is None or stored is None:
        return value is stored
    if isinstance(stored, str) or value is stored:
        return bool(value == stored)
    if isinstance(value, str):
        records = json_records(b'{"v": ' + value.encode() + b"}")
        return not isinstance(records, Refused) and records[0]["v"] == stored
    if isinstance(value, dict):
        found = stored.get("object")
        return (
            found is not None
            and set(found) <= set(value)
            and all(_is(item, found.get(key)) for key, item in value.items())
        )
    if isinstance(value, list):
        found = stored.get("list")
        return found is not None and len(found) == len(value) and all(map(_is, value, found))
    return "number" in stored and _says(value, stored["number"])


@pytest.mark.parametrize(("folder", "case"), [*_cases(*_JSON)])
def test_json_corpus_is_read_exactly_or_rejected(folder: str, case: dict[str, Any]) -> None:
    if "refused" in case:
        _check_refused(folder, case)
        return
    if not any(case["records"]) and case["records"]:
        with pytest.raises(LoadFailed, match="rows but no columns"):
            _open(folder, case)
        return
    table = _open(folder, case)
    rows = [dict(zip(table.names, row, strict=True)) for row in _rows(table)]
    assert len(rows) == len(case["records"])
    for row, record in zip(rows, case["records"], strict=True):
        assert _is(row, {"object": record}), (row, record)
