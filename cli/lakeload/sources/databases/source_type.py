"""JDBC source type: job spec, and what is asked of a database before Spark starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lakeload.config.model import Finding
from lakeload.config.secret_names import absolute_path, absolute_reference
from lakeload.sources.base import (
    ColumnsRequest,
    InputFacts,
    Numbering,
    SourceCheck,
    SourceColumns,
    SourceType,
)
from lakeload.sources.databases.findings import findings
from lakeload.sources.databases.settings import JdbcSettings, JdbcTable
from lakeload.sources.databases.url import parse_url
from lakeload.sources.datasets import dataset_of_table
from lakeload.sources.report import NOTHING_KNOWN, SourceReport
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import Consistency, JdbcInput, ReaderChoice, RunOptions, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.databases.engines.base import XMIN, Facts
from lakeload_jobs.sources.databases.engines.registry import ENGINES
from lakeload_jobs.sources.databases.keys import remembered

if TYPE_CHECKING:
    from lakeload_jobs.sources.readers import SourceReaders


class JdbcSourceType(SourceType[JdbcSettings, JdbcTable, JdbcInput]):
    """Tables of a database."""

    settings = JdbcSettings
    table = JdbcTable
    cursor_reads = True
    round_limits = ("rows",)

    def without_rounds(self, read: JdbcInput) -> tuple[str, str] | None:
        """Return why a table is loaded at once: no column orders its rows."""
        if not read.incremental:
            return "it is loaded whole each time", "set `cursor` to a column"
        if read.by_xmin:
            why = "`cursor: xmin` orders no rows"
            return why, "set `cursor` to a column that grows with each new or changed row"
        if ENGINES[read.database].facts.by_driver:
            return "its database is read with a JDBC driver, by one statement", "remove the line"
        return None

    def written(self, source: JdbcSettings, table: JdbcTable) -> JdbcInput:
        """Return the table with the parts of the URL."""
        url = parse_url(source.url)
        facts = url.engine.facts
        return JdbcInput(
            database=facts.database,
            host=url.host,
            port=url.port,
            name=url.name,
            schema=table.source_schema or "",
            table=table.source_table if table.query is None else "",
            query=table.query,
            user=source.user or url.user or None,
            parameters=dict(url.parameters) or None,
            iam_authentication=source.iam_authentication,
            max_connections=source.max_connections,
            consistency=source.consistency,
            incremental=table.cursor is not None,
            lookback=table.lookback,
            by_xmin=not table.cursor_is_column,
            lock_timeout=source.lock_timeout,
            statement_timeout=source.statement_timeout,
            key=table.found_key,
            url=None if facts.schemes else source.url,
            jars=source.jar or (),
            driver=source.driver,
        )

    def resolved(self, written: JdbcInput, source: JdbcSettings, folder: Path) -> JdbcInput:
        """Return it with the password's reference, and paths absolute."""
        password = absolute_reference(source.password, folder)
        engine = ENGINES[written.database]
        return engine.resolved(replace(written, password=password), partial(absolute_path, folder))

    def identity(self, written: JdbcInput) -> Mapping[str, Any]:
        """Return what decides which rows are read: not by whom, nor how."""
        return {
            "type": written.type,
            "database": written.database,
            "host": written.host,
            "port": written.port,
            "name": written.name,
            **({} if written.url is None else {"url": written.url}),
            "schema": written.schema,
            "table": written.table,
            **({} if written.query is None else {"query": written.query}),
            **({"incremental": True} if written.incremental else {}),
            **({"by_xmin": True} if written.by_xmin else {}),
            **({} if written.lookback is None else {"lookback": written.lookback}),
        }

    def loads_once(self, read: JdbcInput, *, replaces: bool) -> str:
        """Return the cursor where rows cannot be replaced."""
        if replaces:
            return super().loads_once(read, replaces=replaces)
        if ENGINES[read.database].facts.has_xmin and read.query is None:
            cursor = f"`cursor: {XMIN}`"
        else:
            cursor = "`cursor` to a column that grows with each new or changed row"
        return f"set {cursor} and begin again with `lakeload reset`"

    def findings(self, source: Any, tables: Sequence[tuple[int, JdbcTable]]) -> Iterator[Finding]:
        """Yield what no single setting can tell."""
        yield from findings(source, tables)

    def find_tables(
        self,
        source: JdbcSettings,
        tables: Sequence[JdbcTable],
        folder: Path,
        readers: Callable[[], SourceReaders],
        *,
        keys: bool,
    ) -> Sequence[JdbcTable]:
        """Return the tables that the database has for globs, and the keys of those whose document
        says none."""
        if parse_url(source.url).engine.facts.by_driver:
            return tables
        if not any(table.is_glob or (keys and table.takes_found_key) for table in tables):
            return tables
        # With boto3 and pyarrow, which the documents alone do without.
        from lakeload.sources.databases.found_tables import find_tables

        read = self.resolved(self.written(source, tables[0]), source, folder)
        return find_tables(read, tables, readers())

    def references(self, source: Any) -> Mapping[str, SecretReference]:
        """Return the password."""
        try:
            password = JdbcSettings.model_validate(source).password
        except ValidationError:
            return {}
        return {} if password is None else {"source.password": password}

    def facts(self, read: JdbcInput, reader: ReaderChoice = "AUTO") -> InputFacts:
        """Return what the engine and the settings say."""
        dataset, engine = dataset_of_table(read), ENGINES[read.database]
        by_spark = bool(engine.only_spark(reader))
        jar_set = engine.facts.jar_set if by_spark else ""
        return InputFacts(
            datasets=(dataset,) if dataset else (),
            database=read,
            # Nobody can name a value of `xmin`.
            starts_from=read.incremental and not read.by_xmin,
            reader="jvm" if by_spark else "direct",
            jar_sets=frozenset({jar_set} if jar_set else ()),
            jars=tuple(map(Path, read.jars)),
            numbering=_numbering(read),
            warnings=_warnings(engine.facts, read.consistency),
        )

    def inspect(
        self,
        read: JdbcInput,
        readers: SourceReaders,
        options: RunOptions,
        *,
        table: TableSpec,
        known: bool,
        bookmark: Callable[[], Bookmark] | None,
    ) -> SourceReport:
        """Log in and find the table, compare its key with that of earlier loads, and find with a
        `cursor` what is new."""
        engine = ENGINES[read.database]
        if engine.facts.by_driver:
            engine.check_driver(read)
            return NOTHING_KNOWN
        if bookmark is not None:
            remembered(read, bookmark().state)
        goes_on = known and not options.starts_over
        # With boto3 and pyarrow, which the documents alone do without.
        from lakeload.sources.databases.inspection import inspect

        return inspect(read, table, options, bookmark if goes_on else None, readers)

    def read_columns(
        self, read: JdbcInput, request: ColumnsRequest, readers: SourceReaders
    ) -> SourceColumns | None:
        """Read the columns from the catalog, and check that they may be selected."""
        if ENGINES[read.database].facts.by_driver:
            return None
        # With boto3 and pyarrow, which the documents alone do without.
        from lakeload.sources.databases.inspection import read_columns

        return read_columns(read, request, readers)

    def checks(
        self, tables: Sequence[tuple[TableSpec, JdbcInput]], readers: SourceReaders
    ) -> tuple[SourceCheck, ...]:
        """Return the checks of the login, of snapshots and of the right to read each table."""
        if ENGINES[tables[0][1].database].facts.by_driver:
            # With py4j, which other databases do without.
            from lakeload.sources.databases.driver_checks import driver_checks

            return driver_checks(tables, readers)
        # With boto3 and pyarrow, which the documents alone do without.
        from lakeload.sources.databases.inspection import checks

        return checks(tables, readers)


def _numbering(read: JdbcInput) -> Numbering:
    """Return what counts the rows: those that cannot be read more than once are not counted."""
    if ENGINES[read.database].facts.counts_rows:
        return "counted in the database"
    return "not counted" if read.consistency in ("LOCK", "NONE") else "one partition"


def _warnings(facts: Facts, consistency: Consistency) -> tuple[str, ...]:
    """Return what the `consistency` of the source means for those who write to it, and what is not
    proven."""
    own = facts.consistencies.get(consistency)
    return tuple(filter(None, (facts.warning or (own.warning if own else ""),)))


JDBC = JdbcSourceType()
