"""AWS Glue as the catalog of a Parquet table: checks, conflicts, columns and partitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.glue_calls import MAX_BATCH, GlueCalls, PartitionProblem, is_iceberg
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.plan import CatalogPlan
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, DestinationSpec, PartitionStrategy
from lakeload_jobs.core.comments import NO_COMMENTS, Comments
from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import PARTITION_KEY
from lakeload_jobs.core.nested_types import first_difference
from lakeload_jobs.core.type_conflicts import OTHER_TABLE, types_setting
from lakeload_jobs.formats.parquet.glue.tables import (
    CREATED_BY,
    SERDE,
    STRATEGY,
    TABLE_TYPE,
    CatalogConflict,
    WantedTable,
    added_fields,
    columns_of,
    completed,
    describe_projection,
    glue_columns,
    grown_glue_type,
    is_cast_to,
    is_incomplete,
    outdated_partition,
    partition_input,
    plain_glue_type,
    projection_parameters,
    projects_partitions,
    same_location,
    table_input,
    united,
)
from lakeload_jobs.formats.parquet.log.records import Column, GlueTarget, LoadRecord
from lakeload_jobs.formats.parquet.log.roll_forward import NewColumn
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import Objects

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import DatabaseTypeDef, TableTypeDef


_FORMER = (
    "restore the former `bucket`, `prefix` and `glue_database_prefix`, or load into another "
    "`namespace`"
)
_DROP = "drop the table from Glue (the files stay): the next load recreates it"


def other_location(what: str, there: str, ours: str, hint: str) -> CatalogConflict:
    """A database, table or partition that lies elsewhere."""
    return CatalogConflict(
        f"{what} is located at `{there}`, but this destination places it at `{ours}`", hint=hint
    )


def not_a_parquet_table(table: str, kind: str) -> CatalogConflict:
    """A view, an Iceberg table, a table of another file format."""
    return CatalogConflict(
        f"Glue's `{table}` is {kind}, but this destination writes an external Parquet table",
        hint="drop or rename it in Glue, or give the table another `name` in the pipeline",
    )


def other_keys(
    wanted: WantedTable, theirs: str, ours: str, strategy: str | None
) -> CatalogConflict:
    """A table that is partitioned by something else, which `strategy` would do too."""
    return CatalogConflict(
        f"Glue's `{wanted.full_name}` is partitioned by {theirs} and this destination's table by "
        f"{ours}",
        hint=_of_glue(wanted, strategy and f"set `partition_strategy: {strategy}`"),
    )


def other_projection(
    wanted: WantedTable, theirs: str, ours: str, parameters: Mapping[str, str]
) -> CatalogConflict:
    """A table whose partitions Athena finds in another way, as its parameters have it."""
    setting = None
    if (projects := projects_partitions(parameters)) is not bool(wanted.projection):
        setting = f"set `partition_projection: {str(projects).lower()}`"
    elif (strategy := parameters.get(STRATEGY, wanted.strategy)) != wanted.strategy:
        setting = f"set `partition_strategy: {strategy}`"
    return CatalogConflict(
        f"Glue's `{wanted.full_name}` has {theirs} and this destination's table {ours}",
        hint=_of_glue(wanted, setting),
    )


def other_strategy(wanted: WantedTable, theirs: str) -> CatalogConflict:
    """A table whose folders are cut otherwise: Athena would read an hour again with its day."""
    return CatalogConflict(
        f"Glue's `{wanted.full_name}` was created with `partition_strategy: {theirs}`, but the "
        f"destination has `{wanted.strategy}`",
        hint=_of_glue(wanted, f"set `partition_strategy: {theirs}`"),
    )


def other_types(wanted: WantedTable, pairs: Sequence[tuple[str, str, str]]) -> CatalogConflict:
    """Columns of two types: (name, Glue's, ours). Athena would fail on the files of one of them."""
    shown = ", ".join(
        _type_clause(name, theirs, ours, loaded=name not in wanted.new_columns)
        for name, theirs, ours in pairs
    )
    return CatalogConflict(
        f"columns of Glue's `{wanted.full_name}` have other types, so Athena could not read the "
        f"table (HIVE_BAD_DATA, HIVE_PARTITION_SCHEMA_MISMATCH): {shown}",
        hint=_types_hint(wanted, pairs),
    )


def _type_clause(column: str, theirs: str, ours: str, *, loaded: bool) -> str:
    """Name the column, or the field in it, that has two types."""
    path, before, now = first_difference(plain_glue_type(theirs), plain_glue_type(ours))
    where = "the files of this table" if loaded else "this load"
    return f"`{'.'.join((column, *path))}` is `{before}` in Glue and `{now}` in {where}"


def _types_hint(wanted: WantedTable, pairs: Sequence[tuple[str, str, str]]) -> str:
    """Files that are there keep their types, so Glue has to have those again. A column that is new
    may get Glue's type, where a cast makes it."""
    if any(name not in wanted.new_columns for name, _, _ in pairs):
        return f"give the column its type back in Glue, or {_DROP}"
    own = [f"`{name}`" for name, _, _ in pairs if name in TRACKING_COLUMNS]
    if own:
        return f"leave {', '.join(own)} out of `tracking_columns`, or {OTHER_TABLE}"
    theirs = {wanted.new_columns[name]: plain_glue_type(kind) for name, kind, _ in pairs}
    ways = [OTHER_TABLE]
    if all(is_cast_to(kind) for kind in theirs.values()):
        ways.insert(0, f"set `{types_setting(theirs)}`, the type in Glue")
    return ", or ".join(ways)


def _of_glue(wanted: WantedTable, setting: str | None) -> str:
    """Return what to do about a table that Glue has otherwise than this destination: files that
    are there are as the destination has it, so the table is dropped; else a setting will do."""
    return _DROP if setting is None or wanted.has_files else f"{setting}, or {_DROP}"


def check_database(database: Mapping[str, Any], wanted: WantedTable) -> None:
    """Raise `CatalogConflict` when the database of a table to be made lies elsewhere.

    One without a location is fine: every table has its own.
    """
    ours = wanted.database_location
    there = database.get("LocationUri") or ""
    if there and not same_location(there, ours):
        raise other_location(f"Glue's database `{wanted.database}`", there, ours, _FORMER)


def check_table(table: TableTypeDef, wanted: WantedTable) -> None:
    """Raise `CatalogConflict` unless the table in Glue is the one this load would make.

    What it is decides, not who made it: the same table made by hand, a crawler or another
    pipeline will do.
    """
    if kind := _other_kind(table):
        raise not_a_parquet_table(wanted.full_name, kind)
    there = table.get("StorageDescriptor", {}).get("Location", "")
    if not same_location(there, wanted.location):
        what = f"Glue's table `{wanted.full_name}`"
        hint = _DROP if wanted.has_files else _FORMER
        raise other_location(what, there, wanted.location, hint)
    parameters = table.get("Parameters", {})
    keys = [(key["Name"].lower(), key.get("Type", "")) for key in table.get("PartitionKeys", [])]
    ours = [(wanted.partition_key, "string")] if wanted.partition_key else []
    if keys != ours:
        raise other_keys(wanted, _in_words(keys), _in_words(ours), _strategy_of(keys, parameters))
    found, wish = describe_projection(parameters), describe_projection(wanted.projection)
    if wanted.partition_key and found != wish:
        raise other_projection(wanted, found, wish, parameters)
    strategy = parameters.get(STRATEGY, wanted.strategy)
    if wanted.partition_key and strategy != wanted.strategy:
        raise other_strategy(wanted, strategy)
    _check_types(table, wanted)


def _strategy_of(keys: Sequence[tuple[str, str]], parameters: Mapping[str, str]) -> str | None:
    """Return the `partition_strategy` of a table of lakeload's; None for the keys of others."""
    if keys == [(PARTITION_KEY, "string")]:
        return parameters.get(STRATEGY)
    return None if keys else "NONE"


def _other_kind(table: TableTypeDef) -> str | None:
    """Say what a table is when it is no external Parquet table."""
    parameters = table.get("Parameters", {})
    if table.get("TargetTable"):
        return "a link to a table elsewhere"
    if is_iceberg(parameters):
        return "an Iceberg table"
    if (provider := parameters.get("spark.sql.sources.provider", "parquet")) != "parquet":
        return f"a table of `{provider}`"
    if (kind := table.get("TableType") or "no table type") != TABLE_TYPE:
        return f"a `{kind}`"
    serde = table.get("StorageDescriptor", {}).get("SerdeInfo", {}).get("SerializationLibrary", "")
    if serde != SERDE:
        return f"a table of the SerDe `{serde}`"
    return None


def _check_types(table: TableTypeDef, wanted: WantedTable) -> None:
    theirs = dict(columns_of(table))
    pairs = [
        (name, theirs[name], kind)
        for name, kind in wanted.columns
        if name in theirs and grown_glue_type(theirs[name], kind) is None
    ]
    if pairs:
        raise other_types(wanted, pairs)


def _in_words(keys: Sequence[tuple[str | None, str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in keys) or "nothing"


Columns: TypeAlias = Sequence[tuple[str, str]]
"""Names and Glue's types."""

_PASSING = {"InternalServiceException", "ThrottlingException", "OperationTimeoutException"}
_PASSES = 3
_ALREADY = "AlreadyExistsException"
_VALUES: dict[PartitionStrategy, re.Pattern[str]] = {
    "DAY": re.compile(r"\d{4}/\d\d/\d\d"),
    "HOUR": re.compile(r"\d{4}/\d\d/\d\d/\d\d"),
    "SYNC_ID": re.compile(r"[A-Za-z0-9-]{1,64}"),
}


def partitions_in(keys: Iterable[str], data_path: str, strategy: PartitionStrategy) -> set[str]:
    """Return the partitions whose data files are among `keys`; folders of other shapes are none."""
    pattern = _VALUES.get(strategy)
    if pattern is None:
        return set()
    folders = {
        key[len(data_path) :].rpartition("/")[0] for key in keys if key.endswith(FILE_SUFFIX)
    }
    return {folder for folder in folders if pattern.fullmatch(folder)}


def _not_registered(wanted: WantedTable, problems: Sequence[PartitionProblem]) -> LoadFailed:
    shown = ", ".join(f"`{p.value}` ({p.code}: {p.message})" for p in problems[:3])
    more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
    return LoadFailed(
        f"Glue did not register or change partitions of its table `{wanted.full_name}`: "
        f"{shown}{more}",
        hint="the next sync or `lakeload recover` registers them again",
        retryable=all(problem.code in _PASSING for problem in problems),
    )


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
        """Create or update the table in Glue and add its partitions. Read Glue again and retry when
        another process was faster or a response was lost, as long as a response may take.

        `seen` is what the check of a first load has read: where it found no table, CreateTable
        itself shows whether there is one by now. `nothing_else`: no other file lies at the table's
        path. Raises `CatalogConflict`, `LoadFailed`, and the last `AwsError`.
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
            self._register(columns, others, look_first=table is not None)
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

    def _register(self, columns: Columns, others: Collection[str], *, look_first: bool) -> None:
        """Register the partitions that Glue does not have. `columns` are those of its table.

        With `look_first` a single one is asked for before: most loads add to a partition that is
        there. One of ours that is there has to lie at our location; `others` were found in the
        bucket and may be many. Raises `CatalogConflict` for one that lies elsewhere, `LoadFailed`,
        `AwsError`.
        """
        values = sorted({*self.partitions, *others})
        if look_first and len(values) == 1 and self._is_registered(columns, values[0]):
            return
        rest = iter(values)
        while batch := list(islice(rest, MAX_BATCH)):
            self._register_batch(columns, batch)

    def _register_batch(self, columns: Columns, values: Sequence[str]) -> None:
        """One BatchCreatePartition, and another for what Glue could not do just then."""
        wanted = self.wanted
        for _ in range(_PASSES):
            inputs = [
                partition_input(columns, value, wanted.partition_location(value))
                for value in values
            ]
            problems = self.calls.create_partitions(wanted.database, wanted.name, inputs)
            failed = list(self._failed(columns, problems))
            if not failed:
                return
            if any(problem.code not in _PASSING for problem in failed):
                break
            values = [problem.value for problem in failed]
        raise _not_registered(wanted, failed)

    def _failed(
        self, columns: Columns, problems: Iterable[PartitionProblem]
    ) -> Iterator[PartitionProblem]:
        """Yield the problems that are some: a partition that is there at its place is none."""
        for problem in problems:
            if problem.code == _ALREADY and problem.value not in self.partitions:
                continue
            if problem.code != _ALREADY or not self._is_registered(columns, problem.value):
                yield problem

    def _is_registered(self, columns: Columns, value: str) -> bool:
        """Return whether Glue has the partition, with the types that the columns of its table have
        now. Raises `CatalogConflict` when it lies elsewhere, `AwsError`."""
        wanted = self.wanted
        partition = self.calls.get_partition(wanted.database, wanted.name, value)
        if partition is None:
            return False
        there = partition.get("StorageDescriptor", {}).get("Location", "")
        ours = wanted.partition_location(value)
        if not same_location(there, ours):
            what = f"the partition `{value}` of Glue's table `{wanted.full_name}`"
            drop = "drop the partition from Glue (the files stay)"
            raise other_location(what, there, ours, drop)
        if (changed := outdated_partition(partition, columns)) is not None:
            problems = self.calls.update_partition(wanted.database, wanted.name, value, changed)
            if problems:
                raise _not_registered(wanted, problems)
        return True

    def _complete(self) -> None:
        """Take the mark off the table: every partition that was found is registered."""
        wanted = self.wanted
        table = self.calls.get_table(wanted.database, wanted.name)
        if table is not None and is_incomplete(table):
            self.calls.update_table(wanted.database, completed(table), table.get("VersionId"))


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
        self._comments: dict[tuple[str, str], Comments] = {}

    def check(self, target: GlueTarget, columns: Sequence[Column]) -> None:
        """See `Catalog.check`. A second call for a table compares without asking Glue again."""
        self.foresee(target, columns)

    def foresee(self, target: GlueTarget, columns: Sequence[Column]) -> CatalogPlan:
        """Check, and return what would be created and added. Only reads."""
        destination = self._destination
        location = TableLocation(destination.prefix, target.database, target.table)
        strategy = destination.parquet.partition_strategy
        wanted = self._wanted(target, location, strategy, columns)
        seen = self._look(wanted)
        if seen.table is None:
            if seen.database is not None:
                check_database(seen.database, wanted)
            return CatalogPlan(target.database, target.table, seen.database is None, True, ())
        check_table(seen.table, wanted)
        known = {name for name, _ in columns_of(seen.table)}
        added = [name for name, _ in wanted.columns if name not in known]
        names = (*added, *added_fields(seen.table, wanted))
        return CatalogPlan(target.database, target.table, False, False, names)

    def describe(self, target: GlueTarget, comments: Comments) -> None:
        """See `Catalog.describe`."""
        # Glue's names are in lower case.
        named = comments.renamed({name: name.lower() for name in comments.columns})
        with self._lock:
            self._comments[target.database, target.table] = named

    def bring_into_step(self, records: Sequence[LoadRecord], columns: Sequence[Column]) -> None:
        """See `Catalog.bring_into_step`."""
        # Without a column there has never been a row, and Athena takes no table without columns.
        oldest = records[0]
        if oldest.glue is None or not columns:
            return
        location = oldest.location
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
            comments=self._comments.get((target.database, target.table), NO_COMMENTS),
            new_columns={c.name.lower(): c.source for c in columns if isinstance(c, NewColumn)},
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
