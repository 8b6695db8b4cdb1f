"""Parquet files that other libraries wrote: each holds what was given to them, or is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from tests.unit.sources.test_parquet import read

_CORPUS = Path(__file__).parents[2] / "corpus"


def _cases() -> Iterator[Any]:
    for line in (_CORPUS / "expected" / "parquet.jsonl").read_text(encoding="ascii").splitlines():
        case = json.loads(line)
        yield pytest.param(case, id=case["name"])


def _said(value: Any) -> Any:
    """Return a value as the corpus has it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        at = value if value.tzinfo is None else value.astimezone(UTC)
        return at.isoformat(timespec="microseconds")
    if isinstance(value, dict):
        return {name: _said(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_said(one) for one in value]
    return repr(value) if isinstance(value, float) else str(value)


@pytest.mark.parametrize("case", list(_cases()))
def test_a_file_holds_what_was_given_to_its_writer(case: dict[str, Any]) -> None:
    paths = [_CORPUS / "files" / "parquet" / name for name in case["files"]]

    if "refused" in case:
        with pytest.raises(LoadFailed) as raised:
            read(*paths)
        assert case["refused"] in raised.value.message
        assert str(paths[0]) in raised.value.message
        return
    rows = read(*paths)

    assert [_said(value) for value in rows["v"].to_pylist()] == case["values"]
