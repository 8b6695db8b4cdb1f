"""docs/exit-codes.md and the code agree."""

from __future__ import annotations

import re
from pathlib import Path

from lakeload_jobs.contract import errors
from lakeload_jobs.contract.errors import ExitCode, LakeloadError

PAGE = Path(__file__).parents[3] / "docs" / "exit-codes.md"


def test_exit_code_page_lists_exactly_the_enum() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(str(code.value), code.name) for code in ExitCode]


def test_every_expected_failure_has_a_code_of_the_page() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, LakeloadError)
    ]
    assert len(kinds) > 5
    assert all(isinstance(kind.exit_code, ExitCode) for kind in kinds)
