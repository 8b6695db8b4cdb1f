"""Settings of a JDBC source and of its tables."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from lakeload.config.model import Called, Finding, refusal, refusals, setting
from lakeload.config.scalars import RecordLimit, Text
from lakeload.config.secret_names import shown
from lakeload.config.secret_setting import Secret
from lakeload.sources.base import SourceSettings, TableSettings
from lakeload.sources.databases.table_names import name_parts
from lakeload.sources.databases.url import DatabaseAddress
from lakeload.sources.paths import Paths
from lakeload_jobs.contract.spec import DELETE_LIMIT, Consistency, Mode, RejectLimit
from lakeload_jobs.sources.databases.engines.base import XMIN
from lakeload_jobs.sources.databases.seen import parse_lookback


def _no_table_name(given: str, at: tuple[str | int, ...]) -> PydanticCustomError:
    return refusals([no_table(given, at)])


def no_table(given: str, at: tuple[str | int, ...]) -> Finding:
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
            without = "without `cursor`" if self.cursor is None else f"with `cursor: {XMIN}`"
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
        return self.cursor != XMIN or self.query is not None

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
