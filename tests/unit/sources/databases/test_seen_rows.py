"""Late rows of databases: lookback, bounds, and the rows that earlier loads have seen."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.state import Evidence
from lakeload_jobs.sources.databases.columns import SelectedColumn
from lakeload_jobs.sources.databases.seen import (
    ENTRY_BYTES,
    ID_BYTES,
    SeenRows,
    Unseen,
    comparison,
    digests,
    earlier,
    later,
    parse_lookback,
    read_seen,
    unseen,
)

ID, AT, V = (SelectedColumn(name, f'"{name}"', "string") for name in ("id", "at", "v"))
SEEN = SeenRows("5", digests([ID, AT, V]), ("id",), b"")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1000", 1000),
        ("PT10M", timedelta(minutes=10)),
        ("P2DT3H4M5.000006S", timedelta(2, 4 * 60 + 5, 6, hours=3)),
        ("P1W", timedelta(7)),
        *((wrong, None) for wrong in ("P", "PT", "P1M", "P1Y", "10m", "-1", "1.5", "PT1M2H", "")),
        (f"P{'9' * 12}D", None),
    ],
)
def test_a_lookback_is_a_number_or_a_duration(text: str, expected: int | timedelta | None) -> None:
    assert parse_lookback(text) == expected


@pytest.mark.parametrize(
    ("bound", "lookback", "expected"),
    [
        ("5", 10, "-5"),
        ("9" * 38, 1, "9" * 37 + "8"),
        ("2024-03-01", timedelta(hours=47), "2024-02-29"),
        ("2024-03-01", timedelta(minutes=10), "2024-03-01"),
        ("0001-01-02", timedelta(9), "0001-01-01"),
        ("2024-02-29 00:00:00", timedelta(seconds=0.5), "2024-02-28 23:59:59.500000"),
        ("2024-02-29 00:00:00.1+00", timedelta(minutes=1), "2024-02-28 23:59:00.100000+00"),
        ("0001-01-01 00:00:01+00", timedelta(9), "0001-01-01 00:00:00.000000+00"),
        ("any text", None, "any text"),
        ("5", 0, "5"),
    ],
)
def test_the_window_begins_so_much_before_the_bound(
    bound: str, lookback: int | timedelta | None, expected: str
) -> None:
    assert earlier(bound, lookback) == expected


def test_the_window_does_not_begin_before_rows_were_noted() -> None:
    assert later("9", "10", 1) == "10"
    assert later("2024-01-01 00:00:00.000000+00", "2024-01-01 00:00:00.5+00", timedelta(1)) == (
        "2024-01-01 00:00:00.5+00"
    )


def test_equal_rows_are_counted() -> None:
    a, b, c = (bytes([n]) * ENTRY_BYTES for n in range(3))

    assert unseen(a + b + a + c + a, a + b + b) == (Unseen(a, 2, 1), Unseen(c, 1, 0))
    assert unseen(a[:8] + b[8:], a, ID_BYTES) == ()


def test_what_is_noted_can_be_read_and_what_is_not_there_is_an_error() -> None:
    seen = replace(SEEN, entries=bytes(range(ENTRY_BYTES)))

    assert read_seen([Evidence(), seen.evidence()]) == seen
    with pytest.raises(LoadFailed, match="cannot be read"):
        read_seen([Evidence(("a file",))])


def test_changed_columns_are_compared_by_key_and_cursor_and_new_ones_not() -> None:
    new = SelectedColumn("new", '"new"', "string")
    other = replace(V, expression='"v"::text')

    assert comparison(SEEN, [ID, AT, V, new], ("id",), "t").columns == (ID, AT, V)
    for columns in ([ID, AT], [ID, AT, other]):
        assert comparison(SEEN, columns, ("id",), "t").length == ID_BYTES
    with pytest.raises(LoadFailed, match="column `v` has changed"):
        comparison(replace(SEEN, key=()), [ID, AT], (), "t")
    with pytest.raises(LoadFailed, match="`primary_key` has changed"):
        comparison(SEEN, [ID, AT, V], ("at",), "t")
