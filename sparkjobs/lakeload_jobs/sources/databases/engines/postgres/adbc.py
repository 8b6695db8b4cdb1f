"""Rows of PostgreSQL as Arrow batches, read inside the tasks by ADBC (COPY in binary format)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed, Refused
from lakeload_jobs.contract.spec import JdbcInput, OnBadValue
from lakeload_jobs.rows.arrow import Column, Kind, pc
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import BadValuesFound
from lakeload_jobs.sources.batch_sizes import BATCH_BYTES, bounded
from lakeload_jobs.sources.databases.columns import SelectedColumn
from lakeload_jobs.sources.databases.engines.failures import LOST_HINT
from lakeload_jobs.sources.databases.engines.postgres.connection import conninfo, session_settings
from lakeload_jobs.sources.databases.engines.postgres.failures import (
    failure,
    is_lost,
    safe_text,
)
from lakeload_jobs.sources.databases.engines.postgres.snapshot import (
    PostgresPart,
    PostgresRelation,
    select_sql,
)
from lakeload_jobs.sources.databases.engines.postgres.sql import literal, quoted
from lakeload_jobs.sources.databases.identity import TaskIdentity
from lakeload_jobs.sources.type_names import text_type
from lakeload_jobs.storage.backoff import pause

_CONNECTIONS, _PAUSE_SECONDS = 4, 0.5
"""How many times a part is read before a lost connection fails the load."""
_BY_PAGE = (
    *("synchronize_seqscans = off", "max_parallel_workers_per_gather = 0"),
    *("enable_indexscan = off", "enable_indexonlyscan = off", "enable_bitmapscan = off"),
    *("enable_seqscan = on", "enable_tidscan = on"),
)
"""With these the rows of a table always come in the order of its pages."""


@dataclass(frozen=True)
class ReadPart:
    """Reads parts of one table in an exported snapshot; it travels to the tasks.

    With `on_bad_value` FAIL a bad value raises `BadValuesFound`; else it is null, and counted in
    `BAD_VALUES_HELPER`.
    """

    read: JdbcInput
    identity: TaskIdentity
    relation: PostgresRelation
    snapshot: str
    selected: tuple[SelectedColumn, ...]
    on_bad_value: OnBadValue

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches, helpers included."""
        fields: list[Any] = [(column.name, text_type(column.type)) for column in self.selected]
        if self._counts_bad_values:
            fields.append((BAD_VALUES_HELPER, pa.int64()))
        return pa.schema(fields)

    def __call__(self, part: PostgresPart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part. Raises `LakeloadError`, also where they are not as many as
        were counted."""
        if not part.rows:
            return
        with _errors(f"reading `{self.relation.shown}`"):
            yield from self.converted(part, self._all_batches(part))

    def converted(
        self, part: PostgresPart, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one part in the types of `schema`. Raises `LakeloadError`, also
        where their rows are not as many as were counted."""
        name = self.relation.shown
        schema, rows = self.schema, 0
        for batch in batches:
            rows += batch.num_rows
            if rows > part.rows:
                break
            yield from bounded(self._converted(batch, schema), name, self._bytes_of)
        if rows != part.rows:
            raise LoadFailed(
                f"reading `{name}`: {part.rows:,} rows were counted in the snapshot, and "
                f"{'more' if rows > part.rows else f'{rows:,}'} were read",
                hint=LOST_HINT,
                retryable=True,
            )

    def _bytes_of(self, name: str) -> str:
        """Return a column as `octet_length` takes it: no `json`, nor most other types."""
        binary = pa.types.is_binary(self.schema.field(name).type)
        return quoted(name) if binary else f"{quoted(name)}::text"

    @property
    def _counts_bad_values(self) -> bool:
        return self.on_bad_value == "NULL" and any(column.bad for column in self.selected)

    def _all_batches(self, part: PostgresPart) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a part. Where the connection is lost, go on in another one, which
        begins with the rows that are done: those of a table come in the order of its pages."""
        import adbc_driver_manager as manager

        done = 0
        for left in reversed(range(_CONNECTIONS)):
            rows = 0
            try:
                for batch in self._batches(part):
                    before, rows = rows, rows + batch.num_rows
                    if rows > done:
                        yield batch.slice(max(0, done - before))
                        done = rows
            except manager.Error as error:
                if not left or not part.by_page or not is_lost(error.sqlstate):
                    raise
                pause(_CONNECTIONS - left, first=_PAUSE_SECONDS)
            except Refused as error:
                if left == _CONNECTIONS - 1:
                    raise
                raise LoadFailed(error.message, hint=LOST_HINT, retryable=True) from None
            else:
                return

    def _batches(self, part: PostgresPart) -> Iterator[pa.RecordBatch]:
        from adbc_driver_manager._reader import AdbcRecordBatchReader

        with closing(self._connect()) as connection:
            _run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._import_snapshot(connection)
            # Here: a pool may give the transaction another session.
            _run(connection, session_settings(self.read))
            if part.by_page:
                for setting in _BY_PAGE:
                    _run(connection, f"SET LOCAL {setting}")
            with connection.cursor() as cursor:
                size = str(BATCH_BYTES)
                cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": size})
                cursor.execute(select_sql(self.relation, self.selected, part))
                # Arrow's own reader would lose the SQLSTATE of an error in the middle.
                handle = cursor.fetch_arrow()
                with closing(AdbcRecordBatchReader._import_from_c(handle.address)) as batches:
                    yield from batches

    def _import_snapshot(self, connection: Any) -> None:
        import adbc_driver_manager as manager

        try:
            _run(connection, f"SET TRANSACTION SNAPSHOT {literal(self.snapshot)}")
        except manager.Error as error:
            if is_lost(error.sqlstate):
                raise
            raise LoadFailed(
                f"reading `{self.relation.shown}`: the connection that held the snapshot has ended",
                hint=LOST_HINT,
                retryable=True,
            ) from None

    def _connect(self) -> Any:
        import adbc_driver_postgresql.dbapi as adbc

        password = self.identity.password(self.read)
        try:
            connection = adbc.connect(conninfo(self.read, password), autocommit=True)
        except adbc.Error as error:
            place = f"{self.read.host}:{self.read.port}"
            said = safe_text(str(error), password)
            raise Refused(
                f"connecting to PostgreSQL at {place} failed: {said}",
                hint="check that every machine of the cluster reaches the server, and that it "
                "takes as many connections as `max_connections`",
                retryable=True,
            ) from None
        return connection

    def _converted(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        columns: list[Any] = [
            _as_kind(_plain(batch.column(place)), column, schema.field(place).type)
            for place, column in enumerate(self.selected)
        ]
        if batch.num_columns > len(columns):
            bad = batch.column(len(columns))
            if self.on_bad_value == "FAIL" and pc.max(bad).as_py():
                raise BadValuesFound("some values cannot be loaded")
            if self._counts_bad_values:
                columns.append(bad.cast(pa.int64()))
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(column: Any) -> Column:
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _as_kind(column: Column, selected: SelectedColumn, kind: Kind) -> Column:
    if selected.carried == "TEXT":
        return column.cast(kind)
    if column.type != kind:
        raise LoadFailed(
            f"column `{selected.name}` was read as `{column.type}`, and `{kind}` was expected",
            hint="run again: the type of the column has changed",
            retryable=True,
        )
    return column


def _run(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        cursor.fetchall()


@contextmanager
def _errors(doing: str) -> Iterator[None]:
    """Raise errors of the driver as `LoadFailed`, by their SQLSTATE."""
    import adbc_driver_manager as manager

    try:
        with warnings.catch_warnings():
            # ADBC warns of connections that it closes itself.
            warnings.simplefilter("ignore")
            yield
    except LakeloadError:
        raise
    except manager.Error as error:
        raise failure(doing, error.sqlstate, str(error)) from None
