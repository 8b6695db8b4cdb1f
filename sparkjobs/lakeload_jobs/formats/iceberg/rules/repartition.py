"""The partition spec that a table has and the one its pipeline asks for (docs/decisions/0105).

Specs are compared as transforms of columns, in their order; what Iceberg calls their fields says
nothing. Changing a spec changes metadata alone: files that are there keep the spec they were
written with (https://iceberg.apache.org/docs/latest/evolution/#partition-evolution).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import PartitionField, SchemaChanges, Transform
from lakeload_jobs.formats.iceberg.rules.partitions import (
    format_partition_field,
    parse_partition_field,
    partition_problem,
)

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
            return f"leaves new files without partitions, no longer by {_shown(self.before)}"
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
    kept = f"write `partition_by: [{', '.join(step.before)}]`" if step.before else "remove the line"
    raise LoadFailed(
        f"`{target}` is {_is(step.before)}, and `partition_by` asks for {_shown(step.now)}; "
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
