"""SQL Server, by its JDBC driver: URL, sessions, and the table of types.

Not proven against a server.
"""

from __future__ import annotations

from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.columns import CatalogColumn, Fetch, Rule, target_of
from lakeload_jobs.sources.databases.engines.base import Facts, host_of
from lakeload_jobs.sources.databases.engines.driver.dialect import DriverDialect
from lakeload_jobs.sources.databases.engines.driver.engine import DriverEngine, IntegerCursors

_TLS = {
    "disable": {"encrypt": "false"},
    "require": {"encrypt": "true", "trustServerCertificate": "true"},
    "verify-full": {"encrypt": "true", "trustServerCertificate": "false"},
}
_MICROSECONDS = "it has a fraction below microseconds"


def _text(kind: str) -> str:
    # Style 121 is ODBC's, whatever the language of the session is.
    return f"CONVERT({kind}, {{0}}, 121)"


def _below_microseconds(value: str) -> str:
    return f"DATEPART(nanosecond, {value}) % 1000 <> 0"


_AS_TEXT = "CONVERT(nvarchar(max), {0})"
_INSTANT = "CONVERT(varchar(27), CAST(SWITCHOFFSET({0}, '+00:00') AS datetime2(7)), 121)"

RULES: tuple[Rule, ...] = (
    Rule("bit", "boolean"),
    Rule("tinyint", "smallint", "CAST({0} AS smallint)"),
    Rule("smallint", "smallint"),
    Rule("int", "int"),
    Rule("bigint", "bigint"),
    Rule("decimal", "decimal(p,s)"),
    Rule("numeric", "decimal(p,s)"),
    Rule("money", "decimal(19,4)", "CAST({0} AS decimal(19, 4))"),
    Rule("smallmoney", "decimal(10,4)", "CAST({0} AS decimal(10, 4))"),
    Rule("real", "float"),
    Rule("float", "double"),
    Rule("char", "string"),
    Rule("varchar", "string"),
    Rule("text", "string"),
    Rule("nchar", "string"),
    Rule("nvarchar", "string"),
    Rule("ntext", "string"),
    Rule("date", "date", _text("varchar(10)"), text=True),
    Rule("smalldatetime", "timestamp_ntz", _text("varchar(23)"), text=True),
    Rule("datetime", "timestamp_ntz", _text("varchar(23)"), text=True),
    Rule(
        "datetime2",
        "timestamp_ntz",
        _text("varchar(27)"),
        text=True,
        bad=_below_microseconds("{0}"),
        reason=_MICROSECONDS,
    ),
    Rule(
        "datetimeoffset",
        "timestamp",
        _INSTANT,
        text=True,
        bad=_below_microseconds("{0}"),
        reason=_MICROSECONDS,
    ),
    Rule("time", "string", _text("varchar(16)")),
    Rule("binary", "binary"),
    Rule("varbinary", "binary"),
    Rule("image", "binary"),
    Rule("timestamp", "binary", "CAST({0} AS binary(8))"),
    Rule("uniqueidentifier", "string", "CONVERT(varchar(36), {0})"),
)
"""The table of types, by their names in `sys.types`. `timestamp` is `rowversion`."""
OTHER = Rule("", "string", _AS_TEXT)
"""What every other type follows: its text, as the server writes it."""
_RULES = {rule.type: rule for rule in RULES}
_ISOLATION = (
    "SELECT snapshot_isolation_state, CAST(is_read_committed_snapshot_on AS int)"
    " FROM sys.databases WHERE database_id = DB_ID()"
)


class SqlServerDialect(DriverDialect):
    """What is known of SQL Server."""

    driver = "com.microsoft.sqlserver.jdbc.SQLServerDriver"
    count = "COUNT_BIG(*)"
    """COUNT is an error beyond 2³¹ rows."""
    writes_dates = True

    def url_of(self, read: JdbcInput) -> str:
        """Return the URL of the driver."""
        return f"jdbc:sqlserver://{host_of(read)}:{read.port}"

    def properties_of(self, read: JdbcInput) -> dict[str, str]:
        """Return the properties of a connection, without the login."""
        parameters = read.parameters or {}
        return {
            "databaseName": read.name,
            "applicationName": "lakeload",
            "loginTimeout": parameters.get("connect_timeout", "15"),
            **_TLS[parameters.get("sslmode", "verify-full")],
        }

    def session_of(self, read: JdbcInput, fetch: Fetch) -> tuple[str, tuple[str, ...]]:
        """Return what sets up a session that reads one moment, and what is to be said of it."""
        ((snapshot, versions),) = fetch(_ISOLATION)
        locks = f"SET LOCK_TIMEOUT {1000 * read.lock_timeout}"
        if snapshot == "1":
            return f"SET TRANSACTION ISOLATION LEVEL SNAPSHOT; {locks}", ()
        if versions == "1":
            return locks, ()
        return locks, (
            f"the database `{read.name}` keeps no row versions, so a change during the read may be "
            f"loaded in part: `ALTER DATABASE [{read.name}] SET ALLOW_SNAPSHOT_ISOLATION ON` "
            "prevents this",
        )

    def rule_of(self, column: CatalogColumn, read: JdbcInput) -> tuple[Rule, str]:
        """Return what becomes of a column, and the type of its target."""
        kind = column.declared.lower().removesuffix(" identity")
        rule = _RULES.get(kind, OTHER)
        return rule, target_of(rule, column)


class _SqlServer(DriverEngine):
    facts = Facts(
        "SQLSERVER",
        ("SQL Server",),
        schemes=("sqlserver",),
        port=1433,
        example="sqlserver://db.example.com:1433/shop",
        parameters=("sslmode", "connect_timeout"),
        tls_modes=("disable", "require", "verify-full"),
        by_driver=True,
        jar_set="sqlserver",
        lineage="mssql",
        warning="loads from SQL Server are not proven against a server: compare what is loaded",
    )
    cursors = IntegerCursors("set `cursor` to a column of integers")
    dialect = SqlServerDialect()


SQLSERVER = _SqlServer()
