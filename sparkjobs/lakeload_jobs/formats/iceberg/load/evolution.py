"""Changes that a load makes in the definition of its table: planned before the rows are staged, and
committed with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.plan import ExistingColumns
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.iceberg.commits.definitions import (
    Evolution,
    InvalidDefinition,
    order_of,
    same_definition,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    Metadata,
    assert_definition,
    schema_of,
    updated,
)
from lakeload_jobs.formats.iceberg.load.definition import COMMENT, Definition, schema_columns
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.rules.admission import is_empty
from lakeload_jobs.formats.iceberg.rules.bloom_filters import bloom_filter_properties
from lakeload_jobs.formats.iceberg.rules.facts import (
    TableAttempt,
    TableFacts,
    head_of,
    table_facts,
)
from lakeload_jobs.formats.iceberg.rules.partitions import kept_fields
from lakeload_jobs.formats.iceberg.rules.publish import check_replaceable
from lakeload_jobs.formats.iceberg.rules.schema import (
    SchemaPlan,
    parse_type,
    plan_definition,
    spelled_in,
    with_nulls,
)

_OF_DEFINITION = ("-schema", "-spec", "-sort-order")
"""How the updates end that change what the files of a load are written for."""


def plan_changes(
    spec: JobSpec,
    table: TableSpec,
    facts: TableFacts,
    fitted: FittedRows,
    made: Definition,
    nulls: Callable[[Sequence[str]], Mapping[str, int]],
) -> SchemaPlan:
    """Return the steps that the table needs before the load. `nulls` counts the rows of the loaded
    branch that have null in each of some columns. Raises `LoadFailed`."""
    branch = spec.destination.iceberg.branch
    plan = plan_definition(
        existing_columns(facts, branch),
        schema_columns(made.schema),
        fitted.partition_by,
        spec.schema_changes_of(table),
        table.mode,
        target=table.target,
        required=made.key,
        keys=fitted.key,
        full_refresh=spec.options.full_refresh,
        misfits=fitted.prepared.misfits,
    )
    asked = [name for name in plan.require if name in facts.columns]
    if not asked or head_of(facts, branch) is None:
        return plan
    mode = "OVERWRITE" if spec.options.full_refresh else table.mode
    return with_nulls(plan, nulls(asked), mode, target=table.target, identifiers=facts.identifiers)


def existing_columns(facts: TableFacts, branch: str) -> ExistingColumns:
    """Return the columns of a table whose branch is loaded."""
    return ExistingColumns(
        dict(facts.columns),
        tuple(sorted(facts.required)),
        facts.identifiers,
        is_empty(facts, branch),
        facts.partitions,
    )


@dataclass(frozen=True)
class TableChanges:
    """What a load changes in the definition of its table, planned on `facts`."""

    table: TableSpec
    branch: str
    """The branch that is loaded."""
    job: TableAttempt
    facts: TableFacts
    fitted: FittedRows
    made: Definition
    plan: SchemaPlan

    def updates(self, metadata: Metadata, own_branch: str | None = "") -> list[Json]:
        """Return the updates that make the changes in the table as it is now; none: nothing
        changes.

        `own_branch` is the staging branch of this load, None where branches of other loads are no
        matter. Raises `LoadFailed`, and `RetryLoad` where others have changed the table since.
        """
        evolution = Evolution(metadata)
        with self._told():
            if not self._is_complete(evolution):
                self._check(metadata, own_branch)
                self._evolve(evolution, metadata)
            return evolution.updates()

    def preview(self, metadata: Metadata, own_branch: str | None = "") -> Metadata | None:
        """Return the metadata as it will be, None where nothing changes; nothing is committed.
        Raises as `updates`."""
        updates = self.updates(metadata, own_branch)
        return updated(metadata, updates, replaces=None, now_ms=0) if updates else None

    def publish(self, metadata: Metadata, own_branch: str, staged: Metadata) -> list[Json]:
        """Return the updates that belong to the commit that publishes the rows, which are staged
        for the metadata of a preview. Raises as `updates`."""
        updates = self.updates(metadata, own_branch)
        now = updated(metadata, updates, replaces=None, now_ms=0)
        # Files of the load have its ids of columns, partitions and order.
        if not same_definition(now, staged):
            raise self._overtaken()
        return updates

    def _is_complete(self, evolution: Evolution) -> bool:
        """Whether the table has everything already."""
        lacking = self.plan.changes_table or self._bare(evolution) or self._comment(evolution)
        return not lacking and not self._bloom_filters(evolution)

    def _check(self, metadata: Metadata, own_branch: str | None) -> None:
        now, plan = table_facts(metadata, None), self.plan
        moved = plan.require and head_of(now, self.branch) != head_of(self.facts, self.branch)
        if moved or _defined(now) != _defined(self.facts):
            raise self._overtaken()
        if plan.replace and own_branch is not None:
            check_replaceable(now, own_branch, self.job)

    def _evolve(self, evolution: Evolution, metadata: Metadata) -> None:
        if self.plan.replace:
            self._replace_columns(evolution)
        elif self.plan.changes_table:
            self._change_columns(evolution, metadata)
        for field in self._bare(evolution):
            evolution.describe((field["name"],), field["doc"])
        if comment := self._comment(evolution):
            evolution.properties[COMMENT] = comment
        evolution.properties |= self._bloom_filters(evolution)

    def _change_columns(self, evolution: Evolution, metadata: Metadata) -> None:
        """Change columns and partitions. Readers see no other partitions: files that are there keep
        theirs."""
        plan, incoming = self.plan, self.made.schema
        columns = schema_columns(incoming)
        for added in plan.add:
            field = _found(incoming, spelled_in(columns, added.path))
            doc = field.get("doc") if len(added.path) == 1 else None
            evolution.add(added.path, field["type"], doc)
        for widened in plan.widen:
            evolution.widen(widened.path, widened.now)
        for name in plan.require:
            # The rows have been asked for nulls: `plan_changes`.
            evolution.require((name,))
        if plan.set_identifiers is not None:
            evolution.identify(plan.set_identifiers)
        for path in plan.make_optional:
            evolution.make_optional(path)
        if plan.set_identifiers and _is_sorted_by(metadata, plan.sorted_by):
            evolution.sort_by(plan.set_identifiers)
        if plan.repartition is not None:
            evolution.partition(plan.repartition.keep, plan.repartition.add)

    def _replace_columns(self, evolution: Evolution) -> None:
        """Give the table the columns, key, partitions and order of the load, which replaces every
        row.

        Columns that fit keep their identity; the others are dropped and added anew, null in the
        rows that are there (docs/design-notes.md). Only while no other load is under way (I12).
        """
        made = self.made
        types = {name: parse_type(kind) for name, kind in schema_columns(made.schema).items()}
        before = schema_columns(evolution.schema)
        kept = {name for name, kind in before.items() if types.get(name) == parse_type(kind)}
        for name in before:
            if name not in kept:
                evolution.delete(name)
            elif name not in made.key:
                evolution.make_optional((name,))
        for field in made.schema["fields"]:
            if field["name"] not in kept:
                evolution.add((field["name"],), field["type"], field.get("doc"))
        for name in made.key:
            evolution.require((name,))
        evolution.identify(made.key)
        partition_by = made.partition_by
        if self.fitted.partition_by is None:
            partition_by = kept_fields(self.facts.partitions, schema_columns(made.schema))
        evolution.partition(0, partition_by)
        evolution.sort_by(made.key if made.order is not None else ())

    def _bare(self, evolution: Evolution) -> list[Json]:
        """Return the columns of the load with comments that the table's do not have. Those of
        people, and of other loads, stay."""
        found = {field["name"]: field for field in evolution.schema["fields"]}
        return [
            field
            for field in self.made.schema["fields"]
            if field.get("doc") and field["name"] in found and not found[field["name"]].get("doc")
        ]

    def _comment(self, evolution: Evolution) -> str | None:
        """Return the comment for a table that has none."""
        return None if evolution.properties.get(COMMENT) else self.made.properties.get(COMMENT)

    def _bloom_filters(self, evolution: Evolution) -> dict[str, str]:
        return bloom_filter_properties(self.fitted.bloom_filters, evolution.properties)

    def _overtaken(self) -> RetryLoad:
        return RetryLoad(f"another writer has changed the definition of `{self.table.target}`")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except InvalidDefinition as error:
            raise LoadFailed(
                f"changing the columns of `{self.table.target}`: {error}",
                hint="rename the column, or leave it out",
            ) from None


def requirements(metadata: Metadata, updates: Sequence[Mapping[str, object]]) -> list[Json]:
    """Return what a commit of these updates requires of the table that they are made for: that its
    definition is the one that was read, if they change it."""
    changes = any(str(one["action"]).endswith(_OF_DEFINITION) for one in updates)
    return assert_definition(metadata) if changes else []


def _found(schema: Json, path: Sequence[str]) -> Json:
    """Return a field of a schema that has it."""
    kind = schema
    field: Json = {}
    for name in path:
        if kind["type"] == "struct":
            field = next(one for one in kind["fields"] if one["name"] == name)
            kind = field["type"]
        else:
            kind = kind[name]
    return field


def _is_sorted_by(metadata: Metadata, names: Sequence[str]) -> bool:
    """Whether a table has the sort order that lakeload gives to a table of this key."""
    columns = {field["id"]: field["name"] for field in schema_of(metadata)["fields"]}
    fields = order_of(metadata)["fields"]
    plain = all((one["transform"], one["direction"]) == ("identity", "asc") for one in fields)
    # Identifier fields have no order of their own.
    found = {columns.get(one["source-id"]) for one in fields}
    return bool(fields) and plain and found == set(names)


def _defined(facts: TableFacts) -> object:
    return facts.uuid, facts.columns, facts.required, facts.identifiers, facts.partitions
