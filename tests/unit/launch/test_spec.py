"""Attempts and the choice of tables."""

from __future__ import annotations

import re

import pytest

from lakeload.launch.spec import new_attempt, select_tables
from lakeload_jobs.contract.errors import InvalidInput
from tests.unit.launch.specs import table

TABLES = (table("orders"), table("order_lines"), table("customers"))


@pytest.mark.parametrize(
    ("globs", "names"),
    [
        ((), ["orders", "order_lines", "customers"]),
        (("order*",), ["orders", "order_lines"]),
        (("customers", "orders"), ["orders", "customers"]),
    ],
)
def test_tables_are_chosen_by_glob_in_the_documents_order(
    globs: tuple[str, ...], names: list[str]
) -> None:
    assert [chosen.source for chosen in select_tables(TABLES, globs)] == names


def test_a_glob_without_a_match_suggests_the_nearest_table() -> None:
    with pytest.raises(InvalidInput, match=re.escape("`--table ordres`")) as refused:
        select_tables(TABLES, ("orders", "ordres"))
    assert refused.value.hint == "did you mean `orders`?"


def test_an_attempt_has_an_id_of_its_own_and_one_instant_in_utc() -> None:
    first, second = new_attempt("nightly-1"), new_attempt("nightly-1")
    assert first.job_id == second.job_id == "nightly-1"
    assert first.attempt_id != second.attempt_id
    assert first.synced.utcoffset() is not None
    assert str(first.synced.tzinfo) == "UTC"
    assert new_attempt(None).job_id != new_attempt(None).job_id


def test_a_bad_job_id_is_refused() -> None:
    with pytest.raises(InvalidInput, match="job id"):
        new_attempt("../x")
