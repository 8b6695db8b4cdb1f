"""Oracle, by its JDBC driver: URL, sessions, the table of types. Not proven against a server.

One statement sees the rows of one moment there, so a session needs no setting for it.
"""

from __future__ import annotations

from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.columns import CatalogColumn, Rule, target_of
from lakeload_jobs.sources.databases.engines.base import Facts, host_of
from lakeload_jobs.sources.databases.engines.driver.dialect import DriverDialect
from lakeload_jobs.sources.databases.engines.driver.engine import DriverEngine, IntegerCursors

_MAX_DIGITS = 38
_NUMBER = "TO_CHAR({0}, 'TM9', 'NLS_NUMERIC_CHARACTERS = ''.,''')"
_SECONDS = "YYYY-MM-DD HH24:MI:SS"
_TIMESTAMP = f"TO_CHAR({{0}}, '{_SECONDS}.FF9')"
_INSTANT = f"TO_CHAR(SYS_EXTRACT_UTC({{0}}), '{_SECONDS}.FF9')"
_NOT_A_DATE = "it is before 1582-10-15, or has a fraction below microseconds"
# Earlier days are of the Julian calendar in Oracle.
_TOO_EARLY = "{0} < DATE '1582-10-15'"
_TOO_FINE = f"{_TOO_EARLY} OR TO_CHAR({{0}}, 'FF9') NOT LIKE '%000'"
_TOO_LARGE = f"ABS({{0}}) >= 1E{_MAX_DIGITS}"

RULES: tuple[Rule, ...] = (
    Rule(
        "number", "decimal(p,s)", _NUMBER, text=True, bad=_TOO_LARGE,
        reason="it has more than 38 digits",
    ),
    Rule("float", "string", _NUMBER),
    Rule("binary_float", "float"),
    Rule("binary_double", "double"),
    Rule("boolean", "boolean"),
    Rule("char", "string"),
    Rule("nchar", "string"),
    Rule("varchar2", "string"),
    Rule("nvarchar2", "string"),
    Rule("clob", "string"),
    Rule("nclob", "string"),
    Rule(
        "date", "timestamp_ntz", f"TO_CHAR({{0}}, '{_SECONDS}')", text=True, bad=_TOO_EARLY,
        reason=_NOT_A_DATE,
    ),
    Rule("timestamp", "timestamp_ntz", _TIMESTAMP, text=True, bad=_TOO_FINE, reason=_NOT_A_DATE),
    Rule(
        "timestamp with time zone", "timestamp", _INSTANT, text=True, bad=_TOO_FINE,
        reason=_NOT_A_DATE,
    ),
    Rule(
        "timestamp with local time zone", "timestamp", _INSTANT, text=True, bad=_TOO_FINE,
        reason=_NOT_A_DATE,
    ),
    Rule("raw", "binary"),
    Rule("blob", "binary"),
    Rule("xmltype", "string", "XMLSERIALIZE(CONTENT {0} AS CLOB)"),
    Rule("json", "string", "JSON_SERIALIZE({0} RETURNING CLOB)"),
)  # fmt: skip
"""The table of types, as `ALL_TAB_COLUMNS` names them."""
OTHER = Rule("", "string", "TO_CHAR({0})")
"""What every other type follows: its text, as the server writes it."""
_RULES = {rule.type: rule for rule in RULES}


class OracleDialect(DriverDialect):
    """What is known of Oracle."""

    writes_dates = True

    def url_of(self, read: JdbcInput) -> str:
        """Return the URL of the driver."""
        tls = (read.parameters or {}).get("sslmode") == "verify-full"
        protocol = "tcps:" if tls else ""
        return f"jdbc:oracle:thin:@{protocol}//{host_of(read)}:{read.port}/{read.name}"

    def properties_of(self, read: JdbcInput) -> dict[str, str]:
        """Return the properties of a connection, without the login."""
        parameters = read.parameters or {}
        tls = parameters.get("sslmode") == "verify-full"
        return {
            "oracle.net.CONNECT_TIMEOUT": str(1000 * int(parameters.get("connect_timeout", "15"))),
            "v$session.program": "lakeload",
            **({"oracle.net.ssl_server_dn_match": "true"} if tls else {}),
        }

    def rule_of(self, column: CatalogColumn, read: JdbcInput) -> tuple[Rule, str]:
        """Return what becomes of a column, and the type of its target."""
        kind = column.declared.lower()
        rule = _RULES.get(kind, OTHER)
        if kind != "number":
            return rule, target_of(rule, column)
        digits, scale = column.precision or 0, column.scale
        if scale is None or scale < -_MAX_DIGITS or (not digits and scale):
            # NUMBER: any number of digits before and after the point.
            return _RULES["float"], "string"
        # A negative scale rounds before the point; one beyond the precision means leading zeros.
        digits = max((digits or _MAX_DIGITS) - min(scale, 0), scale)
        if digits > _MAX_DIGITS:
            return _RULES["float"], "string"
        return rule, f"decimal({digits},{max(scale, 0)})"


class _Oracle(DriverEngine):
    facts = Facts(
        "ORACLE",
        ("Oracle",),
        schemes=("oracle",),
        port=1521,
        example="oracle://db.example.com:1521/SERVICE",
        parameters=("sslmode", "connect_timeout"),
        tls_modes=("disable", "verify-full"),
        password_in_url=r"^jdbc:oracle:\w+:[^@/]*/[^@]+@",  # noqa: S106 - a pattern
        by_driver=True,
        users_driver=True,
        has_lock_timeout=False,
        lineage="oracle",
        warning="loads from Oracle are not proven against a server: compare what is loaded",
    )
    cursors = IntegerCursors("set `cursor` to a column of integers, such as `NUMBER(18)`")
    dialect = OracleDialect()


ORACLE = _Oracle()
