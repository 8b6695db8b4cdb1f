"""Tables that the demo loaded, and questions asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_JOB, Snapshot
from lakeload_jobs.storage.objects import ObjectEntry, Objects

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from lakeload_jobs.formats.iceberg.catalogs.catalog import CatalogTable


@dataclass(frozen=True)
class Answer:
    """Columns and rows of a query, as text and numbers that can be shown or become JSON."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]


def fetch_objects(objects: Objects, prefix: str, folder: Path) -> tuple[ObjectEntry, ...]:
    """Copy every object below `prefix` into `folder` under its key; return what was listed."""
    entries = tuple(objects.list(f"{prefix}/"))
    for entry in entries:
        path = folder / entry.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(objects.get(entry.key) or b"")
    return entries


def query(schema_folder: Path, sql: str) -> Answer:
    """Run SQL in which each table's folder below `schema_folder` is a view of its files."""
    import duckdb  # only here: it takes longer to import than the rest of the command line

    with duckdb.connect() as connection:
        for table in sorted(path for path in schema_folder.iterdir() if path.is_dir()):
            files = str(table / "**" / f"*{FILE_SUFFIX}").replace("'", "''")
            # Views take no parameters; the table's name is one of our own samples.
            connection.execute(
                f'create view "{table.name}" as '  # noqa: S608
                f"select * from read_parquet('{files}', union_by_name = true)"
            )
        return answer_of(connection, sql)


def answer_of(connection: DuckDBPyConnection, sql: str) -> Answer:
    """Return what a connection answers, with times in UTC."""
    connection.execute("set timezone = 'UTC'")
    result = connection.execute(sql)
    columns = tuple(column[0] for column in result.description or ())
    rows = tuple(tuple(_plain(value) for value in row) for row in result.fetchall())
    return Answer(columns, rows)


def _plain(value: object) -> str | int | None:
    return value if value is None or isinstance(value, int) else str(value)


@dataclass(frozen=True)
class SnapshotLine:
    """One snapshot of one table, in words and numbers that can be shown or become JSON."""

    table: str
    snapshot: str
    time: str
    job: str
    operation: str
    added: int
    removed: int


@dataclass
class DemoTables:
    """The tables of one namespace of Glue, read with pyiceberg."""

    destination: DestinationSpec
    session: AwsSession
    namespace: str
    _opened: dict[str, CatalogTable] = field(default_factory=dict)

    def look(self, *names: str) -> tuple[SnapshotLine, ...]:
        """Read the tables anew and return the snapshots that jobs have published, oldest first.

        Raises `AwsError`, `CatalogError`.
        """
        # Here, because pyiceberg takes a second to import.
        from lakeload_jobs.formats.iceberg.catalogs.catalog import facts_of
        from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog

        catalog = open_catalog(self.destination, self.session)
        self._opened = {name: catalog.load_table(self.namespace, name) for name in names}
        return tuple(
            line
            for name, table in self._opened.items()
            for line in _lines(name, facts_of(table).snapshots.values())
        )

    def query(self, views: Mapping[str, tuple[str, int | None]], sql: str) -> Answer:
        """Run SQL in which each view is a table as it was at a snapshot; None is now.

        Raises `AwsError`, `CatalogError`.
        """
        import duckdb  # only here: it takes longer to import than the rest of the command line

        from lakeload_jobs.formats.iceberg.catalogs.catalog import read_rows

        def rows(name: str, snapshot: int | None) -> pa.Table:
            return read_rows(self._opened[name], self.destination, self.session, snapshot)

        with duckdb.connect() as connection:
            for view, (name, snapshot) in views.items():
                connection.register(view, rows(name, snapshot))
            return answer_of(connection, sql)


def _lines(name: str, snapshots: Iterable[Snapshot]) -> list[SnapshotLine]:
    """Return those of jobs: the empty one that a new table begins with is of none."""
    return [
        SnapshotLine(
            table=name,
            snapshot=str(snapshot.id),
            time=f"{datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC):%H:%M:%S}",
            job=snapshot.summary[SUMMARY_JOB],
            operation=snapshot.summary["operation"],
            added=_number(snapshot, "added-records"),
            removed=_number(snapshot, "deleted-records")
            + _number(snapshot, "added-position-deletes"),
        )
        for snapshot in sorted(snapshots, key=lambda one: one.timestamp_ms)
        if SUMMARY_JOB in snapshot.summary
    ]


def _number(snapshot: Snapshot, name: str) -> int:
    return int(snapshot.summary.get(name, "0"))


BEST_SELLERS = """\
select Artikel, Grosse as size, count(*) as orders, sum(Prix_) as revenue
from orders
group by all order by revenue desc limit 4"""

CITIES = """\
select address.city as city, count(*) as visits, max(seen) as last_seen
from visits where list_contains(tags, '☕')
group by all order by visits desc limit 3"""

ROWS_OF_EACH_JOB = """\
with loaded as (
  select 'orders' as "table", _supa_job_id, _supa_index from orders
  union all select 'visits', _supa_job_id, _supa_index from visits
  union all select 'payments', _supa_job_id, _supa_index from payments
)
select _supa_job_id as job, "table", count(*) as rows,
       max(_supa_index) as last_index
from loaded group by all order by all"""

ORDERS_OF_EACH_JOB = """\
select _supa_job_id as job, count(*) as orders, sum(prix_) as revenue,
       count(*) filter (notiz = 'changed on Tuesday') as changed,
       count(gutschein) as coupons
from orders group by all order by all"""

NOW_AND_MONDAY = """\
select 'now' as "as of", count(*) as orders,
       count(*) filter (notiz = 'changed on Tuesday') as changed
from orders
union all
select 'monday', count(*), count(*) filter (notiz = 'changed on Tuesday')
from orders_at_mondays_snapshot"""

PAYMENTS_OF_EACH_JOB = """\
select _supa_job_id as job, count(*) as rows, max(_supa_index) as last_index,
       typeof(any_value(amount)) as amount
from payments group by all order by all"""
