"""Modes of tables, and what they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from lakeload.config.model import Finding
from lakeload.config.secret_names import shown
from lakeload.documents.pipeline import Table, table_model
from lakeload.sources.registry import source_type_of
from lakeload_jobs.formats.iceberg.rules.partitions import duplicate_field, parse_partition_field

Numbered = list[tuple[int, Table]]
"""Each with its place in the document."""


def valid_tables(data: dict[str, Any]) -> Numbered:
    """Return the tables of a pipeline's document that are valid by themselves."""
    raw, model = data.get("tables"), table_model(source_type_of(data))
    found: Numbered = []
    for i, item in enumerate(raw if isinstance(raw, tuple) else ()):
        try:
            found.append((i, model.model_validate(item)))
        except ValidationError:
            continue
    return found


At = tuple[str | int, ...]

NOT_YET = "not-supported-yet"
CURSOR = "incremental loading (`cursor`) is not supported yet"
FILES_ONCE = "`incremental: true` of the source loads each file once"


def mode_findings(tables: Numbered, data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong between the modes of Iceberg tables and their settings.

    `data` is the pipeline's document as it was read.
    """
    for i, table in tables:
        yield from _table(table, ("tables", i), incremental=_is_incremental(data))
    yield from _tracking(tables, data)


def _table(table: Table, at: At, *, incremental: bool) -> Iterator[Finding]:
    if table.mode == "UPSERT":
        yield from _upsert(table, at)
    else:
        yield from _without_upsert(table, at)
    if table.mode == "OVERWRITE" and incremental:
        yield Finding(
            "`mode: OVERWRITE` would keep the rows of new files only, because the source is "
            "`incremental`",
            "`mode: UPSERT` adds and changes rows; or write `incremental: false`",
            (*at, "mode"),
        )
    yield from _partitions(table, at)


def _upsert(table: Table, at: At) -> Iterator[Finding]:
    if not table.primary_key:
        yield Finding(
            "`mode: UPSERT` needs `primary_key`: files do not tell which columns identify a row",
            "add `primary_key: [id]` with the names of those columns",
            (*at, "mode"),
            "missing-key",
        )
    if "deletes" in table.model_fields_set and table.deleted_when is None:
        yield Finding(
            "`deletes` has no effect without `deleted_when`",
            "add `deleted_when`, a condition that deleted rows meet, or remove the line",
            (*at, "deletes"),
        )
    for i, name in enumerate(table.primary_key):
        if not _is_loaded(table, name):
            yield _not_loaded(name, "identifies the rows", (*at, "primary_key", i))
    if table.cursor is not None and not _is_loaded(table, table.cursor):
        yield _not_loaded(table.cursor, "tells versions of a row apart", (*at, "cursor"))


def _without_upsert(table: Table, at: At) -> Iterator[Finding]:
    if table.cursor is not None:
        hint = f"`mode: UPSERT` tells versions of a row apart by it; {FILES_ONCE}"
        yield Finding(CURSOR, hint, (*at, "cursor"), NOT_YET)
    if "deletes" in table.model_fields_set:
        yield Finding(
            f"`deletes` has no effect with `mode: {table.mode}`",
            "write `mode: UPSERT`, or remove the line",
            (*at, "deletes"),
        )


def _partitions(table: Table, at: At) -> Iterator[Finding]:
    """Refuse a column that is not loaded, and the fields that Iceberg takes for redundant."""
    fields = [parse_partition_field(text) for text in table.partition_by]
    for i, field in enumerate(fields):
        here = (*at, "partition_by", i)
        if not _is_loaded(table, field.column):
            yield _not_loaded(field.column, "lays out the table", here)
        if (problem := duplicate_field(fields[: i + 1])) and not duplicate_field(fields[:i]):
            yield Finding(shown(problem, 200), "keep one of the two", here)


def _is_loaded(table: Table, name: str) -> bool:
    columns = table.columns
    return name not in columns.exclude and (not columns.include or name in columns.include)


def _not_loaded(name: str, what: str, at: At) -> Finding:
    message = f"`{shown(name)}` {what}, and `columns` leaves it out"
    return Finding(message, "load it", at)


def _tracking(tables: Numbered, data: Mapping[str, Any]) -> Iterator[Finding]:
    given = data.get("tracking_columns", "ALL")
    if given == "ALL" or not (given == "NONE" or isinstance(given, tuple)):
        return
    for _, table in tables:
        marks = table.mode == "UPSERT" and table.deleted_when and table.deletes == "MARK"
        if marks and "_supa_deleted" not in given:
            yield Finding(
                f"`_supa_deleted` is missing, and deleted rows of `{shown(table.table)}` are "
                "marked in it",
                "add it to the list, or write `deletes: DELETE`",
                ("tracking_columns",),
                "tracking-column",
            )
            return


def mode_notes(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is no mistake, and yet may surprise (docs/decisions/0088)."""
    given = data.get("tracking_columns", "ALL")
    listed = isinstance(given, tuple) and "_supa_job_id" not in given
    if listed or given == "NONE":
        yield Finding(
            "without `_supa_job_id` a table knows its latest 1,000 jobs and no older ones",
            "an older job id that is given again would be loaded again",
            ("tracking_columns",),
            "tracking-column",
        )


def _is_incremental(data: Mapping[str, Any]) -> bool:
    source = data.get("source")
    return isinstance(source, dict) and source.get("incremental") is True
