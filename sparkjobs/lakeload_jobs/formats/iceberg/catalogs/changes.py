"""Commits of branches, partitions and properties that go. Each is sent once, to the table as it was
read, and raises `CommitRejected` where another one came first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TypeVar

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.formats.iceberg.catalogs.errors import NO_STATE, CatalogError
from lakeload_jobs.formats.iceberg.catalogs.reading import unsupported
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore, now_ms
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown, Unsupported
from lakeload_jobs.formats.iceberg.commits.manifests import MetadataFiles
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    add_snapshot,
    assert_ref,
    move_branch,
    ref,
    remove_properties,
    remove_ref,
    snapshot_of,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import new_snapshot_id, without_partition
from lakeload_jobs.storage.backoff import pause

COMMIT_TRIES = 60
"""Tries of a commit that others' come before, each on fresh metadata."""

_T = TypeVar("_T")


@contextmanager
def catalog_errors(doing: str) -> Iterator[None]:
    """Translate ends of a commit into `CatalogError`, whose message begins with `doing`."""
    try:
        yield
    except CommitRejected as error:
        if error.busy and isinstance(error.__cause__, LakeloadError):
            raise error.__cause__ from None
        raise CatalogError(
            f"{doing}: another commit came first",
            code="CommitFailedException",
            status=HTTPStatus.CONFLICT,
            retryable=True,
        ) from error
    except CommitUnknown as error:
        if isinstance(error.__cause__, LakeloadError):
            raise error.__cause__ from None
        raise CatalogError(
            f"{doing}: commit state unknown", code=NO_STATE, unanswered=True
        ) from error
    except Unsupported as error:
        raise unsupported(doing, error) from error


def until_committed(
    once: Callable[[], _T], doing: str, conflict: type[LakeloadError] = LoadFailed
) -> _T:
    """Return what `once` returns, repeating what others' commits made fail. It reads the table anew
    each time, also for what an earlier try may have done.

    Raises `conflict` where another commit came first each time, else what the catalog said of the
    last try.
    """
    for tries in range(COMMIT_TRIES):
        try:
            return once()
        except (CommitRejected, CommitUnknown) as error:
            last = error
        pause(tries)
    overtaken = last.overtaken if isinstance(last, CommitUnknown) else not last.busy
    if not overtaken and isinstance(last.__cause__, LakeloadError):
        raise last.__cause__ from None
    raise conflict(
        f"{doing}: conflicts with other commits each time",
        hint="run it again when fewer loads run",
        retryable=True,
    ) from last


def commit(
    tables: TableStore,
    table: ReadTable,
    requirements: Sequence[Json],
    updates: Sequence[Json],
    is_in: Callable[[ReadTable], bool],
) -> ReadTable:
    """Send a commit; return the table as it is then. Where only a read can tell, `is_in` says by
    the table, read again, whether it is in. Raises `CommitUnknown` where that is still open."""
    try:
        return tables.commit(table, requirements, updates)
    except CommitUnknown as error:
        now = _read_after(error, tables, table)
        if now is not None and is_in(now):
            return now
        if error.overtaken:
            raise CommitRejected(str(error)) from error
        raise


def drop_branches(
    tables: TableStore, table: ReadTable, branches: Collection[str]
) -> tuple[str, ...]:
    """Drop those of the branches that are there, in one commit that asserts each; return them."""
    there = [branch for branch in branches if branch in table.metadata.get("refs", {})]
    if there:
        commit(
            tables,
            table,
            [assert_ref(branch, ref(table.metadata, branch)) for branch in there],
            [remove_ref(branch) for branch in there],
            lambda now: not any(one in now.metadata.get("refs", {}) for one in there),
        )
    return tuple(there)


def drop_table(tables: TableStore, table: ReadTable) -> None:
    """Drop a table and leave its files."""
    try:
        tables.drop(table)
    except CommitUnknown as error:
        if _read_after(error, tables, table) is not None:
            raise


def _read_after(unknown: CommitUnknown, tables: TableStore, table: ReadTable) -> ReadTable | None:
    """Return the table as it is after an unknown commit. Raises that where the read fails: why it
    does says nothing of the commit."""
    try:
        return tables.load(table.namespace, table.name)
    except (LakeloadError, Unsupported):
        raise unknown from unknown.__cause__


def settle_partition(
    tables: TableStore,
    files: MetadataFiles,
    table: ReadTable,
    partition: tuple[str, str] | None,
    *,
    summary: Mapping[str, str],
    forget: str | None,
) -> bool:
    """Remove a partition, given its column and value, and the property `forget`, in one commit;
    None leaves either. Return whether there was anything of it. `files` are those of the table."""
    metadata, number = table.metadata, new_snapshot_id()
    updates: list[Json] = []
    left = None
    if partition is not None:
        left = without_partition(files, metadata, partition, number, summary, now_ms=now_ms())
    if left is not None:
        updates += [add_snapshot(left), move_branch(metadata, MAIN, number)]
    if forget is not None and forget in table.properties:
        updates.append(remove_properties([forget]))

    def is_in(now: ReadTable) -> bool:
        if left is not None:
            return snapshot_of(now.metadata, number) is not None
        return forget not in now.properties

    if updates:
        commit(tables, table, [assert_ref(MAIN, ref(metadata, MAIN))], updates, is_in)
    return bool(updates)
