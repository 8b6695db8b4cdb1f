"""`partition_by` as people write it, and which transform fits which column."""

from __future__ import annotations

from typing import get_args

import pytest

from lakeload_jobs.contract.spec import PartitionField, Transform
from lakeload_jobs.formats.iceberg.rules.partitions import (
    format_partition_field,
    parse_partition_field,
    partition_name,
    partition_problem,
    partition_spec_problem,
)

_COLUMNS = {
    "id": "long",
    "name": "string",
    "price": "decimal(10, 2)",
    "weight": "double",
    "open": "boolean",
    "day": "date",
    "at": "timestamptz",
    "code": "fixed[16]",
    "tags": "list<string>",
    "at_month": "int",
}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("country", PartitionField("identity", "country")),
        ("identity(country)", PartitionField("identity", "country")),
        ("day(created_at)", PartitionField("day", "created_at")),
        (" Days ( created_at ) ", PartitionField("day", "created_at")),
        ("years(a)", PartitionField("year", "a")),
        ("months(a)", PartitionField("month", "a")),
        ("hours(a)", PartitionField("hour", "a")),
        ("bucket(16, id)", PartitionField("bucket", "id", 16)),
        ("bucket(16,`a, b`)", PartitionField("bucket", "a, b", 16)),
        ("truncate(10, name)", PartitionField("truncate", "name", 10)),
        ("truncate(name, 10)", PartitionField("truncate", "name", 10)),
        ("day(created at)", PartitionField("day", "created at")),
        ("`a``b(c)`", PartitionField("identity", "a`b(c)")),
        ("日付", PartitionField("identity", "日付")),
    ],
)
def test_a_field_is_read_and_written(text: str, field: PartitionField) -> None:
    assert parse_partition_field(text) == field
    assert parse_partition_field(format_partition_field(field)) == field


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a partition field is empty"),
        ("dayy(a)", "`dayy` is not a partition transform of Iceberg; did you mean `day`?"),
        ("cube(a)", "`cube` is not a partition transform of Iceberg; write `country`"),
        ("day()", "`day()` does not name one column; write `day(created_at)`"),
        ("day(a, b)", "`day(a, b)` does not name one column"),
        ("day(a", "`day(a` is not a partition field; write `country`"),
        ("bucket(id)", "`bucket(id)` needs a number and a column; write `bucket(16, id)`"),
        ("bucket(x, id)", "`bucket(x, id)` is not a number and one column"),
        ("bucket(4, day(a))", "`bucket(4, day(a))` is not a number and one column"),
        ("bucket(-1, id)", "`bucket(-1, id)` is not a number and one column"),
        ("bucket(0, id)", "`bucket(0, id)`: the number must be from 1 to 2147483647"),
        ("truncate(2147483648, id)", "the number must be from 1 to 2147483647"),
    ],
)
def test_invalid_partition_field_is_rejected_with_an_example(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse_partition_field(text)
    assert message in str(caught.value)


_FITS = {
    "identity": {"id", "name", "price", "weight", "open", "day", "at", "code", "at_month"},
    "year": {"day", "at"},
    "month": {"day", "at"},
    "day": {"day", "at"},
    "hour": {"at"},
    "bucket": {"id", "name", "price", "day", "at", "code", "at_month"},
    "truncate": {"id", "name", "price", "at_month"},
}


@pytest.mark.parametrize("transform", get_args(Transform))
def test_a_transform_fits_the_types_that_iceberg_says(transform: Transform) -> None:
    width = 4 if transform in ("bucket", "truncate") else None
    fits = {
        name
        for name, kind in _COLUMNS.items()
        if partition_problem(PartitionField(transform, name, width), kind) is None
    }
    assert fits == _FITS[transform]


def test_a_field_that_does_not_fit_is_told_with_both_sides() -> None:
    problem = partition_spec_problem([PartitionField("day", "Name")], _COLUMNS)
    assert problem == (
        "`partition_by` field `day(Name)`: `day` does not apply to a column of type `string`, only "
        "to `date`, `timestamp`, `timestamp_ns`, `timestamptz`, `timestamptz_ns`"
    )
    missing = partition_spec_problem([PartitionField("identity", "x")], _COLUMNS)
    assert missing == "`partition_by` field `x`: the table has no column `x`"


def test_names_that_iceberg_would_give_twice_are_refused() -> None:
    assert partition_name(PartitionField("truncate", "name", 3)) == "name_trunc"
    problem = partition_spec_problem([PartitionField("month", "at")], _COLUMNS)
    assert problem is not None
    assert "is called `at_month` in Iceberg, which is a column" in problem


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        (["day(at)", "hour(at)"], True),
        (["bucket(4, id)", "bucket(8, ID)"], True),
        (["id", "id"], True),
        (["id", "bucket(4, id)"], False),
        (["day(at)", "hour(day)"], True),
        (["year(at)", "year(day)"], False),
    ],
)
def test_redundant_fields_are_refused(fields: list[str], refused: bool) -> None:
    parsed = [parse_partition_field(text) for text in fields]
    assert (partition_spec_problem(parsed, _COLUMNS) is not None) == refused
