"""Which table a source table becomes (DESIGN section 7, "Naming")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeload.config.pipeline import Table
from lakeload_jobs.rules.names import normalize, schema_name, unique_names


@dataclass(frozen=True)
class Target:
    """Schema ('' for none) and table, normalised and without collisions."""

    schema: str
    table: str

    @property
    def folded(self) -> tuple[str, str]:
        """Equal for targets that readers of the lake cannot tell apart."""
        return self.schema.lower(), self.table.lower()


def targets(
    tables: Sequence[Table], *, namespace: str | None, destination_prefix: str
) -> list[Target]:
    """Return the target of each table.

    Names that are derived are numbered where they collide, over all tables of one schema. A
    name that is given with `name` is kept, also where it equals another: `validate` says so.
    """
    schemas = [_schema(table, namespace, destination_prefix) for table in tables]
    found: list[Target | None] = [None] * len(tables)
    for schema in dict.fromkeys(schema.lower() for schema in schemas):
        members = [i for i, own in enumerate(schemas) if own.lower() == schema]
        given = {i: unique_names([tables[i].name or ""])[0] for i in members if tables[i].name}
        derived = [i for i in members if i not in given]
        natural = {normalize(tables[i].table).lower() for i in derived}
        taken = [name for name in given.values() if name.lower() not in natural]
        names = unique_names([tables[i].table for i in derived], taken=taken)
        for i, name in [*given.items(), *zip(derived, names, strict=True)]:
            found[i] = Target(schemas[i], name)
    return [target for target in found if target is not None]


def _schema(table: Table, namespace: str | None, destination_prefix: str) -> str:
    """FILES has no source schema, and the Glue prefix takes part with Glue only (F54)."""
    return schema_name(
        glue_prefix=None,
        destination_prefix=destination_prefix,
        source_schema=None,
        namespace=namespace if table.namespace is None else table.namespace,
    )
