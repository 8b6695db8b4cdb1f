"""Interface of an engine of databases: its facts, and what connects to it and reads it.

Both programs ask the engine in place of its name. Facts need no driver. `catalog` imports the
engine's client, and `connect` Spark too, so they do when they are called.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, unquote

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed, MachineNotReady
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import (
    Consistency,
    DatabaseType,
    JdbcInput,
    JobSpec,
    ReaderChoice,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    CatalogTable,
    Fetch,
    SelectedColumn,
)
from lakeload_jobs.sources.databases.cursor_sql import CursorSql
from lakeload_jobs.sources.databases.engines.failures import failure

if TYPE_CHECKING:
    from lakeload_jobs.aws import AwsSession
    from lakeload_jobs.sources.base import Source
    from lakeload_jobs.sources.databases.cursors import RowsWindow

XMIN = "xmin"
"""The value of `cursor` that names no column, but the transaction ids of rows."""
TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
"""Values of `sslmode`, as libpq has them."""
COMMON_PARAMETERS = ("sslmode", "sslrootcert", "connect_timeout")


@dataclass(frozen=True)
class Unsupported:
    """What is said of a setting that an engine does not have."""

    message: str
    hint: str = "remove it"


@dataclass(frozen=True)
class ConsistencyFacts:
    """A `consistency` beside TABLE: the least connections that it needs, what they do, and what it
    means for those who write to the database."""

    connections: int
    roles: str
    warning: str


@dataclass(frozen=True)
class Grants:
    """The statements that make a user who reads, and what there is to say about them."""

    statements: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DirectReader:
    """A package that reads rows without Spark: its module, its name, and our extra that has it."""

    module: str
    package: str
    extra: str


@dataclass(frozen=True)
class Facts:
    """What both programs know of an engine without asking a server."""

    database: DatabaseType
    names: tuple[str, ...]
    """The products, for messages: `MySQL`, `MariaDB`."""
    schemes: tuple[str, ...] = ()
    """Of its URLs. None: a URL is as the JDBC driver of the user has it, `jdbc:NAME:…`."""
    port: int = 0
    """The default one."""
    example: str = ""
    """A URL."""
    parameters: tuple[str, ...] = COMMON_PARAMETERS
    """Those that a URL can have; they mean what they mean to libpq."""
    tls_modes: tuple[str, ...] = TLS_MODES
    """Values of `sslmode`."""
    password_in_url: str = ""
    """A pattern of a URL of its driver with a password that is not before the host."""
    needs_login: bool = True
    """Whether the document has to name the user: its client finds no login by itself."""
    by_driver: bool = False
    """Whether Spark alone reads it, with a JDBC driver: nothing but the driver knows its catalog
    before, so globs, keys and `detect_deletes` need another engine."""
    users_driver: bool = False
    """Whether the jar of the driver is the user's."""
    direct: DirectReader | None = None
    """What reads it without Spark, where Spark can read it too."""
    jar_set: str = ""
    """The jars with which Spark reads it (`machine/jars.toml`); '' for none of ours."""
    consistencies: Mapping[Consistency, ConsistencyFacts] = field(default_factory=dict)
    no_consistency: Mapping[Consistency, Unsupported] = field(default_factory=dict)
    """The others, beside TABLE."""
    has_lock_timeout: bool = True
    has_xmin: bool = False
    """Whether `cursor: xmin` finds new rows."""
    counts_rows: bool = False
    """Whether the rows of each part are counted before they are read, so that all have numbers."""
    lineage: str = ""
    """The scheme of its namespaces in OpenLineage."""
    schema_is_database: bool = False
    """Whether the server has its schemas in place of databases."""
    grants: str = ""
    """What `policy --for` calls it, where we write the grants of its user; '' where we do not."""
    warning: str = ""
    """Of every load."""
    java_error: str = ""
    """The class of the errors of its JDBC driver."""

    @property
    def title(self) -> str:
        """The products in a sentence."""
        return " and ".join(self.names)


class Catalog(Protocol):
    """What is asked of a connection before rows are read: a module of functions. `connection` and
    what they return of a relation are the engine's own."""

    def connect_read_only(self, read: JdbcInput, password: Secret | None, /) -> Any:
        """Return a connection whose transactions read only. Raises `Refused`."""

    def describe_session(self, connection: Any, /) -> str:
        """Return the version of the server and how the connection is encrypted."""

    def session_checks(
        self, read: JdbcInput, password: Callable[[], Secret | None], /
    ) -> Sequence[tuple[str, str, Callable[[], str]]]:
        """Return checks beyond the login: name, what it proves, and what runs it."""

    def list_tables(
        self, connection: Any, read: JdbcInput, schemas: Sequence[str] | None, /
    ) -> tuple[CatalogTable, ...]:
        """Return the tables and views of some schemas, or of all that are not the system's."""

    def list_changed(
        self, connection: Any, read: JdbcInput, /
    ) -> dict[tuple[str, str], tuple[str, ...]]:
        """Return the timestamps of tables that are not null, by schema and table."""

    def list_sizes(self, connection: Any, read: JdbcInput, /) -> dict[tuple[str, str], int]:
        """Return the bytes of tables whose size is known, by schema and table."""

    def find_relation(self, connection: Any, read: JdbcInput, /) -> Any:
        """Return the `Relation`. Raises `LoadFailed` where the user sees none of that name."""

    def columns(
        self, connection: Any, relation: Any, read: JdbcInput, /
    ) -> tuple[CatalogColumn, ...]:
        """Return the columns. Raises `LoadFailed` for a query that is rejected."""

    def select(self, found: Sequence[CatalogColumn], /) -> tuple[SelectedColumn, ...]:
        """Return how columns are selected, each as its type's rule says."""

    def check_select(
        self, connection: Any, relation: Any, selected: Sequence[SelectedColumn], read: JdbcInput, /
    ) -> None:
        """Raise `LoadFailed` where the user may not read the columns."""

    def key_of(self, connection: Any, relation: Any, /) -> tuple[str, ...]:
        """Return the columns of the preferred key; none where the table has none."""

    def one_transaction(
        self, connection: Any, read: JdbcInput, relation: Any, /
    ) -> AbstractContextManager[Fetch]:
        """Give what runs SELECTs in one transaction. Raises `LoadFailed` for what fails there."""

    def estimate_rows(self, connection: Any, relation: Any, wanted: str, /) -> int | None:
        """Return how many rows meet a condition, by statistics; None where they do not tell."""


class Engine(ABC):
    """One engine."""

    facts: Facts
    cursors: CursorSql

    def place_of(self, url: SplitResult) -> tuple[str, int, str] | None:
        """Return the host, port and database of a URL; None where it does not name one of each.
        Raises `ValueError` for a port that is none."""
        name, port = unquote(url.path.removeprefix("/")), url.port
        if not url.hostname or not name or "/" in name or url.fragment or port == 0:
            return None
        return url.hostname, port or self.facts.port, name

    def resolved(self, read: JdbcInput, absolute: Callable[[str], str]) -> JdbcInput:
        """Return the input with absolute paths."""
        parameters = dict(read.parameters or {})
        if (certificate := parameters.get("sslrootcert", "system")) != "system":
            parameters["sslrootcert"] = absolute(certificate)
        jars = tuple(map(absolute, read.jars))
        return replace(read, parameters=parameters or None, jars=jars)

    def only_spark(self, choice: ReaderChoice) -> str:
        """Return why Spark's JDBC reader reads a table, as a clause; '' where it does not."""
        if self.facts.by_driver:
            return "its JDBC driver is used by Spark alone"
        direct = self.facts.direct
        if direct is None:
            return ""
        if choice == "JVM":
            return "`spark.reader` is `JVM`"
        if choice == "AUTO" and not _is_installed(direct):
            return f"the package `{direct.package}` is not installed"
        return ""

    def check_reader(self, choice: ReaderChoice) -> None:
        """Raise `InvalidInput` for a reader that does not read the database, and `MachineNotReady`
        where it is not installed."""
        facts = self.facts
        if facts.by_driver and choice == "DIRECT":
            raise InvalidInput(
                f"`spark: {{reader: DIRECT}}`: {self.only_spark(choice)}",
                hint="leave `spark.reader` out",
            )
        if not facts.by_driver and facts.direct is None and choice == "JVM":
            raise InvalidInput(
                f"{facts.title} cannot be read with `spark: {{reader: JVM}}`",
                hint="leave `spark.reader` out",
            )
        if choice == "DIRECT" and facts.direct and not _is_installed(facts.direct):
            raise MachineNotReady(
                f"`spark: {{reader: DIRECT}}` reads {facts.title} with the package "
                f"`{facts.direct.package}`",
                hint=f"install it with `pip install 'lakeload[{facts.direct.extra}]'`",
            )

    def check_driver(  # noqa: B027
        self, read: JdbcInput
    ) -> None:
        """Raise `InvalidInput` where the user's jars do not have the driver."""

    def grants(
        self, read: JdbcInput, user: str, named: Sequence[JdbcInput], whole: Sequence[str]
    ) -> Grants:
        """Return what makes a user who reads the tables `named` and all of the schemas `whole`. Of
        engines whose facts have a name for it."""
        raise NotImplementedError

    def catalog(self) -> Catalog:
        """Return what the command line asks. Not of engines that are read `by_driver`."""
        raise NotImplementedError

    def xmin_window(
        self,
        connection: Any,
        relation: Any,
        table: TableSpec,
        options: RunOptions,
        bookmark: Bookmark,
        fetch: Fetch,
    ) -> RowsWindow:
        """Return the rows that are new by their transaction ids, as nobody reads them now. Of
        engines with `has_xmin`."""
        raise NotImplementedError

    @abstractmethod
    def connect(self, spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
        """Return what makes the source of a table, in the job. The tables of a run share
        connections, and whatever else they have in common."""

    def failure(self, doing: str, state: str | None, text: str) -> LoadFailed:
        """Return the failure of a statement, by its SQLSTATE, in what Java reports of it."""
        return failure(doing, state, text)


def host_of(read: JdbcInput) -> str:
    """Return the host as a URL has it."""
    return f"[{read.host}]" if ":" in read.host else read.host


def _is_installed(reader: DirectReader) -> bool:
    return importlib.util.find_spec(reader.module) is not None
