"""Values of a cursor that a user writes (`--from`)."""

from __future__ import annotations

import pytest

from lakeload_jobs.sources.databases.bookmark import Kind
from lakeload_jobs.sources.databases.cursors import parse_value


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("INTEGER", " -41 ", "-41"),
        ("INTEGER", "9" * 65, "9" * 65),
        ("DATE", "2024-02-29", "2024-02-29"),
        ("TIMESTAMP", "2024-02-29", "2024-02-29 00:00:00"),
        ("TIMESTAMP", "2024-02-29T12:00:00.000001", "2024-02-29 12:00:00.000001"),
        ("TIMESTAMPTZ", "2024-02-29 12:00:00+05:30", "2024-02-29 06:30:00"),
        ("TIMESTAMPTZ", "2024-02-29T12:00:00Z", "2024-02-29 12:00:00"),
        ("TIMESTAMPTZ", "0001-01-01", "0001-01-01 00:00:00"),
        ("TEXT", " a'b", " a'b"),
        ("TEXT", "", ""),
    ],
)
def test_a_value_is_read_as_one_of_the_column(kind: Kind, given: str, value: str) -> None:
    assert parse_value(kind, given) == value


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("INTEGER", "1.5"),
        ("INTEGER", "1; DROP TABLE orders"),
        ("INTEGER", "١"),
        ("DATE", "2024-02-30"),
        ("DATE", "2024-02-29 12:00"),
        ("TIMESTAMP", "2024-02-29 12:00:00+00"),
        ("TIMESTAMPTZ", "now"),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: Kind, given: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_value(kind, given)
