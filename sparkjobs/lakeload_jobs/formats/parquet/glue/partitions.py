"""Partitions of one Glue table: registered with their locations, or found again in the bucket."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from lakeload_jobs.aws.glue_calls import MAX_BATCH, GlueCalls, PartitionProblem
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.formats.parquet.glue import conflicts
from lakeload_jobs.formats.parquet.glue.tables import WantedTable, partition_input, same_location

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


def register(
    calls: GlueCalls,
    wanted: WantedTable,
    columns: Sequence[tuple[str, str]],
    own: Collection[str],
    others: Collection[str] = (),
    *,
    look_first: bool,
) -> None:
    """Register the partitions that Glue does not have. `columns` are those of its table.

    With `look_first` a single one is asked for before: most loads add to a partition that is
    there. One of `own` that is there has to lie at our location; `others` were found in the bucket
    and may be many. Raises `CatalogConflict` for one that lies elsewhere, `LoadFailed`, `AwsError`.
    """
    values = sorted({*own, *others})
    if look_first and len(values) == 1 and _is_registered(calls, wanted, values[0]):
        return
    rest = iter(values)
    while batch := list(islice(rest, MAX_BATCH)):
        _register_batch(calls, wanted, columns, batch, own)


def _register_batch(
    calls: GlueCalls,
    wanted: WantedTable,
    columns: Sequence[tuple[str, str]],
    values: Sequence[str],
    own: Collection[str],
) -> None:
    """One BatchCreatePartition, and another for what Glue could not do just then."""
    for _ in range(_PASSES):
        inputs = [
            partition_input(columns, value, wanted.partition_location(value)) for value in values
        ]
        problems = calls.create_partitions(wanted.database, wanted.name, inputs)
        failed = list(_failed(calls, wanted, problems, own))
        if not failed:
            return
        if any(problem.code not in _PASSING for problem in failed):
            break
        values = [problem.value for problem in failed]
    raise _not_registered(wanted, failed)


def _failed(
    calls: GlueCalls,
    wanted: WantedTable,
    problems: Iterable[PartitionProblem],
    own: Collection[str],
) -> Iterator[PartitionProblem]:
    """Yield the problems that are some: a partition that is there at its place is none."""
    for problem in problems:
        if problem.code == _ALREADY and problem.value not in own:
            continue
        if problem.code != _ALREADY or not _is_registered(calls, wanted, problem.value):
            yield problem


def _is_registered(calls: GlueCalls, wanted: WantedTable, value: str) -> bool:
    """Return whether Glue has the partition; raise `CatalogConflict` when it lies elsewhere."""
    partition = calls.get_partition(wanted.database, wanted.name, value)
    if partition is None:
        return False
    there = partition.get("StorageDescriptor", {}).get("Location", "")
    ours = wanted.partition_location(value)
    if not same_location(there, ours):
        what = f"the partition `{value}` of Glue's table `{wanted.full_name}`"
        raise conflicts.other_location(what, there, ours)
    return True


def _not_registered(wanted: WantedTable, problems: Sequence[PartitionProblem]) -> LoadFailed:
    shown = ", ".join(f"`{p.value}` ({p.code}: {p.message})" for p in problems[:3])
    more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
    return LoadFailed(
        f"Glue did not register partitions of its table `{wanted.full_name}`: {shown}{more}",
        hint="the next sync or `lakeload recover` registers them again",
        retryable=all(problem.code in _PASSING for problem in problems),
    )
