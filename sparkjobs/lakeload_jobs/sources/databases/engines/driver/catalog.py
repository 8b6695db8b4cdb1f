"""JDBC drivers: their connections, and the catalog of a database as JDBC describes it.

The driver runs in a JVM that Python reaches by py4j, such as that of Spark's driver.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed, Refused
from lakeload_jobs.contract.secrets import Secret, without_secrets
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    Relation,
    Rule,
    SelectedColumn,
    query_sql,
)
from lakeload_jobs.sources.databases.engines.driver.dialect import DriverDialect
from lakeload_jobs.sources.databases.engines.failures import failure, safe_text

_SERVICES = "META-INF/services/java.sql.Driver"
_LISTED = 1000
"""Tables among which the one that was meant is looked for."""
_SYSTEM = ("INFORMATION_SCHEMA", "SYSTEM_LOBS", "SYS", "PG_CATALOG")


def driver_class(dialect: DriverDialect, read: JdbcInput) -> str:
    """Return the class of the driver.

    Raises `InvalidInput` for a jar that is not there or is none, and for a class that no jar has.
    """
    if dialect.driver is not None:
        return dialect.driver
    entries: list[str] = []
    named: list[str] = []
    for jar in map(Path, read.jars):
        try:
            with zipfile.ZipFile(jar) as archive:
                entries += archive.namelist()
                if _SERVICES in entries and not named:
                    named = _services(archive.read(_SERVICES).decode("utf-8", "replace"))
        except FileNotFoundError:
            raise _missing(jar) from None
        except (OSError, zipfile.BadZipFile) as error:
            raise InvalidInput(
                f"`jar`: the file `{jar}` cannot be read as a jar: {error}",
                hint="set `jar` in `source` to the file of the JDBC driver",
            ) from error
    if read.driver is None:
        return _only_driver(named)
    if f"{read.driver.replace('.', '/')}.class" not in entries:
        known = named or [one for one in map(_class_name, entries) if one.endswith("Driver")]
        raise InvalidInput(
            f"`driver`: no class `{read.driver}` is in `jar`",
            hint=did_you_mean(read.driver, known) or "write the full name of the driver's class",
        )
    return read.driver


def _class_name(entry: str) -> str:
    return entry.removesuffix(".class").replace("/", ".")


def _services(text: str) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def _missing(jar: Path) -> InvalidInput:
    near = [one.name for one in jar.parent.glob("*.jar")] if jar.parent.is_dir() else []
    return InvalidInput(
        f"`jar`: there is no file `{jar}`",
        hint=did_you_mean(jar.name, near)
        or "write the path of the JDBC driver's jar, which is relative to the pipeline's file",
    )


def _only_driver(named: Sequence[str]) -> str:
    if len(named) == 1:
        return named[0]
    if named:
        many = ", ".join(f"`{one}`" for one in named)
        raise InvalidInput(f"`jar` has several drivers: {many}", hint="set `driver` to one of them")
    raise InvalidInput(
        "`jar` does not name the class of its driver", hint="set `driver` in `source` to this class"
    )


@dataclass(frozen=True)
class DriverRelation(Relation):
    """A table or view, or a query. `quote` is what stands around identifiers."""

    quote: str = ""

    def quoted(self, name: str) -> str:
        """Return an identifier as the driver says."""
        return quoted(name, self.quote)


def quoted(name: str, quote: str) -> str:
    """Return an identifier; '' is no quote."""
    return f"{quote}{name.replace(quote, quote * 2)}{quote}" if quote else name


def table_of(schema: str, name: str, quote: str, comment: str = "") -> DriverRelation:
    """Return a table by the names that the database has for it; `schema` '' for one without."""
    # Without AS, which not every database has here.
    sql = ".".join(quoted(part, quote) for part in (schema, name) if part)
    return DriverRelation(_joined(schema, name), sql, comment=comment, quote=quote)


def _joined(schema: str | None, name: str | None) -> str:
    return ".".join(filter(None, (schema, name)))


class Connection:
    """A connection of a JDBC driver. Its SELECTs return text."""

    def __init__(self, java: Any, read: JdbcInput) -> None:
        self._java = java
        self._read = read

    @property
    def metadata(self) -> Any:
        """The catalog: `java.sql.DatabaseMetaData`."""
        return self._java.getMetaData()

    @property
    def product(self) -> str:
        """The name and version of the database. Raises `LoadFailed`."""
        with failures("reading the version of the database"):
            about = self.metadata
            return f"{about.getDatabaseProductName()} {about.getDatabaseProductVersion()}"

    def fetch(self, statement: str, most: int = 1) -> tuple[tuple[str | None, ...], ...]:
        """Run a SELECT and return its first rows."""
        prepared = self._java.createStatement()
        try:
            prepared.setMaxRows(most)
            if self._read.statement_timeout:
                prepared.setQueryTimeout(self._read.statement_timeout)
            return tuple(rows_of(prepared.executeQuery(statement)))
        finally:
            prepared.close()

    def describe(self, relation: DriverRelation) -> tuple[CatalogColumn, ...]:
        """Return the columns of a relation, without their comments."""
        prepared = self._java.createStatement()
        try:
            select = f"SELECT * FROM {relation.sql} WHERE 1 = 0"  # noqa: S608
            about = prepared.executeQuery(select).getMetaData()
            return tuple(_column(about, place) for place in range(1, about.getColumnCount() + 1))
        finally:
            prepared.close()

    def close(self) -> None:
        """Close it."""
        self._java.close()


def rows_of(result: Any) -> Iterator[tuple[str | None, ...]]:
    """Yield the rows of a `java.sql.ResultSet`, as text."""
    count = result.getMetaData().getColumnCount()
    while result.next():
        yield tuple(result.getString(place) for place in range(1, count + 1))


_NAMES = {
    -7: "BIT", -6: "TINYINT", -5: "BIGINT", 2: "NUMERIC", 3: "DECIMAL", 4: "INTEGER", 5: "SMALLINT",
    91: "DATE", 92: "TIME", 93: "TIMESTAMP", 2013: "TIME_WITH_TIMEZONE",
}  # fmt: skip
"""Types of `java.sql.Types` that matter here; the names of others are their numbers."""


def _column(about: Any, place: int) -> CatalogColumn:
    number = int(about.getColumnType(place))
    precision = int(about.getPrecision(place))
    kind = _NAMES.get(number, str(number))
    return CatalogColumn(
        str(about.getColumnLabel(place)),
        kind,
        str(about.getColumnTypeName(place)),
        precision,
        int(about.getScale(place)),
        about.isNullable(place) != 0,
    )


def connect(
    dialect: DriverDialect, read: JdbcInput, password: Secret | None, drivers: Any
) -> Connection:
    """Connect. `drivers` returns the driver of a class, from a JVM that has it.

    Raises `InvalidInput` where the driver does not take the URL, and `Refused` where the database
    cannot be reached or rejects the login.
    """
    name_of_driver, url = driver_class(dialect, read), dialect.url_of(read)
    driver, properties = drivers(name_of_driver)
    for name, value in login_of(dialect, read, password).items():
        properties.setProperty(name, value)
    try:
        java = driver.connect(url, properties)
    except Py4JJavaError as error:
        raise _not_connected(url, error, password) from None
    if java is None:
        raise InvalidInput(
            f"the driver `{name_of_driver}` does not take the URL `{url}`",
            hint="check `url` and `jar` in `source`: they are of two databases",
        )
    return Connection(java, read)


def login_of(dialect: DriverDialect, read: JdbcInput, password: Secret | None) -> dict[str, str]:
    """Return the properties of a connection. Contains the password."""
    user = dialect.properties_of(read)
    if read.user is not None:
        user["user"] = read.user
    return user if password is None else {**user, "password": password.reveal()}


def _not_connected(url: str, error: Py4JJavaError, password: Secret | None) -> Refused:
    state, text = sql_error(error)
    said = safe_text(without_secrets(text, [] if password is None else [password.reveal()]))
    login = (state or "").startswith("28")
    return Refused(
        f"connecting to `{url}` failed: {said}",
        hint="check `user` and `password` in `source`"
        if login
        else "check `url` and `user` in `source`, and the network",
        retryable=not login,
    )


def sql_error(error: Py4JJavaError) -> tuple[str | None, str]:
    """Return the SQLSTATE of an error, None where it has none, and its text."""
    java: Any = error.java_exception
    try:
        state = java.getSQLState()
    except Py4JError:
        state = None  # no SQLException
    return state, str(java.getMessage() or java.getClass().getName())


@contextmanager
def failures(doing: str) -> Iterator[None]:
    """Raise errors of the driver as `LoadFailed`."""
    try:
        yield
    except LakeloadError:
        raise
    except Py4JJavaError as error:
        raise failure(doing, *sql_error(error)) from None


def find_relation(connection: Connection, read: JdbcInput) -> DriverRelation:
    """Return what is read. Raises `LoadFailed` where the user sees no table of that name, or more
    than one."""
    shown = _joined(read.schema, read.table)
    with failures(f"finding the table `{shown}`"):
        about = connection.metadata
        quote = str(about.getIdentifierQuoteString() or "").strip()
        if read.query is not None:
            return DriverRelation("query", query_sql(read.query, "lakeload_query"), quote=quote)
        escape = str(about.getSearchStringEscape() or "")
        pattern = re.sub(r"[_%]", lambda found: escape + found[0], read.table)
        listed = list(rows_of(about.getTables(None, None, pattern, None)))
        # Of each: catalog, schema, name, kind, comment. Without schemas they are in catalogs.
        same = [row for row in listed if row[2] == read.table]
        found = [row for row in same if not read.schema or read.schema in (row[1], row[0])]
        if not found:
            listed = list(islice(rows_of(about.getTables(None, None, "%", None)), _LISTED))
    if not read.schema and len(found) > 1:
        found = [row for row in found if str(row[1] or row[0]).upper() not in _SYSTEM]
    if len(found) == 1 or (found and read.schema):
        catalog, schema, name, _, comment = found[0][:5]
        given = read.schema or schema or catalog or ""
        return table_of(given, name or "", quote, comment or "")
    if found:
        schemas = ", ".join(f"`{row[1] or row[0]}`" for row in found)
        raise LoadFailed(
            f"there are several tables `{read.table}`, in {schemas}",
            hint="write `schema.table`",
        )
    names = {_joined(row[1] or row[0] if read.schema else None, row[2]) for row in listed}
    raise LoadFailed(
        f"the user sees no table `{shown}`",
        hint=did_you_mean(shown, sorted(names))
        or "write the names as they are in the database, upper and lower case included, and check "
        "the rights of the user",
    )


def columns(connection: Connection, relation: DriverRelation) -> tuple[CatalogColumn, ...]:
    """Return the columns in their order. Raises `LoadFailed` for a query that is rejected, or has
    two columns of one name."""
    with failures(f"reading the columns of `{relation.shown}`"):
        found = connection.describe(relation)
    names = [column.name for column in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise LoadFailed(
            f"reading the columns of `{relation.shown}`: two columns have the name `{twice}`",
            hint="give one of them another name with `AS`",
        )
    return found


def select(
    dialect: DriverDialect,
    read: JdbcInput,
    relation: DriverRelation,
    found: Sequence[CatalogColumn],
) -> list[SelectedColumn]:
    """Return the columns as they are selected. `type` is the one that Spark is told, '' where it
    chooses."""
    return [
        _selected(relation.quoted(column.name), column, *dialect.rule_of(column, read))
        for column in found
    ]


def _selected(value: str, column: CatalogColumn, rule: Rule, target: str) -> SelectedColumn:
    expression = rule.expression.format(value)
    return SelectedColumn(
        column.name,
        expression,
        target,
        carried="TEXT" if rule.text else "VALUE",
        bad=rule.bad.format(value),
        reason=rule.reason,
        shown=expression,
    )


def statement(
    dialect: DriverDialect,
    relation: DriverRelation,
    selected: Sequence[SelectedColumn],
    wanted: str,
    cursor: str,
) -> str:
    """Return the SELECT of a table, of columns that are named by place: the values; as text those
    that are bad, and null for others; `cursor`, where it is not ''; and the number of rows."""
    rows = relation.sql + (f" WHERE {wanted}" if wanted else "")
    values = [column.checked for column in selected]
    values += [f"CASE WHEN {one.bad} THEN {one.shown} END" for one in selected if one.bad]
    values += [cursor] if cursor else []
    values.append(f"(SELECT {dialect.count} FROM {rows})")  # noqa: S608
    # Spark does not read two columns that differ in case only.
    names = [relation.quoted(f"c{place}") for place in range(len(values))]
    listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
    return f"SELECT {listed} FROM {rows}"  # noqa: S608
