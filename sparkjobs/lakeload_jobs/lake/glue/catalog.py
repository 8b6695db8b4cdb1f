"""GlueCatalog: tables of one destination in AWS Glue (DESIGN section 5, step 6; docs/glue.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from lakeload_jobs.contract.spec import DestinationSpec, PartitionStrategy
from lakeload_jobs.lake.aws import AwsError, AwsSession
from lakeload_jobs.lake.glue.calls import GlueCalls
from lakeload_jobs.lake.glue.partitions import partitions_in, register
from lakeload_jobs.lake.glue.projection import projection_parameters
from lakeload_jobs.lake.glue.tables import (
    CREATED_BY,
    WantedTable,
    check_database,
    check_table,
    columns_of,
    glue_columns,
    same_location,
    table_input,
    united,
)
from lakeload_jobs.lake.objects import Objects
from lakeload_jobs.lake.records import Column, GlueTarget, LoadRecord
from lakeload_jobs.lake.waits import Waits
from lakeload_jobs.rules.layout import TableLocation

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import DatabaseTypeDef, TableTypeDef

_RACED = {
    "ConcurrentModificationException",
    "AlreadyExistsException",
    "EntityNotFoundException",
    "ResourceNotReadyException",
    "OperationTimeoutException",
}
"""Somebody else was faster, or Glue is busy with the table: look again and go on from there."""

_RACE_SECONDS = 60.0
_LOST_ANSWERS = 2


@dataclass(frozen=True)
class CatalogChange:
    """What a load would change in Glue, as far as its columns are known."""

    database: str
    table: str
    creates_database: bool
    creates_table: bool
    adds_columns: tuple[str, ...]


@dataclass(frozen=True)
class _Seen:
    """What `check` found: the table, or else its database."""

    table: TableTypeDef | None
    database: DatabaseTypeDef | None


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
        self._seen: dict[tuple[str, str], _Seen] = {}

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
        for target in {record.glue for record in records} if columns else ():
            if target is None:
                continue
            own = [record for record in records if record.glue == target]
            place = own[0].target
            location = TableLocation(place.prefix, place.schema, place.table)
            wanted = self._wanted(
                target,
                location,
                own[0].partition_strategy,
                columns,
                first=min(record.partition for record in own),
                created_by=own[0].pipeline,
            )
            self._apply(wanted, location, {record.partition for record in own if record.files})

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

    def _look(self, wanted: WantedTable) -> _Seen:
        key = (wanted.database, wanted.name)
        with self._lock:
            seen = self._seen.get(key)
        if seen is None:
            table = self._calls.get_table(*key)
            database = self._calls.get_database(wanted.database) if table is None else None
            seen = _Seen(table, database)
            with self._lock:
                self._seen[key] = seen
        return seen

    def _apply(self, wanted: WantedTable, location: TableLocation, partitions: set[str]) -> None:
        """Make the table and register partitions, again from a fresh look when that was overtaken.

        A first load's check has just found no table: then CreateTable itself is the look.
        """
        with self._lock:
            seen = self._seen.pop((wanted.database, wanted.name), None)
        missing = seen if seen is not None and seen.table is None else None
        waits, lost = self._objects.waits, 0
        for _ in waits.attempts(min(waits.answer, _RACE_SECONDS)):
            try:
                return self._bring(wanted, location, partitions, missing)
            except AwsError as error:
                lost += error.may_have_acted
                overtaken = error.code in _RACED or (error.may_have_acted and lost <= _LOST_ANSWERS)
                if not overtaken:
                    raise
                last, missing = error, None
        raise last

    def _bring(
        self,
        wanted: WantedTable,
        location: TableLocation,
        partitions: set[str],
        missing: _Seen | None,
    ) -> None:
        table = None if missing else self._calls.get_table(wanted.database, wanted.name)
        columns = wanted.columns
        if table is None:
            # Made for the first time, or dropped by somebody: then all files have to show again.
            keys = (entry.key for entry in self._objects.list(location.data_path))
            partitions = partitions | partitions_in(keys, location.data_path, wanted.strategy)
            self._create(wanted, missing, min(partitions, default=None))
        else:
            check_table(table, wanted)
            changed = united(table, wanted)
            columns = columns_of(changed or table)
            if changed is not None:
                version = table.get("VersionId")
                self._calls.update_table(wanted.database, changed, version)
        if wanted.partition_key is not None and not wanted.projection:
            values = sorted(partitions)
            register(self._calls, wanted, columns, values, look_first=table is not None)

    def _create(self, wanted: WantedTable, missing: _Seen | None, first: str | None) -> None:
        database = missing.database if missing else self._calls.get_database(wanted.database)
        if database is not None:
            check_database(database, wanted)
        else:
            place = wanted.database_location
            self._calls.create_database({"Name": wanted.database, "LocationUri": place})
        if wanted.projection and first is not None:
            earliest = projection_parameters(wanted.strategy, wanted.location, first)
            wanted = replace(wanted, projection=earliest)
        self._calls.create_table(wanted.database, table_input(wanted))
