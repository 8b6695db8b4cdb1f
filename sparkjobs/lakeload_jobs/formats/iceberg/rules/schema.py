"""The columns of an Iceberg table and those of a load: what changes first, and what is refused.

Spark alone would take too much: a `long` into an `int` column until a value overflows, a column
that is missing, a null for a required one. So lakeload compares by itself (docs/schema-changes.md
has the whole table; F69, F88, F89) and changes the table with explicit steps before it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import Mode, PartitionField, SchemaChanges
from lakeload_jobs.formats.iceberg.rules.changes import (
    Added,
    Change,
    Path,
    Relaxed,
    Removed,
    Widened,
    type_changes,
)
from lakeload_jobs.formats.iceberg.rules.keys import (
    KeyChange,
    identifier_fields,
    key_change,
    key_is_null,
)
from lakeload_jobs.formats.iceberg.rules.refusals import schema_hint, schema_problems, shown
from lakeload_jobs.formats.iceberg.rules.repartition import (
    Repartition,
    check_repartition,
    kept_fields,
    repartition,
)
from lakeload_jobs.formats.iceberg.rules.types import Field, Struct, parse_type


@dataclass(frozen=True)
class SchemaPlan:
    """The steps that a table needs before a load is written into it, in this order."""

    add: tuple[Added, ...] = ()
    """Always optional. `type` is for people: the load's own schema has the type to add."""
    widen: tuple[Widened, ...] = ()
    make_optional: tuple[Path, ...] = ()
    """Required columns of which the load may bring nulls; identifiers are set first."""
    require: tuple[str, ...] = ()
    """New key columns that are optional yet: count the nulls they have in the table's rows, and
    ask `with_nulls` what becomes of the plan."""
    set_identifiers: tuple[str, ...] | None = None
    """The new identifier fields; None leaves them as they are."""
    removed: tuple[Path, ...] = ()
    """Columns, or fields in them, that the load does not have: filled with null."""
    replace: bool = False
    """The load replaces the definition of the table by its own, as it replaces the rows."""
    repartition: Repartition | None = None
    """The partition spec that new files get; None leaves that of the table."""
    notes: tuple[str, ...] = ()

    @property
    def changes_table(self) -> bool:
        """Whether any step is to be done before the load is written."""
        return self.changes_columns or self.replace or self.repartition is not None

    @property
    def changes_columns(self) -> bool:
        """Whether columns or the key are changed in place."""
        steps = (self.add, self.widen, self.make_optional, self.require)
        return any(steps) or self.set_identifiers is not None

    def lines(self) -> tuple[str, ...]:
        """Return the plan for people, a sentence a step."""
        identifiers = ", ".join(f"`{name}`" for name in self.set_identifiers or ())
        return (
            *(f"adds `{shown(change.path)}` as `{change.type}`" for change in self.add),
            *(
                f"widens `{shown(change.path)}` from `{change.before}` to `{change.now}`"
                for change in self.widen
            ),
            *(f"lets `{shown(path)}` be null" for path in self.make_optional),
            *(f"makes `{name}` required" for name in self.require),
            *((f"sets the identifier fields to {identifiers}",) if identifiers else ()),
            *(f"keeps `{shown(path)}`, null in new rows" for path in self.removed),
            *(("replaces the columns of the table by those of the load",) * self.replace),
            *((self.repartition.sentence(),) if self.repartition else ()),
            *self.notes,
        )


def compare(
    existing: Mapping[str, str],
    incoming: Mapping[str, str],
    policy: SchemaChanges,
    mode: Mode,
    *,
    target: str,
    required: Collection[str] = (),
    identifiers: Sequence[str] = (),
    keys: Sequence[str] = (),
    incoming_required: Collection[str] = (),
    full_refresh: bool = False,
    empty: bool = False,
) -> SchemaPlan:
    """Return the steps for a load into a table, or raise `LoadFailed` naming column and types.

    `existing` and `incoming` are columns, name → Iceberg type as text; names are compared without
    case, as Glue and Athena do. `required` and `identifiers` are those of the table, `keys` the
    primary key of the load (none: the identifiers stay). Spark calls nearly every column nullable;
    `incoming_required` names those that are not. `empty` tables may be given required columns.
    """
    key = key_change(
        existing, incoming, required, identifiers, keys, mode, target=target, empty=empty
    )
    key = _left_alone(key, policy, mode, target)
    table = _columns(existing, required)
    load = _columns(incoming, {*incoming_required, *keys})
    changes = tuple(type_changes((), table, load))
    replaces = mode == "OVERWRITE" or full_refresh
    stays = {name.lower() for name in (identifiers if key.identifiers is None else key.identifiers)}
    problems = schema_problems(changes, key, policy, stays)
    if problems and replaces and policy == "EVOLVE":
        names, notes = identifier_fields(incoming, keys, mode, target=target)
        return SchemaPlan(set_identifiers=names, replace=True, notes=notes)
    if problems:
        raise LoadFailed(
            f"the columns of the load do not fit those of `{target}`: {'; '.join(problems)}",
            hint=schema_hint(changes, key, policy, stays, replaces=replaces),
        )
    return SchemaPlan(
        add=tuple(change for change in changes if isinstance(change, Added)),
        widen=tuple(change for change in changes if isinstance(change, Widened)),
        make_optional=tuple(_relaxed(changes, stays)) if policy == "EVOLVE" else (),
        require=key.require,
        set_identifiers=key.identifiers,
        removed=tuple(change.path for change in changes if isinstance(change, Removed)),
        notes=key.notes,
    )


def with_nulls(
    plan: SchemaPlan,
    nulls: Mapping[str, int],
    mode: Mode,
    *,
    target: str,
    identifiers: Sequence[str],
) -> SchemaPlan:
    """Return the plan for a table that has so many rows with null in columns of `plan.require`.

    `identifiers` are those of the table. An UPSERT raises `LoadFailed` at the first null (F93);
    other modes leave the identifier fields as they are, and say so.
    """
    found = next(((name, rows) for name, rows in nulls.items() if rows), None)
    if found is None:
        return plan
    name, rows = found
    error = key_is_null(target, name, rows)
    if mode == "UPSERT":
        raise error
    stays = {identifier.lower() for identifier in identifiers}
    optional = (p for p in plan.make_optional if len(p) > 1 or p[0].lower() not in stays)
    note = f"the identifier fields of `{target}` stay as they are: {error}"
    return replace(
        plan,
        make_optional=tuple(optional),
        require=(),
        set_identifiers=None,
        notes=(*plan.notes, note),
    )


def with_partitions(
    plan: SchemaPlan,
    table: Sequence[str],
    wanted: Sequence[PartitionField] | None,
    policy: SchemaChanges,
    *,
    target: str,
    columns: Mapping[str, str],
) -> SchemaPlan:
    """Return the plan with the step from the table's partition spec to the one asked for.

    `table` are the fields of its spec, `wanted` those of `partition_by` (None: not given, so the
    table keeps what `columns` of the load allow), in target names. Raises `LoadFailed` where
    `policy` forbids the step.
    """
    if wanted is None and plan.replace:
        wanted = kept_fields(table, columns)
    step = repartition(table, wanted)
    if step is None:
        return plan
    check_repartition(step, policy, target)
    return replace(plan, repartition=step)


def _columns(columns: Mapping[str, str], required: Collection[str]) -> Struct:
    names = {name.lower() for name in required}
    return Struct(
        tuple(
            Field(name, parse_type(kind), name.lower() in names) for name, kind in columns.items()
        )
    )


def _left_alone(key: KeyChange, policy: SchemaChanges, mode: Mode, target: str) -> KeyChange:
    """Let the identifier fields be where they may not change and only an UPSERT needs them."""
    if mode == "UPSERT" or (key.identifiers is None and key.problem is None):
        return key
    if key.problem is None and policy == "EVOLVE":
        return key
    why = key.problem or f"`schema_changes` is {policy}"
    note = f"the identifier fields of `{target}` stay as they are: {why}"
    return KeyChange(notes=(*key.notes, note))


def _relaxed(changes: Sequence[Change], stays: Collection[str]) -> Iterator[Path]:
    """Yield what has to become optional: all but the identifier fields, which never are."""
    for change in changes:
        asked = isinstance(change, Relaxed) or (isinstance(change, Removed) and change.required)
        if asked and not (len(change.path) == 1 and change.path[0].lower() in stays):
            yield change.path
