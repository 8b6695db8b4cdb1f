"""GlueCatalog: tables of one destination in AWS Glue (DESIGN section 5, step 6; docs/glue.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.aws.glue_calls import GlueCalls
from lakeload_jobs.contract.spec import DestinationSpec, PartitionStrategy
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.glue.checks import check_database, check_table
from lakeload_jobs.formats.parquet.glue.projection import projection_parameters
from lakeload_jobs.formats.parquet.glue.sync import Seen, TableStep
from lakeload_jobs.formats.parquet.glue.tables import (
    CREATED_BY,
    WantedTable,
    columns_of,
    glue_columns,
    same_location,
)
from lakeload_jobs.formats.parquet.log.records import Column, GlueTarget, LoadRecord
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class CatalogChange:
    """What a load would change in Glue, as far as its columns are known."""

    database: str
    table: str
    creates_database: bool
    creates_table: bool
    adds_columns: tuple[str, ...]


class GlueCatalog:
    """The tables of one destination in Glue; a `Catalog`. Thread-safe.

    No client is made before a method is called. Every method may raise `AwsError`: Glue could not
    be asked, which says nothing about the table; and `CatalogConflict`: what it holds is not ours.
    """

    def __init__(
        self, session: AwsSession, destination: DestinationSpec, *, waits: Waits | None = None
    ) -> None:
        self._calls = GlueCalls(session, destination.region, destination.credentials.role_arn)
        self._objects = Objects(session, destination, waits=waits)
        self._destination = destination
        self._lock = Lock()
        self._seen: dict[tuple[str, str], Seen] = {}

    def check(self, target: GlueTarget, columns: Sequence[Column]) -> None:
        """See `Catalog.check`. A second call for a table compares without asking Glue again."""
        self.foresee(target, columns)

    def foresee(self, target: GlueTarget, columns: Sequence[Column]) -> CatalogChange:
        """Check, and return what would be created and added. Only reads."""
        destination = self._destination
        location = TableLocation(destination.prefix, target.database, target.table)
        strategy = destination.parquet.partition_strategy
        wanted = self._wanted(target, location, strategy, columns)
        seen = self._look(wanted)
        if seen.table is None:
            if seen.database is not None:
                check_database(seen.database, wanted)
            return CatalogChange(target.database, target.table, seen.database is None, True, ())
        check_table(seen.table, wanted)
        known = {name for name, _ in columns_of(seen.table)}
        added = tuple(name for name, _ in wanted.columns if name not in known)
        return CatalogChange(target.database, target.table, False, False, added)

    def bring_into_step(self, records: Sequence[LoadRecord], columns: Sequence[Column]) -> None:
        """See `Catalog.bring_into_step`."""
        # Without a column there has never been a row, and Athena takes no table without columns.
        oldest = records[0]
        if oldest.glue is None or not columns:
            return
        place = oldest.target
        location = TableLocation(place.prefix, place.schema, place.table)
        wanted = self._wanted(
            oldest.glue,
            location,
            oldest.partition_strategy,
            columns,
            first=min(record.partition for record in records),
            created_by=oldest.pipeline,
        )
        partitions = {record.partition for record in records if record.files}
        # Such a first job has seen that nothing lies at its table's path.
        alone = all(record.table_handling == "FAIL" for record in records)
        with self._lock:
            seen = self._seen.pop((wanted.database, wanted.name), None)
        TableStep(self._calls, self._objects, wanted, location, partitions).apply(
            seen, nothing_else=alone and seen is not None and seen.first_rows
        )

    def owns(self, target: GlueTarget, location: TableLocation) -> bool:
        """Return whether `drop_table` would delete a table: lakeload made it, at `location`."""
        table = self._calls.get_table(target.database, target.table)
        if table is None or CREATED_BY not in table.get("Parameters", {}):
            return False
        there = table.get("StorageDescriptor", {}).get("Location", "")
        return same_location(there, self._objects.url(location.data_path))

    def drop_table(self, target: GlueTarget, location: TableLocation) -> bool:
        """Delete the table if lakeload made it at `location`; return whether it did.

        Its partitions go with it. The database stays: it may hold tables of others.
        """
        if not self.owns(target, location):
            return False
        self._calls.delete_table(target.database, target.table)
        return True

    def _wanted(
        self,
        target: GlueTarget,
        location: TableLocation,
        strategy: PartitionStrategy,
        columns: Sequence[Column],
        *,
        first: str | None = None,
        created_by: str = "",
    ) -> WantedTable:
        url = self._objects.url(location.data_path)
        return WantedTable(
            database=target.database,
            name=target.table,
            location=url,
            columns=glue_columns(columns),
            partition_key=target.partition_key,
            strategy=strategy,
            created_by=created_by,
            projection=projection_parameters(strategy, url, first) if target.projection else {},
        )

    def _look(self, wanted: WantedTable) -> Seen:
        key = (wanted.database, wanted.name)
        with self._lock:
            seen = self._seen.get(key)
        if seen is None:
            table = self._calls.get_table(*key)
            database = self._calls.get_database(wanted.database) if table is None else None
            seen = Seen(table, database, first_rows=not wanted.columns)
            with self._lock:
                self._seen[key] = seen
        return seen
