"""Rules across several settings: targets of tables, pipeline against destination.

They look at whatever parts of a document are valid, so that one mistake hides no other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakeload.config.document import Location
from lakeload.config.model import Finding
from lakeload.config.problems import MAX_PROBLEMS
from lakeload.config.secret_names import shown
from lakeload.documents.destination import Destination
from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.pipeline import Numbered, Table, valid_tables
from lakeload.documents.rounds import CommitAt, RoundLimit, loads_once_instead
from lakeload.documents.spark import master_finding
from lakeload.runtimes import runtime_of
from lakeload.sources.base import SourceType
from lakeload.sources.registry import source_type_of
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, CatalogSpec
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.core.layout import TableLocation, overlaps
from lakeload_jobs.core.names import (
    MAX_NAME_LENGTH,
    REJECTED_SUFFIX,
    hidden_name,
    nearest,
    normalize,
    schema_name,
    target_name_problem,
    unique_names,
)
from lakeload_jobs.formats.iceberg.rules.catalogs import loading_problem


def pipeline_findings(
    data: dict[str, Any], destination: Destination | None = None
) -> list[Finding]:
    """Return what is wrong between the tables of a pipeline, given its destination if known."""
    tables = valid_tables(data)
    found = chain(
        _catalog_findings(destination) if destination else (),
        _repeated_sources(tables),
        source_type_of(data).findings(data.get("source"), tables),
        # What globs stand for is known when the source is read.
        _target_findings([item for item in tables if not item[1].is_glob], data, destination),
        _type_conflicts(tables, data),
        _quarantine(tables, data),
        _detected_deletes(tables, data),
        _late_rows(tables),
        _appended_in_rounds(tables, data, destination),
        *(one.refused(tables, data) for one in _OF_NEW_DATA),
        FORMAT_RULES[destination.table_format].pipeline_findings(tables, data)
        if destination
        else (),
    )
    return list(islice(found, MAX_PROBLEMS))


def pipeline_notes(data: dict[str, Any], destination: Destination | None) -> Iterator[Finding]:
    """Yield what is no mistake in a pipeline, whatever the format is, and yet may surprise."""
    if destination is not None and not FORMATS[destination.table_format].has_catalog:
        yield from islice(_hidden_names(data, destination), MAX_PROBLEMS)
    if isinstance(data.get("namespace"), str) and data.get("destination_prefix"):
        yield Finding(
            "`destination_prefix` has no effect, because `namespace` replaces it",
            "remove one of the two",
            ("destination_prefix",),
            "ignored",
        )
    yield from _limits_of_nothing(data)
    for one in _OF_NEW_DATA:
        yield from one.ignored(data)


def _limits_of_nothing(data: dict[str, Any]) -> Iterator[Finding]:
    """Say which `max_rejected` has no effect: a table's, or the pipeline's over all tables."""
    at: list[Location] = [
        ("tables", i, "max_rejected")
        for i, table in valid_tables(data)
        if table.max_rejected is not None and not _sets_aside(table, data)
    ]
    # A table that is invalid for another reason may be the one that the limit is for.
    raw = data.get("tables")
    own = [item for item in raw if isinstance(item, dict)] if isinstance(raw, tuple) else []
    if "max_rejected" in data and QUARANTINE not in [
        settings.get("on_bad_value") for settings in (data, *own)
    ]:
        at.append(("max_rejected",))
    for place in at:
        yield Finding(
            "`max_rejected` has no effect, because `on_bad_value` is not QUARANTINE",
            "remove it, or write `on_bad_value: QUARANTINE`",
            place,
            "ignored",
        )


def _hidden_names(data: dict[str, Any], destination: Destination) -> Iterator[Finding]:
    """Yield the tables that readers of folders may not see; a catalog knows the files of others."""
    tables = [item for item in valid_tables(data) if not item[1].is_glob]
    # The schema decides nothing but which derived names are numbered.
    found = targets(
        [table for _, table in tables],
        namespace=None,
        destination_prefix="",
        glue_prefix=glue_prefix(destination),
    )
    for (i, table), target in zip(tables, found, strict=True):
        if problem := hidden_name(target.table):
            yield Finding(*problem, ("tables", i, "name" if table.name else "table"), "hidden")


def _catalog_findings(destination: Destination) -> Iterator[Finding]:
    """Refuse what can be checked and tested, and not loaded into (docs/protocol-iceberg.md)."""
    catalog = destination.iceberg.catalog
    if not FORMATS[destination.table_format].has_catalog:
        return
    if problem := loading_problem(CatalogSpec(type=catalog.type, api=catalog.api)):
        yield Finding(problem, "write `api: NATIVE` in `catalog`", ("destination",), "cannot-load")


def missing_destination(given: str, path: Path) -> Finding:
    """Say that the destination file of a pipeline does not exist."""
    # A method of Path raises where a name is too long.
    is_folder = os.path.isdir(path.parent)  # noqa: PTH112
    here = [file.name for file in path.parent.glob("*.y*ml")] if is_folder else []
    near = nearest(path.name, here)
    # Of a name that the environment fills in, the message has the variable, and the hint the file.
    hint = f"{shown(given)} is looked for: the path is relative to the folder of this file"
    if near is not None:
        hint = f"did you mean `{shown(os.path.join(os.path.dirname(given), near))}`?"  # noqa: PTH118, PTH120
    return Finding(
        f"the destination file `{shown(given)}` does not exist",
        hint,
        ("destination",),
        "missing-file",
    )


def wrong_destination(given: str) -> Finding:
    """Say that a pipeline's destination is something else."""
    return Finding(
        f"`{shown(given)}` is not a destination",
        "a destination has `bucket` and `region`",
        ("destination",),
        "wrong-kind",
    )


def _repeated_sources(tables: Numbered) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for i, table in tables:
        if first.setdefault(table.table, i) != i:
            yield Finding(
                f"the table `{shown(table.table)}` is listed twice",
                "give each table a name of its own; one table can have several paths",
                ("tables", i, "table"),
                "duplicate-table",
            )


def _type_conflicts(tables: Numbered, data: dict[str, Any]) -> Iterator[Finding]:
    """Refuse new columns for values of other types where no column may be added."""
    for i, table in tables:
        changes = table.schema_changes or data.get("schema_changes")
        conflict = table.on_type_conflict or data.get("on_type_conflict")
        if changes == "FAIL" and conflict in ("NEW_COLUMN", "TEXT"):
            own = "on_type_conflict" in table.model_fields_set
            yield Finding(
                f"`on_type_conflict: {conflict}` adds columns, and `schema_changes` is FAIL",
                "write `schema_changes: ADD_COLUMNS`, or `on_type_conflict: FAIL`",
                ("tables", i, "on_type_conflict") if own else ("on_type_conflict",),
                "contradiction",
            )
            if not own:
                return


def _detected_deletes(tables: Numbered, data: dict[str, Any]) -> Iterator[Finding]:
    """Refuse to compare keys where there are none, or where nothing could say what is deleted."""
    given = data.get("tracking_columns", "ALL")
    tracked = given if isinstance(given, tuple) else () if given == "NONE" else TRACKING_COLUMNS
    for i, table in tables:
        at = ("tables", i, "detect_deletes")
        if table.delete_limit is None:
            if "max_deleted" in table.model_fields_set:
                yield Finding(
                    "`max_deleted` has no effect without `detect_deletes: true`",
                    "add `detect_deletes: true`, or remove the line",
                    ("tables", i, "max_deleted"),
                )
            continue
        if table.mode == "OVERWRITE":
            yield Finding(
                "`detect_deletes` has no effect with `mode: OVERWRITE`, which keeps only the rows "
                "that the source has",
                "remove the line",
                at,
            )
            continue
        unknown = not table.finds_key or "primary_key" in table.model_fields_set
        if not table.primary_key and unknown:
            yield Finding(
                "`detect_deletes` needs `primary_key`: keys are compared",
                "add `primary_key: [id]` with the names of the columns that identify a row",
                at,
                "missing-key",
            )
        needed = _tracking_of_deletes(table)
        if missing := [name for name in needed if name not in tracked]:
            yield Finding(
                f"`{missing[0]}` is missing, and `detect_deletes` needs it for "
                f"`{shown(table.table)}`",
                "add it to the list, or remove `detect_deletes`",
                ("tracking_columns",),
                "tracking-column",
            )


def _late_rows(tables: Numbered) -> Iterator[Finding]:
    """Refuse to compare late rows by a key where there is none."""
    for i, table in tables:
        unknown = not table.finds_key or "primary_key" in table.model_fields_set
        if table.key_needed_by(table.mode) == "lookback" and unknown and not table.primary_key:
            yield Finding(
                "`lookback` needs `primary_key`: late rows are compared by it",
                "add `primary_key: [id]` with the names of the columns that identify a row, or "
                "remove the line",
                ("tables", i, "lookback"),
                "missing-key",
            )


def _appended_in_rounds(
    tables: Numbered, data: dict[str, Any], destination: Destination | None
) -> Iterator[Finding]:
    """Refuse tables that append all rows each time where loads come at an interval."""
    if not data.get("upload_interval"):
        return
    kind = source_type_of(data)
    try:
        source = kind.settings.model_validate(data.get("source"))
    except ValidationError:
        # Said where it stands.
        return
    table_format = None if destination is None else destination.table_format
    for i, table in tables:
        instead = loads_once_instead(table.mode, kind.written(source, table), table_format)
        if instead is not None:
            yield Finding(
                "`upload_interval`: this table would be appended whole in each round",
                instead,
                ("tables", i),
                "appended-in-rounds",
            )


_Kind = SourceType[Any, Any, Any]


@dataclass(frozen=True)
class _OfNewData:
    """A setting of a table, or of the whole pipeline, that is about what is new and no more."""

    name: str
    model: type[RoundLimit | CommitAt]
    code: str
    known: Callable[[_Kind], Collection[str]]
    """Its keys for a type of sources."""
    unknown: Callable[[_Kind, str], tuple[str, str]]
    """What is said of any other key, and what to do about it."""
    without: Callable[[_Kind, Any], tuple[str, str] | None]
    """Why it is not for the input of a table, as a clause, and what to do about it."""
    without_all: str
    """What comes before the first reason where it is for no table."""

    def refused(self, tables: Numbered, data: dict[str, Any]) -> Iterator[Finding]:
        """Refuse keys that the source does not know, and tables that it is not for."""
        kind, shared = source_type_of(data), self._shared(data)
        given = [(i, getattr(table, self.name)) for i, table in tables]
        if shared is None and all(one is None for _, one in given):
            return
        for at, one in (*((("tables", i), one) for i, one in given), ((), shared)):
            for key in one.given if one else ():
                if key not in self.known(kind):
                    message, hint = self.unknown(kind, key)
                    yield Finding(message, hint, (*at, self.name, key), self.code)
        without = self._tables_without(tables, data)
        for i, table in tables:
            if i in without and getattr(table, self.name) is not None:
                why, instead = without[i]
                message = f"`{self.name}` of `{shown(table.table)}`: {why}"
                yield Finding(message, instead, ("tables", i, self.name), self.code)
        if shared is not None and tables and len(without) == len(tables):
            why, instead = next(iter(without.values()))
            message = f"`{self.name}`: {self.without_all}, {why}"
            yield Finding(message, instead, (self.name,), self.code)

    def ignored(self, data: dict[str, Any]) -> Iterator[Finding]:
        """Say which tables that of the pipeline is not for."""
        if self._shared(data) is None:
            return
        tables = valid_tables(data)
        without = self._tables_without(tables, data)
        if len(without) == len(tables):
            return
        for i, table in tables:
            if i in without and getattr(table, self.name) is None:
                why, instead = without[i]
                yield Finding(
                    f"`{self.name}` has no effect on `{shown(table.table)}`: {why}",
                    instead.replace("remove the line", "set it for the other tables"),
                    ("tables", i),
                    "ignored",
                )

    def _shared(self, data: dict[str, Any]) -> RoundLimit | CommitAt | None:
        try:
            return self.model.model_validate(data[self.name]) if self.name in data else None
        except ValidationError:
            # Said where it stands.
            return None

    def _tables_without(self, tables: Numbered, data: dict[str, Any]) -> dict[int, tuple[str, str]]:
        kind = source_type_of(data)
        try:
            source = kind.settings.model_validate(data.get("source"))
        except ValidationError:
            return {}
        found = ((i, self.without(kind, kind.written(source, table))) for i, table in tables)
        return {i: reason for i, reason in found if reason is not None}


def _unknown_limit(kind: _Kind, key: str) -> tuple[str, str]:
    known = " and ".join(f"`{one}`" for one in kind.round_limits) or "no limit"
    message = f"`{key}` does not limit a source of type {kind.name}, which has {known}"
    return message, "remove the line"


def _unknown_threshold(kind: _Kind, key: str) -> tuple[str, str]:
    return (
        f"`{key}` of `commit_at`: how much is new in a source of type {kind.name} is not known "
        "before it is read",
        "write `age: PT15M` in its place",
    )


_OF_NEW_DATA = (
    _OfNewData(
        "round_limit",
        RoundLimit,
        "round-limit",
        known=lambda kind: kind.round_limits,
        unknown=_unknown_limit,
        without=lambda kind, read: kind.without_rounds(read),
        without_all="no table is loaded in rounds; of the first one",
    ),
    _OfNewData(
        "commit_at",
        CommitAt,
        "commit-at",
        known=lambda kind: kind.commit_thresholds,
        unknown=_unknown_threshold,
        without=lambda _, read: (
            None if read.incremental else ("all rows are loaded each time", "remove the line")
        ),
        without_all="no table has new data; of each",
    ),
)


def _tracking_of_deletes(table: Table) -> tuple[str, ...]:
    """Return the tracking columns by which a deleted row is known."""
    if table.mode == "UPSERT":
        return () if table.deletes == "DELETE" else ("_supa_deleted",)
    return ("_supa_synced", "_supa_deleted", "_supa_index")


QUARANTINE = "QUARANTINE"


def _sets_aside(table: Table, data: dict[str, Any]) -> bool:
    return (table.on_bad_value or data.get("on_bad_value")) == QUARANTINE


def _quarantine(tables: Numbered, data: dict[str, Any]) -> Iterator[Finding]:
    """Refuse to set records aside where a reader cannot."""
    source = source_type_of(data)
    if source.sets_aside:
        return
    places: list[Location] = [("on_bad_value",)] if data.get("on_bad_value") == QUARANTINE else []
    places += [
        ("tables", i, "on_bad_value") for i, table in tables if table.on_bad_value == QUARANTINE
    ]
    for at in places:
        yield Finding(
            f"`on_bad_value: QUARANTINE` is not supported yet for a source of type {source.name}",
            "write `on_bad_value: FAIL` or `NULL`",
            at,
            "not-supported-yet",
        )


def _target_findings(
    tables: Numbered, data: dict[str, Any], destination: Destination | None
) -> Iterator[Finding]:
    namespace, prefix = data.get("namespace"), data.get("destination_prefix", "")
    if not isinstance(namespace, str | None) or not isinstance(prefix, str):
        return
    owner: dict[tuple[str, str], int] = {}
    places: dict[TableLocation, int] = {}
    sources: set[str] = set()
    found = targets(
        [table for _, table in tables],
        namespace=namespace,
        destination_prefix=prefix,
        glue_prefix=glue_prefix(destination),
    )
    if destination is not None and needs_schema(destination):
        yield from _without_schema(tables, found, glue=uses_glue(destination))
    for (i, table), target in zip(tables, found, strict=True):
        at = ("tables", i, "name" if table.name else "table")
        if problem := target_name_problem(target.schema, target.table):
            yield Finding(problem, "set `name` or `namespace` of the table", at, "reserved-name")
        first = owner.setdefault(target.folded, i)
        if first != i and table.table not in sources:
            yield _same_target(target, dict(tables)[first], at)
        elif first == i:
            places[TableLocation("", target.schema, target.table)] = i
        sources.add(table.table)
    aside = {i for i, table in tables if _sets_aside(table, data)}
    yield from _side_tables(tables, found, owner, aside)
    places |= _side_places(places, aside)
    for outer, inner in overlaps(list(places)):
        yield Finding(
            f"its files would lie inside those of the table `{outer.table}`, which has no schema",
            "set `namespace` or `name` of one of the two",
            ("tables", places[inner]),
            "overlap",
        )


def _side_tables(
    tables: Numbered,
    found: Sequence[TableTarget],
    owner: dict[tuple[str, str], int],
    aside: Collection[int],
) -> Iterator[Finding]:
    """Refuse tables whose side table, which takes their rejected records, cannot be. `aside` are
    those that have one."""
    names = dict(tables)
    for (i, table), target in zip(tables, found, strict=True):
        if i not in aside:
            continue
        at = ("tables", i, "name" if table.name else "table")
        side = TableTarget(target.schema, target.table + REJECTED_SUFFIX)
        if len(side.table) > MAX_NAME_LENGTH:
            yield Finding(
                f"the rejected records of `{target.table}` would go to a table whose name has "
                f"{len(side.table)} characters, and {MAX_NAME_LENGTH} are allowed",
                "set a shorter `name`",
                at,
                "reserved-name",
            )
        elif (other := owner.get(side.folded)) is not None:
            yield Finding(
                f"the rejected records of `{target.table}` would go to `{side.table}`, which is "
                f"the target of the table `{shown(names[other].table)}`",
                "give one of the two another `name` or `namespace`",
                at,
                "duplicate-target",
            )


def _side_places(
    places: Mapping[TableLocation, int], aside: Collection[int]
) -> dict[TableLocation, int]:
    return {
        side: i
        for place, i in places.items()
        if i in aside
        for side in place.with_side_table
        if side not in places
    }


def _without_schema(tables: Numbered, found: list[TableTarget], *, glue: bool) -> Iterator[Finding]:
    """A table of a catalog lies in a database or namespace, whose name is the schema."""
    blank = [item for item, target in zip(tables, found, strict=True) if not target.schema]
    if blank:
        i, table = blank[0]
        more = "" if len(blank) == 1 else f" (and {len(blank) - 1} more)"
        what = "Glue database" if glue else "namespace in the catalog"
        prefix = "`glue_database_prefix` in the destination, or " if glue else ""
        yield Finding(
            f"the table `{shown(table.table)}`{more} would have no {what}: all parts of its "
            "name are empty",
            f"set {prefix}`destination_prefix` or `namespace` in the pipeline",
            ("tables", i, "table" if table.namespace is None else "namespace"),
            "no-database" if glue else "no-namespace",
        )


def _same_target(target: TableTarget, first: Table, at: tuple[str | int, ...]) -> Finding:
    name = f"{target.schema}.{target.table}" if target.schema else target.table
    return Finding(
        f"`{name}` is the target of the table `{shown(first.table)}` already",
        "give one of the two another `name` or `namespace`; case makes no difference",
        at,
        "duplicate-target",
    )


@dataclass(frozen=True)
class TableTarget:
    """Schema ('' for none) and table, normalised and without collisions."""

    schema: str
    table: str

    @property
    def folded(self) -> tuple[str, str]:
        """Equal for targets that readers of the lake cannot tell apart."""
        return self.schema.lower(), self.table.lower()


def targets(
    tables: Sequence[Table],
    *,
    namespace: str | None,
    destination_prefix: str,
    glue_prefix: str | None = None,
) -> list[TableTarget]:
    """Return the target of each table.

    `glue_prefix` is None unless Glue is the catalog, which also makes every name lower case.

    Names that are derived are numbered where they collide, over all tables of one schema. A
    name that is given with `name` is kept, also where it equals another: `validate` says so.
    """
    lower = glue_prefix is not None
    schemas = [
        schema_name(
            glue_prefix=glue_prefix,
            destination_prefix=destination_prefix,
            source_schema=table.source_schema,
            namespace=namespace if table.namespace is None else table.namespace,
            lower=lower,
        )
        for table in tables
    ]
    found: list[TableTarget | None] = [None] * len(tables)
    for schema in dict.fromkeys(schema.lower() for schema in schemas):
        members = [i for i, own in enumerate(schemas) if own.lower() == schema]
        given = {
            i: unique_names([tables[i].name or ""], lower=lower)[0]
            for i in members
            if tables[i].name
        }
        derived = [i for i in members if i not in given]
        natural = {normalize(tables[i].source_table).lower() for i in derived}
        taken = [name for name in given.values() if name.lower() not in natural]
        names = unique_names([tables[i].source_table for i in derived], lower=lower, taken=taken)
        for i, name in [*given.items(), *zip(derived, names, strict=True)]:
            found[i] = TableTarget(schemas[i], name)
    return [target for target in found if target is not None]


def glue_prefix(destination: Destination | None) -> str | None:
    """Return the first part of Glue's database names; None where Glue is not the catalog."""
    return destination.glue_database_prefix if destination and uses_glue(destination) else None


def uses_glue(destination: Destination) -> bool:
    """Tell whether tables are registered in AWS Glue."""
    return FORMAT_RULES[destination.table_format].uses_glue(destination)


def needs_schema(destination: Destination) -> bool:
    """Tell whether a target without a schema has nowhere to be registered."""
    return FORMATS[destination.table_format].has_catalog or uses_glue(destination)


def remote_findings(data: dict[str, Any], destination: Destination) -> list[Finding]:
    """Refuse secrets of this machine with a master whose tasks run on others.

    The source's own credentials count as the destination's do: tasks read with them. So do the
    secrets of an Iceberg catalog: tasks ask it where and how to write.
    `data` is a pipeline's, or for the flag `{"spark": {"master": …}, "source": …, "tables": …}`:
    a master that is none, or not supported, is found too, and input from S3 (decision 0050).
    """
    spark = data.get("spark")
    master = spark.get("master") if isinstance(spark, dict) else None
    if not isinstance(master, str):
        return []
    if finding := master_finding(master):
        return [finding]
    if runtime_of(master).traits.tasks_share_driver:
        return []
    source = source_type_of(data)
    here = {
        name: reference
        for name, reference in chain(
            destination.credentials.references.items(),
            _catalog_references(destination).items(),
            source.references(data.get("source")).items(),
        )
        if reference.kind in ("env", "file")
    }
    found = list(islice(source.remote_findings(valid_tables(data), master), MAX_PROBLEMS))
    if not here:
        return found
    which = ", ".join(f"`{name}: {reference}`" for name, reference in here.items())
    return [
        Finding(
            f"tasks of `{shown(master)}` run on other machines, which cannot read {which}",
            "refer to AWS instead, with `{aws_secret: NAME}` or `{aws_parameter: NAME}`",
            ("spark", "master"),
            "remote-secret",
        ),
        *found,
    ]


def _catalog_references(destination: Destination) -> dict[str, SecretReference]:
    if not FORMATS[destination.table_format].has_catalog:
        return {}
    references = destination.iceberg.catalog.references
    return {f"iceberg.catalog.{name}": reference for name, reference in references.items()}
