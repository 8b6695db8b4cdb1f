"""Data files that attempts completed and that no snapshot names, because they died before their
commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus

from lakeload_jobs.aws import AwsError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_files import (
    Removal,
    data_files,
    remove_files,
)
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.left_uploads import data_prefix
from lakeload_jobs.formats.iceberg.rules.branches import STAGING_PREFIX, left_by
from lakeload_jobs.formats.iceberg.rules.facts import keeps_files
from lakeload_jobs.storage.objects import ObjectEntry, Objects

_TRIES = 4
"""Somebody may expire snapshots while their manifests are read."""


def find_left_files(
    objects: Objects,
    bucket: str,
    read: Callable[[], ReadTable | None],
    files: LakeFiles,
    now: datetime,
    age: timedelta,
    dropped: Collection[str] = (),
    *,
    shared: bool = False,
) -> tuple[ObjectEntry, ...]:
    """Return the data files of tasks that no commit will name. `read` reads the table.

    A branch is made before its files, and files are added to it and published only while it is
    there (I7, I10): metadata that is read after the list and has neither the branch of a file, or
    has it among `dropped`, nor a snapshot with the file proves that no later metadata has. They are
    older than `age` and than every staging branch as well, and a name alone tells nothing, because
    the branch of a committed file is gone too.

    A table whose files may belong to others has none: `shared` are those of a catalog with branches
    of its own. Raises `AwsError`, `CatalogError`.
    """
    opened = read()
    if opened is None or keeps_files(opened.properties, shared=shared):
        return ()
    prefix = data_prefix(facts_of(opened), bucket)
    listed = [] if prefix is None else list(objects.list(prefix + STAGING_PREFIX))
    for tries in range(_TRIES):
        opened = read() if listed else None
        if opened is None:
            return ()
        is_left = left_by(facts_of(opened).refs, now, age, dropped)
        old = {_name(one.key): one for one in listed if is_left(_name(one.key), one.modified)}
        try:
            # By name, which is unique: writers may spell a location in other ways.
            named = {_name(place) for place in data_files(opened, files)} if old else set()
        except AwsError as error:
            again = read() if error.status == HTTPStatus.NOT_FOUND else None
            moved = again is not None and again.metadata_location != opened.metadata_location
            if not moved or tries + 1 == _TRIES:
                raise
        else:
            return tuple(entry for name, entry in old.items() if name not in named)
    raise AssertionError("the last try returns or raises")


def remove_left_files(files: LakeFiles, bucket: str, left: Sequence[ObjectEntry]) -> Removal:
    """Delete them. One goes first: an identity that may not delete is refused once. Raises
    nothing."""
    places = [f"s3://{bucket}/{entry.key}" for entry in left]
    first = remove_files(files, places[:1])
    if first.error is not None:
        return Removal(0, tuple(places), first.error)
    rest = remove_files(files, places[1:])
    return Removal(first.removed + rest.removed, rest.left, rest.error)


def _name(place: str) -> str:
    return place.rpartition("/")[2]
