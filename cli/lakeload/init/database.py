"""`source` and `tables` of a pipeline, as YAML, for the tables that a database has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from lakeload.config.model import Finding, first_finding
from lakeload.init.documents import Answers, Variable
from lakeload.init.table_settings import yaml_text
from lakeload.sources.databases.settings import JdbcSettings, JdbcTable
from lakeload.sources.databases.source_type import JDBC
from lakeload.sources.databases.table_names import name_parts
from lakeload.sources.databases.url import parse_url
from lakeload_jobs.contract.errors import InvalidInput, Refused
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.names import normalize, visible_name
from lakeload_jobs.sources.databases.engines.registry import ENGINES
from lakeload_jobs.sources.databases.table_names import written_name

PASSWORD = Variable("LAKELOAD_SOURCE_PASSWORD", "The password of the database's user.")
TABLES = ("table", "partitioned table")
SMALL = 32 * 1024 * 1024
"""Bytes up to which a table is replaced in each load: one task reads it in a few seconds."""
_CHANGED = re.compile("updat|modif|chang|edit", re.IGNORECASE)


@dataclass(frozen=True)
class DatabaseTable:
    """A table or view as the pipeline names it, with its key and a column that may say when rows
    were changed."""

    name: str
    kind: str
    key: tuple[str, ...] = ()
    changed: str = ""
    bytes: int | None = None
    """Its size as the database estimates it; None: unknown."""

    @property
    def source_table(self) -> str:
        """The name without its schema."""
        return name_parts(self.name)[-1].text


@dataclass(frozen=True)
class Database:
    """What `init` has found in a database."""

    url: str
    password: bool
    """Whether its password is in the environment."""
    tables: tuple[DatabaseTable, ...]
    lower_in: str | None = None
    """The `destination_prefix` of a pipeline into a catalog that refuses capitals; None: any."""

    @property
    def names(self) -> list[str]:
        """The tables that are loaded."""
        return [table.name for table in self.tables if table.kind in TABLES]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variable of the password, where the pipeline refers to one."""
        return (PASSWORD,) if self.password else ()

    def source_lines(self) -> Iterator[str]:
        """Yield the lines of `source`."""
        yield "source:"
        yield "  type: JDBC"
        yield f"  url: {yaml_text(self.url)}"
        if self.password:
            yield f"  password: {{env: {PASSWORD.name}}}"
        else:
            yield "  # Without `password` it is found as in psql, as in ~/.pgpass:"
            yield f"  # password: {{env: {PASSWORD.name}}}"
        yield "  # max_connections: 4   # of a run, over all tables"

    def table_lines(self, mode: str, *, append_only: bool) -> Iterator[list[str]]:
        """Yield the lines of each table, those of views as comments. `mode` '': the one that loads
        each row of the table once."""
        has_xmin = parse_url(self.url).engine.facts.has_xmin
        names = [visible_name(table.source_table) for table in self.tables]
        # Case makes no difference to a target.
        taken = Counter(name.lower() for name in names)
        for table, visible in zip(self.tables, names, strict=True):
            by_xmin = has_xmin and table.kind in TABLES
            lines = list(_lines(table, _mode(table, mode, append_only=append_only), by_xmin))
            if taken[visible.lower()] == 1:
                lines[1:1] = self._name_lines(table, visible)
            if table.kind not in TABLES:
                lines = [f"  # {line[2:]}" for line in lines]
            yield lines

    def _name_lines(self, table: DatabaseTable, visible: str) -> Iterator[str]:
        """Yield the names in the lake where the table's own ones may be hidden there, or have
        capitals that the catalog refuses."""
        lower = self.lower_in is not None
        if normalize(table.source_table).startswith("_"):
            name = visible.lower() if lower else visible
            yield f"    name: {name}   # names that begin with _ may be hidden"
        elif lower and visible != visible.lower():
            yield f"    name: {visible.lower()}   # the catalog accepts no capitals"
        elif visible != table.source_table:
            yield f"    name: {visible}   # its name in the lake"
        if self.lower_in is not None:
            parts = [self.lower_in, *(part.text for part in name_parts(table.name)[:-1])]
            schema = normalize("_".join(parts))
            if schema != schema.lower():
                yield f"    namespace: {schema.lower()}   # the catalog accepts no capitals"


def _mode(table: DatabaseTable, mode: str, *, append_only: bool) -> str:
    if append_only or mode in ("APPEND", "OVERWRITE"):
        return mode or "APPEND"
    small = not mode and table.bytes is not None and table.bytes <= SMALL
    return "UPSERT" if table.key and not small else "OVERWRITE"


def _lines(table: DatabaseTable, mode: str, by_xmin: bool) -> Iterator[str]:
    key = ", ".join(map(yaml_text, table.key))
    about = f"key: {key}" if key else "no key" if table.kind in TABLES else table.kind
    yield f"  - table: {yaml_text(table.name)}   # {about}"
    if mode == "OVERWRITE":
        yield "    mode: OVERWRITE   # each load replaces all rows"
        return
    if mode == "UPSERT":
        yield "    mode: UPSERT"
        yield "    detect_deletes: true   # each load reads the keys of all rows"
    if by_xmin:
        yield "    cursor: xmin   # each load finds the rows that are new or changed"
    elif mode == "APPEND":
        yield "    on_append_again: FAIL   # set a `cursor`, or each load appends all rows again"
    if mode == "APPEND" and table.key and by_xmin:
        yield "    # detect_deletes: true   # appends the keys of deleted rows; reads all files"
    column = table.changed or (table.key[0] if len(table.key) == 1 and not by_xmin else "")
    if column:
        yield f"    # cursor: {yaml_text(column)}   # {_SAFE}"


_SAFE = "only if each change gets a greater value, and commits in that order"


def find_database(answers: Answers, folder: Path, environment: Mapping[str, str]) -> Database:
    """Return what the database of a URL has. The password comes from the environment,
    or is found as libpq does.

    Raises `InvalidInput` for a URL that is none and a database without tables, and `Refused` where
    it cannot be reached.
    """
    # With the drivers and boto3, which other choices do without.
    from lakeload.connections import Connections
    from lakeload.sources.databases.inspection import connected_catalog
    from lakeload_jobs.sources.readers import SourceReaders

    settings = _settings(answers.from_url)
    facts = parse_url(settings.url).engine.facts
    if facts.by_driver:
        *most, last = _listed()
        raise InvalidInput(
            f"`--from-url {answers.from_url}`: lakeload lists tables of {', '.join(most)} and "
            f"{last}",
            hint="write `source` and `tables` yourself: docs/databases.md has an example",
        )
    written = JDBC.written(settings, JdbcTable.model_construct(table="any.table"))
    given = PASSWORD.name in environment
    read = replace(
        JDBC.resolved(written, settings, folder.absolute()),
        password=SecretReference("env", PASSWORD.name) if given else None,
    )
    destination = DestinationSpec(answers.bucket, answers.region)
    readers = SourceReaders(destination, Connections(destination, "init").before_spark)
    try:
        with connected_catalog(read, readers) as (catalog, connection):
            found = catalog.list_tables(connection, read, None)
            changed = catalog.list_changed(connection, read)
            sizes = catalog.list_sizes(connection, read)
    except Refused as error:
        hint = f"`lakeload init` reads the password from `{PASSWORD.name}`; {error.hint}"
        raise Refused(error.message, hint=hint, retryable=error.retryable) from error
    tables = tuple(
        DatabaseTable(
            written_name(one.schema, one.name),
            one.kind,
            one.keys[0] if one.keys else (),
            next(filter(_CHANGED.search, changed.get((one.schema, one.name), ())), ""),
            sizes.get((one.schema, one.name)),
        )
        for one in found
        if one.kind
    )
    if not tables:
        raise InvalidInput(
            f"the database `{read.name}` has no tables that the user sees",
            hint="check the database in `--from-url`, and the rights of the user",
        )
    password = given or facts.needs_login
    return Database(answers.from_url, password, tables)


def _listed() -> list[str]:
    """Return the databases whose tables are listed."""
    facts = (engine.facts for engine in ENGINES.values())
    return [name for one in facts if not one.by_driver for name in one.names]


def _settings(url: str) -> JdbcSettings:
    try:
        return JdbcSettings.model_validate({"type": "JDBC", "url": url})
    except ValidationError as error:
        found = first_finding(error) or Finding("this is not the URL of a database")
        hint = found.hint
        if found.code == "secret-literal":
            hint = f"remove it from the URL, and set `{PASSWORD.name}` in the environment"
        raise InvalidInput(f"`--from-url`: {found.message}", hint=hint) from None
