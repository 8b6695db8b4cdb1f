"""Step 6 of DESIGN section 5 for one table of Glue: made or widened, partitions registered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakeload_jobs.aws import AwsError
from lakeload_jobs.aws.glue_calls import GlueCalls
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.glue.checks import check_database, check_table
from lakeload_jobs.formats.parquet.glue.partitions import partitions_in, register
from lakeload_jobs.formats.parquet.glue.projection import projection_parameters
from lakeload_jobs.formats.parquet.glue.tables import (
    WantedTable,
    columns_of,
    completed,
    is_incomplete,
    table_input,
    united,
)
from lakeload_jobs.storage.objects import Objects

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
_LOST_ANSWERS = 5


@dataclass(frozen=True)
class Seen:
    """What was found before the load: the table, or else its database."""

    table: TableTypeDef | None
    database: DatabaseTypeDef | None
    first_rows: bool
    """No job had brought a column yet, and so no row."""


@dataclass(frozen=True)
class TableStep:
    """One table as Glue should have it, and the partitions of the jobs that are brought in."""

    calls: GlueCalls
    objects: Objects
    wanted: WantedTable
    location: TableLocation
    partitions: set[str]

    def apply(self, seen: Seen | None, *, nothing_else: bool) -> None:
        """Do it, again from a fresh look when somebody else was faster or an answer was lost.

        A first load's check has just found no table: then CreateTable itself is the look.
        `nothing_else`: no other file lies at the table's path. Raises `CatalogConflict`,
        `LoadFailed`, `AwsError`.
        """
        missing = seen if seen is not None and seen.table is None else None
        waits, lost = self.objects.waits, 0
        for _ in waits.attempts(min(waits.answer, _RACE_SECONDS)):
            try:
                return self._once(missing, nothing_else=nothing_else and missing is not None)
            except AwsError as error:
                lost += error.may_have_acted
                overtaken = error.code in _RACED or (error.may_have_acted and lost <= _LOST_ANSWERS)
                if not overtaken:
                    raise
                last, missing = error, None
        raise last

    def _once(self, missing: Seen | None, *, nothing_else: bool) -> None:
        wanted = self.wanted
        table = None if missing else self.calls.get_table(wanted.database, wanted.name)
        others: set[str] = set()
        columns = wanted.columns
        if table is None:
            others = set() if nothing_else else self._other_partitions()
            self._create(missing, others)
        else:
            check_table(table, wanted)
            others = self._other_partitions() if is_incomplete(table) else others
            changed = united(table, wanted)
            columns = columns_of(changed or table)
            if changed is not None:
                self.calls.update_table(wanted.database, changed, table.get("VersionId"))
        if wanted.registers:
            register(
                self.calls,
                wanted,
                columns,
                self.partitions,
                others,
                look_first=table is not None,
            )
        if others and wanted.registers:
            self._complete()

    def _other_partitions(self) -> set[str]:
        """Return the partitions of files that lie there already: of a table that was dropped."""
        path = self.location.data_path
        keys = (entry.key for entry in self.objects.list(path))
        return partitions_in(keys, path, self.wanted.strategy) - self.partitions

    def _create(self, missing: Seen | None, others: set[str]) -> None:
        """Make the table, marked where more has to be registered than anybody would repair."""
        wanted = self.wanted
        database = missing.database if missing else self.calls.get_database(wanted.database)
        if database is not None:
            check_database(database, wanted)
        else:
            place = wanted.database_location
            self.calls.create_database({"Name": wanted.database, "LocationUri": place})
        if wanted.projection and others:
            first = min(self.partitions | others)
            earliest = projection_parameters(wanted.strategy, wanted.location, first)
            wanted = replace(wanted, projection=earliest)
        incomplete = bool(others) and wanted.registers
        self.calls.create_table(wanted.database, table_input(wanted, incomplete=incomplete))

    def _complete(self) -> None:
        """Take the mark off the table: every partition that was found is registered."""
        wanted = self.wanted
        table = self.calls.get_table(wanted.database, wanted.name)
        if table is not None and is_incomplete(table):
            self.calls.update_table(wanted.database, completed(table), table.get("VersionId"))
