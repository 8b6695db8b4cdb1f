"""JDBC source type: settings, the URL of a database, and job spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from lakeload.config.model import Called, Finding, refusal, refusals, setting
from lakeload.config.scalars import RecordLimit, Text
from lakeload.config.secret_names import absolute_path, absolute_reference, looks_secret, shown
from lakeload.config.secret_setting import Secret
from lakeload.sources.base import (
    ColumnsRequest,
    InputFacts,
    Numbering,
    SourceCheck,
    SourceColumns,
    SourceSettings,
    SourceType,
    TableSettings,
)
from lakeload.sources.databases.table_names import name_parts
from lakeload.sources.datasets import dataset_of_table
from lakeload.sources.paths import Paths
from lakeload.sources.report import NOTHING_KNOWN, SourceReport
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    BY_DRIVER,
    DELETE_LIMIT,
    Consistency,
    DatabaseType,
    JdbcInput,
    Mode,
    ReaderChoice,
    RejectLimit,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.sources.databases.engines.postgres.xids import CURSOR
from lakeload_jobs.sources.databases.keys import remembered
from lakeload_jobs.sources.databases.readers import DRIVER_WARNINGS, only_spark
from lakeload_jobs.sources.databases.seen import parse_lookback

if TYPE_CHECKING:
    from lakeload_jobs.sources.readers import SourceReaders

_NAMED = re.compile(r"jdbc:([A-Za-z][A-Za-z0-9+._-]*):.+", re.DOTALL)
_NAME_AND_VALUE = re.compile(r"([A-Za-z0-9_.\-]+)\s*=")
_PASSWORD_IN_URL = re.compile(r"//[^/@:]*:[^@/]*@|^jdbc:oracle:\w+:[^/@]*/[^@]+@")
_DATABASES: dict[str, tuple[DatabaseType, int]] = {
    "postgresql": ("POSTGRESQL", 5432),
    "postgres": ("POSTGRESQL", 5432),
    "mysql": ("MYSQL", 3306),
    "mariadb": ("MYSQL", 3306),
    "sqlserver": ("SQLSERVER", 1433),
    "oracle": ("ORACLE", 1521),
}
"""The databases by the scheme of their URLs, with the port that each has by default."""
_EXAMPLES = {
    "sqlserver": "sqlserver://db.example.com:1433/shop",
    "oracle": "oracle://db.example.com:1521/SERVICE",
    "mysql": "mysql://db.example.com:3306/shop",
}
_LEAST_OF_SYNC = _LEAST_OF_LOCK = 3
_TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
VERIFIED = ("verify-ca", "verify-full")
"""Modes in which the server proves who it is."""
_PARAMETERS: dict[DatabaseType, tuple[str, ...]] = {
    "POSTGRESQL": ("sslmode", "sslrootcert", "application_name", "connect_timeout", "options"),
    "MYSQL": ("sslmode", "sslrootcert", "connect_timeout"),
    "SQLSERVER": ("sslmode", "connect_timeout"),
    "ORACLE": ("sslmode", "connect_timeout"),
}
"""The parameters that a URL can have; they mean what they mean to libpq."""
_MODES: dict[DatabaseType, tuple[str, ...]] = {
    "SQLSERVER": ("disable", "require", "verify-full"),
    "ORACLE": ("disable", "verify-full"),
}
"""Values of `sslmode` where a driver does not know all of them."""
_CALLED: dict[DatabaseType, str] = {
    "SQLSERVER": "for SQL Server",
    "ORACLE": "for Oracle",
    "OTHER": "for a database with a driver of your own",
}
_NAMES_JAR: frozenset[DatabaseType] = frozenset({"ORACLE", "OTHER"})
"""Databases whose driver is the user's."""


@dataclass(frozen=True)
class DatabaseUrl:
    """The parts of a URL; `user` '' where it names none."""

    database: DatabaseType
    host: str
    port: int
    name: str
    user: str
    parameters: Mapping[str, str]


_IN_REFERENCE = "remove it from the URL, and write `password: {env: NAME}` below `source`"


def _other_url(url: str) -> DatabaseUrl | None:
    """Return the URL of a database that only its driver knows; None where it is none."""
    found = _NAMED.fullmatch(url)
    return (
        None if found is None or found[1] in _DATABASES else DatabaseUrl("OTHER", "", 0, "", "", {})
    )


def _refuse_secrets(url: str) -> None:
    """Raise `PydanticCustomError` for a URL of JDBC that has a secret, whatever its driver is."""
    secret = next((name for name in _NAME_AND_VALUE.findall(url) if looks_secret(name)), None)
    if secret is not None:
        raise refusal(
            f"the parameter `{shown(secret)}` of the URL is a secret",
            _IN_REFERENCE,
            code="secret-literal",
        )
    if _PASSWORD_IN_URL.search(url):
        raise refusal(
            "the URL carries a password; secrets must be references",
            _IN_REFERENCE,
            code="secret-literal",
        )


def _example(url: str) -> str:
    """Return how a URL is written that begins as this one."""
    example = _EXAMPLES.get(url.partition(":")[0], "postgresql://db.example.com:5432/shop")
    return f"write it as `{example}`"


def parse_url(url: str) -> DatabaseUrl:
    """Return the parts of a database's URL. Raises `PydanticCustomError`."""
    if url.startswith("jdbc:"):
        _refuse_secrets(url)
    if (other := _other_url(url)) is not None:
        return other
    plain = url.removeprefix("jdbc:")
    try:
        parts = urlsplit(plain)
        port = parts.port
    except ValueError:
        raise refusal("`url` is not the URL of a database", _example(plain)) from None
    if parts.password is not None:
        raise refusal(
            "the URL carries a password; secrets must be references",
            "remove it from the URL, and write `password: {env: NAME}` below `source`",
            code="secret-literal",
        )
    if parts.scheme not in _DATABASES:
        known = ", ".join(f"`{scheme}://`" for scheme in _DATABASES)
        raise refusal(
            f"`{shown(parts.scheme)}` is not a database that lakeload reads",
            did_you_mean(parts.scheme, _DATABASES)
            or f"the URL begins with one of {known}, or with `jdbc:` for a driver of your own",
        )
    database, default = _DATABASES[parts.scheme]
    name = unquote(parts.path.removeprefix("/"))
    if not parts.hostname or not name or "/" in name or parts.fragment or port == 0:
        raise refusal(f"`{shown(url)}` does not name one host and one database", _example(plain))
    return DatabaseUrl(
        database, parts.hostname, port or default, name, unquote(parts.username or ""),
        _parameters(parts.query, database),
    )  # fmt: skip


def _parameters(query: str, database: DatabaseType) -> dict[str, str]:
    allowed, modes = _PARAMETERS[database], _MODES.get(database, _TLS_MODES)
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if looks_secret(name):
            raise refusal(
                f"the parameter `{shown(name)}` of the URL is a secret",
                "remove it from the URL, and write `password: {env: NAME}` below `source`",
                code="secret-literal",
            )
        if name == "user":
            raise refusal(
                "the parameter `user` belongs below `source`",
                "remove it from the URL, and write `user: NAME` below `source`",
            )
        if name not in allowed:
            raise refusal(
                f"the URL has the parameter `{shown(name)}`, which lakeload does not know",
                did_you_mean(name, allowed)
                or f"the parameters are {', '.join(f'`{one}`' for one in allowed)}",
            )
        if name == "sslmode" and value not in modes:
            whose = "libpq's" if modes == _TLS_MODES else "those that its driver has"
            raise refusal(
                f"`sslmode={shown(value)}` is not one of {whose}",
                did_you_mean(value, modes) or f"write one of {', '.join(modes)}",
            )
        if name == "connect_timeout" and not re.fullmatch(r"\d{1,4}", value):
            raise refusal("`connect_timeout` is a number of seconds", "write `connect_timeout=15`")
        found[name] = value
    return found


def _checked_url(url: str) -> str:
    parse_url(url)
    return url


DatabaseAddress = Annotated[Text, Called("URL of a database"), AfterValidator(_checked_url)]


def _no_table_name(given: str, at: tuple[str | int, ...]) -> PydanticCustomError:
    return refusals([_no_table(given, at)])


def _no_table(given: str, at: tuple[str | int, ...]) -> Finding:
    return Finding(
        f"`{shown(given)}` does not name a schema and a table",
        "write `schema.table`, as in `public.orders`; put names with a dot in double quotes",
        at,
    )


def _lookback(given: Any) -> Any:
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


def _checked_lookback(text: str) -> str:
    if parse_lookback(text) is None:
        raise refusal(
            f"`{shown(text)}` is no duration and no number",
            "write a duration such as `PT10M`, `PT36H` or `P2D`, or the difference of two numbers",
        )
    return text


Lookback = Annotated[
    Text,
    Called("duration, or number"),
    BeforeValidator(_lookback),
    AfterValidator(_checked_lookback),
    WithJsonSchema({"type": ["string", "integer"]}),
]


_RANGES: tuple[Consistency, ...] = ("LOCK", "NONE")
"""With these several tasks may read a table of MySQL."""
_WARNINGS: Mapping[Consistency, str] = {
    "SYNC": "`consistency: SYNC`: until the last table is loaded, the database keeps all rows that "
    "are deleted or changed meanwhile, because VACUUM cannot remove them",
    "LOCK": "`consistency: LOCK`: other sessions that write to a large table wait for some seconds "
    "when its load begins",
    "NONE": "`consistency: NONE`: the ranges of a large table are read at different moments; what "
    "is changed meanwhile may be loaded in part, and a row whose key changes twice or not at all",
}


class JdbcSettings(SourceSettings):
    """Where the database is, and who reads it."""

    type: Literal["JDBC"]
    """`JDBC`: tables of a database."""
    url: DatabaseAddress
    """The database, as `postgresql://HOST:PORT/DATABASE`, `mysql://…`, `sqlserver://…`,
    `oracle://…`, or any other as its driver has it: `jdbc:NAME:…`. Without a password."""
    jar: Paths | None = None
    """Oracle and `jdbc:NAME:…`: the jar of the JDBC driver, or a list; relative to this file."""
    driver: Text | None = setting(None, "the one that the jar names")
    """Oracle and `jdbc:NAME:…`: the class of the JDBC driver."""
    user: Text | None = None
    """The user who reads. Default: the one in the URL, or as libpq finds it."""
    password: Secret = None
    """The user's password. Secret. Default: as libpq finds it, as in `~/.pgpass`."""
    iam_authentication: bool = False
    """Log in to Amazon RDS with a token of IAM, a new one for each connection, and no password."""
    max_connections: Annotated[int, Field(ge=2, le=1000)] = 4
    """How many connections a run has open at once, over all tables."""
    consistency: Consistency = "TABLE"
    """`TABLE`: each table is read in a snapshot of its own. `SYNC`, for PostgreSQL: all tables
    of a sync are read in one. `LOCK` and `NONE`, for MySQL and MariaDB: several tasks read a table,
    in snapshots that begin under a lock of the table, or at different moments."""
    lock_timeout: Annotated[int, Field(ge=1, le=86_400)] = 60
    """Seconds to wait for a table that another session has locked, before the table fails."""
    statement_timeout: Annotated[int, Field(ge=0, le=604_800)] = 0
    """Seconds that one statement may run, such as the read of a part of a table. 0: as the
    server limits the user."""


class JdbcTable(TableSettings):
    """The input of one table."""

    table: Text
    """The table or view as `schema.table`, as in the database; any name for a `query`. With `*` or
    `?`, as in `public.*`, all tables that match."""
    exclude: tuple[Text, ...] = ()
    """Names and globs of tables that a glob in `table` leaves out."""
    query: Text | None = None
    """A SELECT of the database, whose rows are loaded."""
    cursor: Text | None = None
    """Loads read only rows from its last value on; `xmin` of PostgreSQL: those that are new."""
    lookback: Lookback | None = None
    """How far before the last value of `cursor` late rows are found: `PT10M`, or a number."""
    detect_deletes: bool = False
    """Compare the keys of the source with those of the table, and delete what the source lacks."""
    max_deleted: RecordLimit | None = setting(None, "`30 %`")
    """`detect_deletes`: how many rows of the table may be deleted; with more, the table fails."""

    @model_validator(mode="after")
    def _looks_back_from_a_cursor(self) -> JdbcTable:
        if self.lookback is not None and (self.cursor is None or not self.cursor_is_column):
            without = "without `cursor`" if self.cursor is None else f"with `cursor: {CURSOR}`"
            raise refusals(
                [
                    Finding(
                        f"`lookback` has no effect {without}",
                        "set `cursor` to a column, or remove the line",
                        ("lookback",),
                    )
                ]
            )
        return self

    _found_key: tuple[str, ...] | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _names_a_table(self) -> JdbcTable:
        if self.query is None and len(name_parts(self.table)) not in (1, 2):
            raise _no_table_name(self.table, ("table",))
        for i, name in enumerate(self.exclude):
            if len(name_parts(name)) not in (1, 2):
                raise _no_table_name(name, ("exclude", i))
        return self

    @property
    def cursor_is_column(self) -> bool:
        """Whether `cursor` is not the transaction id of PostgreSQL's rows."""
        return self.cursor != CURSOR or self.query is not None

    @property
    def is_glob(self) -> bool:
        """Whether it stands for all tables whose names match."""
        return self.query is None and any(part.glob for part in name_parts(self.table))

    @property
    def finds_key(self) -> bool:
        """Whether it is a table: a query has no key."""
        return self.query is None

    @property
    def found_key(self) -> tuple[str, ...] | None:
        """The key of the database, where the table is loaded with it."""
        return self._found_key

    def with_found_key(self, key: tuple[str, ...]) -> JdbcTable:
        """Return the table with the key of the database."""
        made = self.model_copy(update={"primary_key": key})
        made._found_key = key
        return made

    @property
    def source_schema(self) -> str | None:
        """The schema in the database; None for a query."""
        *schemas, _ = name_parts(self.table) if self.query is None else (None,)
        return schemas[0].text if schemas else None

    def key_needed_by(self, mode: Mode) -> str | None:
        """Return the setting that needs a key; None where no setting does."""
        if self.delete_limit is not None and mode != "UPSERT":
            return "detect_deletes"
        if self.lookback is not None and mode == "APPEND":
            return "lookback"
        return super().key_needed_by(mode)

    @property
    def delete_limit(self) -> RejectLimit | None:
        """How many rows may be deleted; None where keys are not compared."""
        return (self.max_deleted or DELETE_LIMIT) if self.detect_deletes else None

    @property
    def source_table(self) -> str:
        """The table's name in its schema."""
        return name_parts(self.table)[-1].text if self.query is None else self.table


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
        if read.database in BY_DRIVER:
            return "its database is read with a JDBC driver, by one statement", "remove the line"
        return None

    def written(self, source: JdbcSettings, table: JdbcTable) -> JdbcInput:
        """Return the table with the parts of the URL."""
        url = parse_url(source.url)
        return JdbcInput(
            database=url.database,
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
            url=source.url if url.database == "OTHER" else None,
            jars=source.jar or (),
            driver=source.driver,
        )

    def resolved(self, written: JdbcInput, source: JdbcSettings, folder: Path) -> JdbcInput:
        """Return it with the password's reference, and paths absolute."""
        parameters = dict(written.parameters or {})
        if certificate := parameters.get("sslrootcert"):
            parameters["sslrootcert"] = (
                certificate if certificate == "system" else absolute_path(folder, certificate)
            )
        return replace(
            written,
            password=absolute_reference(source.password, folder),
            parameters=parameters or None,
            jars=tuple(absolute_path(folder, jar) for jar in written.jars),
        )

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
        if read.database == "POSTGRESQL" and read.query is None:
            cursor = f"`cursor: {CURSOR}`"
        else:
            cursor = "`cursor` to a column that grows with each new or changed row"
        return f"set {cursor} and begin again with `lakeload reset`"

    def findings(self, source: Any, tables: Sequence[tuple[int, JdbcTable]]) -> Iterator[Finding]:
        """Yield a user that is given twice or missing."""
        try:
            settings = JdbcSettings.model_validate(source)
        except ValidationError:
            return
        url = parse_url(settings.url)
        yield from _glob_findings(tables)
        if url.database not in _NAMES_JAR:
            yield from _own_driver_findings(settings)
        if url.database != "OTHER":
            yield from _user_findings(settings, url)
            for i, table in tables:
                if table.query is None and len(name_parts(table.table)) != 2:
                    yield _no_table(table.table, ("tables", i, "table"))
        if url.database in BY_DRIVER:
            yield from _driver_findings(settings, url, tables)
            return
        if settings.consistency == "SYNC" and url.database == "MYSQL":
            yield Finding(
                "`consistency: SYNC`: sessions of MySQL and MariaDB have no common snapshot",
                "remove it: each table is read in a transaction of its own",
                ("source", "consistency"),
                "contradiction",
            )
        elif settings.consistency in ("LOCK", "NONE") and url.database == "POSTGRESQL":
            yield Finding(
                f"`consistency: {settings.consistency}` is for MySQL and MariaDB: all tasks that "
                "read a table of PostgreSQL have one snapshot",
                "remove it",
                ("source", "consistency"),
                "contradiction",
            )
        elif settings.consistency == "LOCK" and settings.max_connections < _LEAST_OF_LOCK:
            yield Finding(
                f"`consistency: LOCK` needs {_LEAST_OF_LOCK} connections: two that read, and one "
                "that holds the lock",
                f"set `max_connections: {_LEAST_OF_LOCK}` or more",
                ("source", "max_connections"),
                "contradiction",
            )
        elif settings.consistency == "SYNC" and settings.max_connections < _LEAST_OF_SYNC:
            yield Finding(
                f"`consistency: SYNC` needs {_LEAST_OF_SYNC} connections: one of them holds the "
                "snapshot of all tables",
                f"set `max_connections: {_LEAST_OF_SYNC}` or more",
                ("source", "max_connections"),
                "contradiction",
            )
        for i, table in tables:
            if url.database == "MYSQL" and not table.cursor_is_column:
                yield Finding(
                    f"`cursor: {CURSOR}` is the transaction id of PostgreSQL's rows",
                    "set `cursor` to a column of the table",
                    ("tables", i, "cursor"),
                )
        iam = settings.iam_authentication
        if iam and settings.password is not None:
            yield Finding(
                "`password` and `iam_authentication` are two ways to log in",
                "remove one of the two",
                ("source", "password"),
                "contradiction",
            )
        if iam and url.parameters.get("sslmode") not in VERIFIED:
            yield Finding(
                "`iam_authentication` needs TLS: the token is sent as it is",
                "add `sslmode=verify-full` and `sslrootcert` to `url`",
                ("source", "url"),
                "contradiction",
            )

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
        if parse_url(source.url).database in BY_DRIVER:
            return tables
        if not any(table.is_glob or (keys and table.takes_found_key) for table in tables):
            return tables
        # With the drivers, which the documents alone do without.
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
        dataset, by_spark = dataset_of_table(read), bool(only_spark(read, reader))
        return InputFacts(
            datasets=(dataset,) if dataset else (),
            database=read,
            # Nobody can name a value of `xmin`.
            starts_from=read.incremental and not read.by_xmin,
            reader="jvm" if by_spark else "direct",
            jar_sets=_jar_sets(read, by_spark=by_spark),
            jars=tuple(map(Path, read.jars)),
            numbering=_numbering(read),
            warnings=_warnings(read),
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
        # With the drivers, which the documents alone do without.
        from lakeload.sources.databases.inspection import inspect

        if read.database in BY_DRIVER:
            check_driver(read)
            return NOTHING_KNOWN
        if bookmark is not None:
            remembered(read, bookmark().state)
        goes_on = known and not options.starts_over
        return inspect(read, table, options, bookmark if goes_on else None, readers)

    def read_columns(
        self, read: JdbcInput, request: ColumnsRequest, readers: SourceReaders
    ) -> SourceColumns | None:
        """Read the columns from the catalog, and check that they may be selected."""
        if read.database in BY_DRIVER:
            return None
        from lakeload.sources.databases.inspection import read_columns

        return read_columns(read, request, readers)

    def checks(
        self, tables: Sequence[tuple[TableSpec, JdbcInput]], readers: SourceReaders
    ) -> tuple[SourceCheck, ...]:
        """Return the checks of the login, of snapshots and of the right to read each table."""
        if tables[0][1].database in BY_DRIVER:
            # With py4j, which other databases do without.
            from lakeload.sources.databases.driver_checks import driver_checks

            return driver_checks(tables, readers)
        from lakeload.sources.databases.inspection import checks

        return checks(tables, readers)


def _jar_sets(read: JdbcInput, *, by_spark: bool) -> frozenset[str]:
    """Return the driver of SQL Server, and that of PostgreSQL where Spark reads."""
    if read.database == "SQLSERVER":
        return frozenset({"sqlserver"})
    return frozenset({"postgresql"} if read.database == "POSTGRESQL" and by_spark else ())


def _numbering(read: JdbcInput) -> Numbering:
    """Return what counts the rows; only those of PostgreSQL are read more than once."""
    if read.database == "POSTGRESQL":
        return "counted in the database"
    return "not counted" if read.consistency in _RANGES else "one partition"


def _warnings(read: JdbcInput) -> tuple[str, ...]:
    """Return what the `consistency` of the source means for those who write to it, and what is not
    proven."""
    said = DRIVER_WARNINGS.get(read.database) or _WARNINGS.get(read.consistency)
    return (said,) if said else ()


def check_driver(read: JdbcInput) -> str:
    """Return the class of the driver. Raises `InvalidInput` where the jars do not have it."""
    # With py4j, which other databases do without.
    from lakeload_jobs.sources.databases.engines.driver.catalog import driver_class

    return driver_class(read)


def _user_findings(settings: JdbcSettings, url: DatabaseUrl) -> Iterator[Finding]:
    """Yield a user that is missing, or given twice."""
    needed = url.database != "POSTGRESQL" or settings.iam_authentication
    if needed and not (settings.user or url.user):
        yield Finding(
            "`user` is missing", "write `user: NAME` below `source`", ("source",), "missing-key"
        )
    if settings.user and url.user and settings.user != url.user:
        yield Finding(
            f"`user` is `{shown(settings.user)}`, and the URL names `{shown(url.user)}`",
            "remove one of the two",
            ("source", "user"),
            "contradiction",
        )


def _own_driver_findings(settings: JdbcSettings) -> Iterator[Finding]:
    """Yield a driver where lakeload has one."""
    for name in ("jar", "driver"):
        if getattr(settings, name) is not None:
            message = f"`{name}` is not needed: lakeload has the driver of this database"
            yield Finding(message, "remove it", ("source", name), "contradiction")


def _driver_findings(
    settings: JdbcSettings, url: DatabaseUrl, tables: Sequence[tuple[int, Any]]
) -> Iterator[Finding]:
    """Yield what a database that is read with a JDBC driver lacks or needs."""
    what = _CALLED[url.database]
    if settings.jar is None and url.database in _NAMES_JAR:
        name = settings.url.removeprefix("jdbc:").split(":")[0]
        yield Finding(
            f"`jar` is missing: lakeload has no driver of `{shown(name)}`",
            did_you_mean(name, _DATABASES) or "write `jar: PATH` of the JDBC driver",
            ("source",),
            "missing-key",
        )
    given = {
        "consistency": settings.consistency != "TABLE",
        "iam_authentication": settings.iam_authentication,
        "lock_timeout": url.database != "SQLSERVER" and "lock_timeout" in settings.model_fields_set,
    }
    for name in (name for name, is_given in given.items() if is_given):
        message = f"`{name}` is not possible {what}"
        yield Finding(message, "remove it", ("source", name), "contradiction")
    for i, table in tables:
        lacking = {
            "table": table.is_glob,
            "cursor": not table.cursor_is_column,
            "lookback": table.lookback is not None,
            "detect_deletes": table.detect_deletes,
        }
        texts = {"table": "a glob in `table`", "cursor": f"`cursor: {CURSOR}`"}
        for name in (name for name, is_given in lacking.items() if is_given):
            message = f"{texts.get(name, f'`{name}`')} is not possible {what}"
            hint = "write one entry for each table" if name == "table" else "remove it"
            yield Finding(message, hint, ("tables", i, name), "contradiction")
        if (reason := table.key_needed_by(table.mode)) and not table.primary_key:
            yield Finding(
                f"`{reason}` needs `primary_key`, which is not looked up {what}",
                "write `primary_key: [COLUMN]`",
                ("tables", i),
                "missing-key",
            )


def _glob_findings(tables: Sequence[tuple[int, Any]]) -> Iterator[Finding]:
    """Yield settings that only one table can have, and those that only a glob can."""
    for i, table in tables:
        if table.is_glob and table.name is not None:
            yield Finding(
                f"`name` would be the target of all tables that `{shown(table.table)}` finds",
                "remove it, or give it to an entry of its own for one table",
                ("tables", i, "name"),
                "contradiction",
            )
        if table.exclude and not table.is_glob:
            yield Finding(
                "`exclude` has no effect, because `table` is no glob",
                "remove it, or write a glob such as `public.*`",
                ("tables", i, "exclude"),
                "contradiction",
            )


JDBC = JdbcSourceType()
