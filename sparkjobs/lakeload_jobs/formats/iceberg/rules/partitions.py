"""Partition specs, and their evolution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import PartitionField, SchemaChanges, Transform
from lakeload_jobs.core.names import nearest
from lakeload_jobs.core.yaml_lines import yaml_list

_WITH_WIDTH = ("bucket", "truncate")
_OF_TIME = ("year", "month", "day", "hour")

_SYNONYMS: Mapping[str, Transform] = {
    "identity": "identity",
    "year": "year",
    "years": "year",
    "month": "month",
    "months": "month",
    "day": "day",
    "days": "day",
    "hour": "hour",
    "hours": "hour",
    "bucket": "bucket",
    "truncate": "truncate",
}
"""Spark's and Iceberg's names of one transform."""

_EXAMPLES = "`country`, `day(created_at)`, `bucket(16, id)` or `truncate(10, name)`"
_MAX_WIDTH = 2**31 - 1

_TIMES = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
_BUCKETS = {"int", "long", "date", "time", "string", "uuid", "binary", "fixed", "decimal", *_TIMES}
_FITS: Mapping[str, frozenset[str]] = {
    "year": frozenset({"date", *_TIMES}),
    "month": frozenset({"date", *_TIMES}),
    "day": frozenset({"date", *_TIMES}),
    "hour": frozenset(_TIMES),
    "bucket": frozenset(_BUCKETS),
    "truncate": frozenset({"int", "long", "decimal", "string", "binary"}),
}
_NESTED = ("struct", "list", "map")
_NOT_IDENTITY = (*_NESTED, "variant", "geometry", "geography", "unknown")


def parse_partition_field(text: str) -> PartitionField:
    """Read one field. Raises `ValueError` whose text tells people what is wrong with it.

    Transforms are read without case and in the plural too (`days(created_at)`), as in Spark SQL. A
    column whose name is not a word goes in backticks: `` day(`created at`) ``.
    """
    text = text.strip()
    if not text:
        raise ValueError(f"a partition field is empty; write {_EXAMPLES}")
    if (column := _column(text)) is not None:
        return PartitionField("identity", column)
    match = re.fullmatch(r"([A-Za-z_]+)\s*\((.*)\)", text, re.DOTALL)
    if match is None:
        raise ValueError(f"`{text}` is not a partition field; write {_EXAMPLES}")
    transform = _SYNONYMS.get(match[1].lower())
    if transform is None:
        guess = nearest(match[1].lower(), _SYNONYMS)
        meant = f"; did you mean `{guess}`?" if guess else f"; write {_EXAMPLES}"
        raise ValueError(f"`{match[1]}` is not a partition transform of Iceberg{meant}")
    if transform in _WITH_WIDTH:
        return _with_width(text, transform, match[2])
    column = _column(match[2].strip())
    if column is None:
        raise ValueError(f"`{text}` does not name one column; write `{transform}(created_at)`")
    return PartitionField(transform, column)


def format_partition_field(field: PartitionField) -> str:
    """Write a field as `parse_partition_field` reads it."""
    plain = re.fullmatch(r"\w+", field.column)
    column = field.column if plain else f"`{field.column.replace('`', '``')}`"
    if field.transform == "identity":
        return column
    width = f"{field.width}, " if field.width is not None else ""
    return f"{field.transform}({width}{column})"


def partition_spec_problem(
    fields: Sequence[PartitionField], columns: Mapping[str, str]
) -> str | None:
    """Say why fields do not make a partition spec, or return None.

    `columns` are the table's, name → Iceberg type, and the fields name them as the table does.
    """
    types = {name.lower(): kind for name, kind in columns.items()}
    for field in fields:
        if problem := partition_problem(field, types.get(field.column.lower())):
            return problem
        if field.transform != "identity" and partition_name(field).lower() in types:
            return (
                f"`partition_by` field `{format_partition_field(field)}` is called "
                f"`{partition_name(field)}` in Iceberg, which is a column of the table too"
            )
    return duplicate_field(fields)


def partition_name(field: PartitionField) -> str:
    """Return the name that Iceberg gives a field in the partition spec."""
    suffix = {"identity": "", "truncate": "_trunc"}.get(field.transform, f"_{field.transform}")
    return f"{field.column}{suffix}"


def duplicate_field(fields: Sequence[PartitionField]) -> str | None:
    """Say which field makes a spec that Iceberg refuses, or return None.

    A column has each transform once, and one of year, month, day and hour: the finer ones hold the
    coarser, and Iceberg calls them redundant.
    """
    seen: dict[tuple[str, str], PartitionField] = {}
    for field in fields:
        kind = "time" if field.transform in _OF_TIME else field.transform
        earlier = seen.setdefault((kind, field.column.lower()), field)
        if earlier is not field:
            return (
                f"`{format_partition_field(field)}` is redundant beside "
                f"`{format_partition_field(earlier)}`"
            )
    return None


def partition_problem(field: PartitionField, column_type: str | None) -> str | None:
    """Say why a field does not fit its column's Iceberg type (None: no such column), or None."""
    shown = f"`partition_by` field `{format_partition_field(field)}`"
    if column_type is None:
        return f"{shown}: the table has no column `{field.column}`"
    base = re.split(r"[(\[<]", column_type, maxsplit=1)[0].strip()
    if field.transform == "identity":
        if base in _NOT_IDENTITY:
            return f"{shown}: a column of type `{column_type}` cannot be partitioned by its value"
        return None
    fits = _FITS[field.transform]
    if base in fits:
        return None
    listed = ", ".join(f"`{name}`" for name in sorted(fits))
    return (
        f"{shown}: `{field.transform}` does not apply to a column of type `{column_type}`, only to "
        f"{listed}"
    )


def _with_width(text: str, transform: Transform, arguments: str) -> PartitionField:
    example = f"`{transform}(16, id)`"
    number, comma, rest = arguments.partition(",")
    if not comma:
        raise ValueError(f"`{text}` needs a number and a column; write {example}")
    if not re.fullmatch(r"\s*[0-9]+\s*", number):
        # Spark's own functions take the width last for truncate: both orders are read.
        first, _, last = arguments.rpartition(",")
        number, rest = last, first
    column = _column(rest.strip())
    if not re.fullmatch(r"\s*[0-9]+\s*", number) or column is None:
        raise ValueError(f"`{text}` is not a number and one column; write {example}")
    width = int(number)
    if not 1 <= width <= _MAX_WIDTH:
        raise ValueError(f"`{text}`: the number must be from 1 to {_MAX_WIDTH}")
    return PartitionField(transform, column, width)


def _column(text: str) -> str | None:
    """Return the column that a text names; None when it is no single name."""
    if re.fullmatch(r"`(?:[^`]|``)+`", text):
        return text[1:-1].replace("``", "`")
    return text if re.fullmatch(r"[^\s`(),][^`(),]*", text) else None


NO_PARTITION = "void"
"""What is left of a field that was removed from a table of format version 1."""


@dataclass(frozen=True)
class Repartition:
    """The way from one spec to another; fields as `partition_by` writes them."""

    before: tuple[str, ...]
    now: tuple[str, ...]
    keep: int
    """So many fields from the first on stay; those after them are removed."""
    add: tuple[PartitionField, ...]

    @property
    def moves(self) -> bool:
        """Whether a field is removed and added again, for a place further on.

        Iceberg takes the two for nothing when they come in one update.
        """
        return bool({*_plain(self.before[self.keep :])} & {*_plain(self.now[self.keep :])})

    def sentence(self) -> str:
        """Say it for people."""
        if not self.now:
            return f"writes new files without partitions, no longer by {_shown(self.before)}"
        so_far = f", no longer by {_shown(self.before)}" if self.before else ""
        return f"partitions new files by {_shown(self.now)}{so_far}"


def spec_field(transform: str, column: str) -> str:
    """Return a field of a table's spec as `partition_by` would write it.

    `transform` is Iceberg's text, `bucket[16]`. One that `partition_by` does not know keeps its
    text: such a spec equals no other.
    """
    name, _, width = transform.partition("[")
    if name not in get_args(Transform):
        return f"{transform}({column})"
    number = int(width.rstrip("]")) if width else None
    return format_partition_field(PartitionField(cast("Transform", name), column, number))


def repartition(
    before: Sequence[str], wanted: Sequence[PartitionField] | None
) -> Repartition | None:
    """Return the step from the table's spec to the one asked for; None where there is none.

    `wanted` None asks for nothing: the table keeps its own.
    """
    if wanted is None:
        return None
    now = tuple(map(format_partition_field, wanted))
    pairs = zip(_plain(before), _plain(now), strict=False)
    keep = next((i for i, (old, new) in enumerate(pairs) if old != new), min(len(before), len(now)))
    if keep == len(before) == len(now):
        return None
    return Repartition(tuple(before), now, keep, tuple(wanted[keep:]))


def check_repartition(step: Repartition, policy: SchemaChanges, target: str) -> None:
    """Raise `LoadFailed` unless `schema_changes` lets a load change more than add columns."""
    if policy == "EVOLVE":
        return
    kept = f"write `partition_by: {yaml_list(step.before)}`" if step.before else "remove the line"
    raise LoadFailed(
        f"`{target}` is {_is(step.before)}, but `partition_by` is {_shown(step.now)}; "
        f"`schema_changes` is {policy}",
        hint=f"set `schema_changes: EVOLVE`, or {kept}; without `partition_by` the table keeps "
        "what it has",
    )


def kept_fields(before: Sequence[str], columns: Mapping[str, str]) -> tuple[PartitionField, ...]:
    """Return the fields of a table's spec that it can have with other columns too.

    `columns` are those it gets, name → Iceberg type.
    """
    types = {name.lower(): kind for name, kind in columns.items()}
    found = []
    for text in before:
        try:
            field = parse_partition_field(text)
        except ValueError:
            # A transform of other writers, of which nothing is known.
            continue
        if partition_problem(field, types.get(field.column.lower())) is None:
            found.append(field)
    return tuple(found)


def _plain(fields: Sequence[str]) -> list[str]:
    """Names of columns are compared without case, as everywhere."""
    return [field.lower() for field in fields]


def _is(fields: Sequence[str]) -> str:
    return f"partitioned by {_shown(fields)}" if fields else "not partitioned"


def _shown(fields: Sequence[str]) -> str:
    return ", ".join(f"`{field}`" for field in fields) or "no partitions"
