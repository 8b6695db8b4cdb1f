"""Tables that a database has for the globs of a document, and their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakeload.sources.databases.inspection import connected_catalog
from lakeload.sources.databases.settings import JdbcTable
from lakeload.sources.databases.table_names import matches, name_parts
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import ColumnsSpec, JdbcInput
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.rows.columns import in_source_spelling
from lakeload_jobs.sources.databases.columns import CatalogTable
from lakeload_jobs.sources.databases.table_names import table_meant, written_name
from lakeload_jobs.sources.readers import SourceReaders


def find_tables(
    read: JdbcInput, tables: Sequence[JdbcTable], readers: SourceReaders
) -> tuple[JdbcTable, ...]:
    """Return every table once, in the place of the first entry that finds it. An entry with its
    name wins over globs.

    Raises as connecting does, and `InvalidInput` for a glob that finds nothing.
    """
    with connected_catalog(read, readers) as (catalog, connection):
        found = catalog.list_tables(connection, read, _schemas(tables))
    known = {(one.schema, one.name): one for one in found}
    listed = {
        (table.source_schema, table.source_table)
        for table in tables
        if table.query is None and not table.is_glob
    }
    result: list[JdbcTable] = []
    for table in tables:
        if not table.is_glob:
            place = (table.source_schema or "", table.source_table)
            result.append(_with_key(table, known.get(place)))
            continue
        matching = _matching(table, found)
        if not matching:
            raise _nothing_found(read, table, found)
        for one in matching:
            if (one.schema, one.name) not in listed:
                listed.add((one.schema, one.name))
                name = written_name(one.schema, one.name)
                own = table.model_copy(update={"table": name, "exclude": ()})
                result.append(_with_key(own, one))
    return tuple(result)


def _schemas(tables: Sequence[JdbcTable]) -> list[str] | None:
    """Return the schemas that tables are in; None, which is all, for globs: a hint may name one."""
    if any(table.is_glob for table in tables):
        return None
    return sorted({table.source_schema for table in tables if table.source_schema is not None})


def _matching(table: JdbcTable, found: Sequence[CatalogTable]) -> list[CatalogTable]:
    return [
        one
        for one in found
        if one.is_table
        and matches(table.table, one.schema, one.name)
        and not any(matches(name, one.schema, one.name) for name in table.exclude)
    ]


def _nothing_found(
    read: JdbcInput, table: JdbcTable, found: Sequence[CatalogTable]
) -> InvalidInput:
    hint: str | None
    views = [one.name for one in found if matches(table.table, one.schema, one.name)]
    if table.exclude and any(one.is_table and one.name in views for one in found):
        hint = "`exclude` leaves all of them out: remove what is too much"
    elif views:
        hint = "name views, materialized views and foreign tables one by one"
    else:
        *schemas, own = name_parts(table.table)
        known = {one.schema for one in found}
        if schemas and not any(schemas[0].matches(schema) for schema in known):
            hint = did_you_mean(schemas[0].text, known)
        else:
            tables = [one for one in found if one.is_table]
            schema = "" if not schemas or schemas[0].glob else schemas[0].text
            hint = table_meant(schema, own.text, tables)
        hint = hint or "write the names as they are in the database, upper and lower case included"
    return InvalidInput(f"`{table.table}` finds no table in the database `{read.name}`", hint=hint)


def _with_key(table: JdbcTable, found: CatalogTable | None) -> JdbcTable:
    """Return the table with the first of its keys whose columns are all loaded."""
    if found is None or not table.takes_found_key:
        return table
    settings: Any = table
    given = ColumnsSpec(include=settings.columns.include, exclude=settings.columns.exclude)
    for key in found.keys:
        own = in_source_spelling(given, key)
        if not set(key) & set(own.exclude) and (not given.include or set(key) <= set(own.include)):
            return table.with_found_key(key)
    return table.with_found_key(())
