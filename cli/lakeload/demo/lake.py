"""Tables that the demo loaded, and the questions asked of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_JOB, Snapshot, lineage
from lakeload_jobs.storage.objects import ObjectEntry, Objects

if TYPE_CHECKING:
    import pyarrow as pa


_PART = re.compile(r"^-- (\w+)\n(.*?)\n$", re.MULTILINE | re.DOTALL)


def parts_of(name: str) -> dict[str, str]:
    """Return the parts of a file of SQL, each by its name."""
    return dict(_PART.findall((files(__package__) / name).read_text("utf-8")))


QUESTIONS = parts_of("questions.sql")
"""The queries of the demo, by name."""


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


def fetch_objects(objects: Objects, prefix: str, folder: Path) -> tuple[ObjectEntry, ...]:
    """Copy every object below `prefix` into `folder` under its key; return what was listed."""
    entries = tuple(objects.list(f"{prefix}/"))
    for entry in entries:
        path = folder / entry.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(objects.get(entry.key) or b"")
    return entries


class IcebergTables:
    """Tables of one namespace of Glue, read with pyiceberg. Raises `AwsError`, `CatalogError`."""

    def __init__(self, destination: DestinationSpec, session: AwsSession, namespace: str) -> None:
        # Here, because pyiceberg takes a second to import.
        from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog

        self._destination, self._session, self._namespace = destination, session, namespace
        self._catalog = open_catalog(destination, session)

    def rows(self, table: str, snapshot: int | None = None) -> pa.Table:
        """Return the rows of a table as it was at a snapshot; None is now."""
        from lakeload_jobs.formats.iceberg.catalogs.rows import read_rows

        opened = self._catalog.load_table(self._namespace, table)
        return read_rows(opened, self._destination, self._session, snapshot)

    def snapshots(self, table: str) -> list[SnapshotLine]:
        """Return the snapshots that jobs have published, oldest first: the empty one that a new
        table begins with is of none."""
        from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of

        facts = facts_of(self._catalog.load_table(self._namespace, table))
        found = [facts.snapshots[number] for number in reversed(lineage(facts, "main").ids)]
        return [
            SnapshotLine(
                table,
                snapshot=str(snapshot.id),
                time=f"{datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC):%H:%M:%S}",
                job=snapshot.summary[SUMMARY_JOB],
                operation=snapshot.summary["operation"],
                added=_count(snapshot, "added-records"),
                removed=_count(snapshot, "deleted-records", "added-position-deletes"),
            )
            for snapshot in found
            if SUMMARY_JOB in snapshot.summary
        ]


def _count(snapshot: Snapshot, *names: str) -> int:
    return sum(int(snapshot.summary.get(name, "0")) for name in names)
