"""Which table a source table becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeload.documents.destination import Destination
from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.pipeline import Table
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.core.names import normalize, schema_name, unique_names


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
            # FILES has none.
            source_schema=None,
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
        natural = {normalize(tables[i].table).lower() for i in derived}
        taken = [name for name in given.values() if name.lower() not in natural]
        names = unique_names([tables[i].table for i in derived], lower=lower, taken=taken)
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
