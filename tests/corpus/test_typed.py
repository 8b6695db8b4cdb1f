"""Parquet and ORC files of other libraries: each holds what its writer was given, or is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from tests.corpus.oracle import said
from tests.unit.sources.files.formats.orc import test_reader as test_orc
from tests.unit.sources.files.formats.parquet import test_reader as test_parquet

_CORPUS = Path(__file__).parent
_READ = {"orc": test_orc.read, "parquet": test_parquet.read}


def _cases() -> Iterator[Any]:
    for name in _READ:
        text = (_CORPUS / "expected" / f"{name}.jsonl").read_text(encoding="ascii")
        for line in text.splitlines():
            case = json.loads(line)
            yield pytest.param(name, case, id=f"{name}-{case['name']}")


@pytest.mark.parametrize(("name", "case"), list(_cases()))
def test_a_file_holds_what_was_given_to_its_writer(name: str, case: dict[str, Any]) -> None:
    read = _READ[name]
    paths = [_CORPUS / "files" / name / file for file in case["files"]]

    if "refused" in case:
        with pytest.raises(LoadFailed) as raised:
            read(*paths)
        assert case["refused"] in raised.value.message
        assert str(paths[0]) in raised.value.message
        return

    assert [said(value) for value in read(*paths)["v"].to_pylist()] == case["values"]
