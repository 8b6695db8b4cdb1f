"""The user of a database who reads the tables of a pipeline, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakeload.policy.templates import Snippet
from lakeload.sources.databases.table_names import name_parts
from lakeload.sources.registry import facts_of
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.sources.databases.engines.registry import ENGINES

GRANTS = {one.facts.grants: one for one in ENGINES.values() if one.facts.grants}
"""The engines whose grants we write, by the names that `policy --for` has for them."""
_USER = "lakeload"
"""The user where the pipeline names none."""


def database_role(server: str, tables: Sequence[TableSpec], globs: Collection[str] = ()) -> Snippet:
    """Return the statements that make the user and grant what a load of the tables reads. Those in
    `globs` stand for tables of a schema: the user may read all that it has now and later.

    Raises `InvalidInput` for tables that are not read from such a database, and for a glob of
    schemas.
    """
    engine = GRANTS[server]
    title = " or ".join(engine.facts.names)
    found = [(table, facts_of(table.input).database) for table in tables]
    inputs = [read for _, read in found if read and read.database == engine.facts.database]
    if not inputs:
        raise InvalidInput(
            f"`--for {server}` needs a pipeline whose source is {title}",
            hint="give the pipeline's file; a destination has no tables",
        )
    first = inputs[0]
    schemas = _schemas(globs)
    named = [
        read
        for table, read in found
        if read in inputs
        and read.query is None
        and table.source not in globs
        and read.schema not in schemas
    ]
    user = first.user or _USER
    own = "" if first.iam_authentication else ", with a password of your own"
    why = [f"Run it as an administrator of `{first.name}`{own}."]
    if any(read.query is not None for read in inputs):
        why.append("Grant SELECT, too, on what the queries of the pipeline read.")
    grants = engine.grants(first, user, named, schemas)
    why += grants.notes
    return Snippet(f"{title}: the user who reads", "\n".join(grants.statements), "\n".join(why))


def _schemas(globs: Collection[str]) -> list[str]:
    """Return the schemas of globs. Raises `InvalidInput` for a glob that stands for schemas."""
    for glob in sorted(globs):
        if name_parts(glob)[0].glob:
            raise InvalidInput(
                f"`{glob}` names no schema, and rights are granted in schemas",
                hint="write an entry for each schema, such as `public.*`",
            )
    return sorted({name_parts(glob)[0].text for glob in globs})
