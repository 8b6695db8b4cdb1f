"""Looks at the demo's Iceberg tables as a reader would: snapshots, and rows at any of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakeload.demo.lake import Answer, answer_of
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_JOB, Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

    from lakeload_jobs.formats.iceberg.catalogs.catalog import OpenTable


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
class Tables:
    """The tables of one namespace of Glue, read with pyiceberg."""

    destination: DestinationSpec
    session: AwsSession
    namespace: str
    _opened: dict[str, OpenTable] = field(default_factory=dict)

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
