"""Names of tables as `table` has them, and which one a missing name was meant to be."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lakeload_jobs.core.names import nearest
from lakeload_jobs.sources.databases.columns import CatalogTable

_TO_QUOTE = re.compile(r'[."*?]')


def written_name(schema: str, table: str) -> str:
    """Return the name of a table as a document has it."""
    return ".".join(map(_written, (schema, table)))


def table_meant(schema: str, table: str, tables: Sequence[CatalogTable]) -> str | None:
    """Return the hint "did you mean `schema.table`?" for a table that is not there: the same name
    in another case or schema, before one that is spelled otherwise. '' is any schema."""
    names = {written_name(one.schema, one.name): one for one in tables}
    same = [name for name, one in names.items() if one.name.lower() == table.lower()]
    own = {one.name: name for name, one in names.items() if schema in ("", one.schema)}
    asked = written_name(schema, table)
    meant = next((name for name in same if names[name].schema == schema), None)
    meant = meant or nearest(asked, same) or next(iter(same), None)
    meant = meant or own.get(nearest(table, own) or "")
    if not meant and all(one.schema != schema for one in tables):
        near = nearest(asked, names)
        # A whole name can be near because of its schema alone.
        meant = near if near and nearest(table, [names[near].name]) else None
    return f"did you mean `{meant}`?" if meant else None


def _written(name: str) -> str:
    if name and not _TO_QUOTE.search(name):
        return name
    return '"' + name.replace('"', '""') + '"'
