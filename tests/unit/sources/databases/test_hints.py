"""Hints of PostgreSQL's errors that are SQL to copy."""

from __future__ import annotations

import pytest

from lakeload_jobs.sources.databases.engines.postgres.catalog import free_name
from lakeload_jobs.sources.databases.engines.postgres.failures import failure


@pytest.mark.parametrize(
    ("name", "names", "free"),
    [
        ("a", ["a", "a"], "a_2"),
        ("a", ["a", "a", "a_2"], "a_3"),
        ("?column?", ["?column?", "?column?"], "column_2"),
        ("full name", ["full name", "full name"], "full_name_2"),
        ("1st", ["1st", "1st"], "column_1st_2"),
        ("??", ["??", "??"], "column_2"),
    ],
)
def test_the_name_that_a_hint_gives_a_column_needs_no_quotes(
    name: str, names: list[str], free: str
) -> None:
    assert free_name(name, names) == free


@pytest.mark.parametrize(("state", "retryable"), [("55000", False), ("55P03", True)])
def test_only_a_state_that_passes_by_itself_is_retryable(state: str, retryable: bool) -> None:
    error = failure("reading `v`", state, "…")
    assert error.retryable == retryable
    assert error.hint
