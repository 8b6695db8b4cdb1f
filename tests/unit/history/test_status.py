"""Fresh, stale and failing tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lakeload.history.day import HistoryDay, merge, of_job
from lakeload.history.status import matching, statuses
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.result import TableResult
from tests.unit.monitoring.documents import FAILED, IDLE, LOADED, document, later

TWO_HOURS = timedelta(hours=2)
TARGET = "lake.orders"


def day(*tables: TableResult) -> HistoryDay:
    found = [of_job(document(one, at=later(n)), (TARGET,)) for n, one in enumerate(tables)]
    whole = found[0]
    for one in found[1:]:
        whole = merge(whole, one)
    return whole


@pytest.mark.parametrize(
    ("tables", "minutes", "freshness", "expected"),
    [
        ((LOADED,), 119, TWO_HOURS, "FRESH"),
        ((LOADED,), 121, TWO_HOURS, "STALE"),
        ((LOADED,), 9999, None, "FRESH"),
        ((LOADED, IDLE), 120.5, TWO_HOURS, "FRESH"),
        ((LOADED, replace(LOADED, more=True)), 120.5, TWO_HOURS, "STALE"),
        ((LOADED, FAILED), 5, TWO_HOURS, "FAILED"),
        ((FAILED, LOADED), 5, TWO_HOURS, "FRESH"),
    ],
)
def test_status_of_a_table(
    tables: tuple[TableResult, ...], minutes: float, freshness: timedelta | None, expected: str
) -> None:
    (found,) = statuses(day(*tables), {TARGET: freshness}, None, later(minutes), all_tables=False)
    assert found.status == expected
    assert found.bad == (expected in ("STALE", "FAILED"))


def test_table_of_no_job_is_not_loaded_or_stale() -> None:
    one, other = statuses(None, {"a": None, "b": TWO_HOURS}, None, later(0), all_tables=False)
    assert (one.status, other.status) == ("NOT_LOADED", "STALE")


def test_tables_that_a_pattern_found_are_those_of_the_history() -> None:
    (found,) = statuses(day(LOADED), {}, TWO_HOURS, later(300), all_tables=True)
    assert (found.target, found.status) == (TARGET, "STALE")
    assert statuses(day(LOADED), {}, TWO_HOURS, later(300), all_tables=False) == ()


def test_lag_is_the_age_of_the_position() -> None:
    table = replace(LOADED, position=later(-30))
    (found,) = statuses(day(table), {TARGET: None}, None, later(10), all_tables=False)
    assert found.lag == timedelta(minutes=40)


NAMES = {"shop.orders": "public.Orders", "shop.items": "items", "web.items": "pages"}


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        ((), [*NAMES]),
        (("shop.orders",), ["shop.orders"]),
        (("items",), ["shop.items", "web.items"]),
        (("public.*",), ["shop.orders"]),
        (("pages", "orders"), ["shop.orders", "web.items"]),
    ],
)
def test_tables_are_chosen_by_their_names_in_the_lake_and_in_the_source(
    globs: tuple[str, ...], expected: list[str]
) -> None:
    found = statuses(None, dict.fromkeys(NAMES), None, later(0), all_tables=False)
    assert [one.target for one in matching(found, globs, NAMES)] == expected


@pytest.mark.parametrize(
    ("glob", "hint"),
    [
        ("shop.order", "did you mean `shop.orders`?"),
        ("public.orders", "did you mean `public.Orders`?"),
        ("zzz*", "there are `shop.orders`, `shop.items`, `web.items`"),
    ],
)
def test_name_of_no_table_is_refused_with_the_one_that_is_meant(glob: str, hint: str) -> None:
    found = statuses(None, dict.fromkeys(NAMES), None, later(0), all_tables=False)
    with pytest.raises(InvalidInput) as raised:
        matching(found, ("items", glob), NAMES)
    assert raised.value.message == f"`--table {glob}` matches no table of the pipeline"
    assert raised.value.hint == hint
