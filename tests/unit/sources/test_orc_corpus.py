"""ORC files that other libraries wrote: each holds what was given to them, or is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from tests.corpus.oracle import said
from tests.unit.sources.test_orc import read

_CORPUS = Path(__file__).parents[2] / "corpus"


def _cases() -> Iterator[Any]:
    for line in (_CORPUS / "expected" / "orc.jsonl").read_text(encoding="ascii").splitlines():
        case = json.loads(line)
        yield pytest.param(case, id=case["name"])


@pytest.mark.parametrize("case", list(_cases()))
def test_an_orc_file_holds_what_was_given_to_its_writer(case: dict[str, Any]) -> None:
    paths = [_CORPUS / "files" / "orc" / name for name in case["files"]]

    if "refused" in case:
        with pytest.raises(LoadFailed) as raised:
            read(*paths)
        assert case["refused"] in raised.value.message
        assert str(paths[0]) in raised.value.message
        return

    assert [said(value) for value in read(*paths)["v"].to_pylist()] == case["values"]
