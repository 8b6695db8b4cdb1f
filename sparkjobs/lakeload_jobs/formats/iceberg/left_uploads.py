"""Uploads of data files that attempts left open when they died before their commit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from lakeload_jobs.formats.iceberg.rules.branches import STAGING_PREFIX, left_by
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts
from lakeload_jobs.formats.iceberg.rules.writers import data_location
from lakeload_jobs.storage.objects import Objects, OpenUpload


def find_left_uploads(
    objects: Objects,
    bucket: str,
    read: Callable[[], TableFacts | None],
    now: datetime,
    age: timedelta,
    dropped: Collection[str] = (),
) -> tuple[OpenUpload, ...]:
    """Return the uploads that no load will complete, as `left_by` tells. `read` reads the table's
    metadata. Raises `AwsError`."""
    facts = read()
    prefix = None if facts is None else data_prefix(facts, bucket)
    if prefix is None:
        return ()
    listed = list(objects.list_uploads(prefix + STAGING_PREFIX))
    # Read after the list: the branch of an upload that is listed is there by now.
    facts = read() if listed else None
    if facts is None:
        return ()
    is_left = left_by(facts.refs, now, age, dropped)
    return tuple(one for one in listed if is_left(one.key.removeprefix(prefix), one.initiated))


def abort_left_uploads(objects: Objects, uploads: Collection[OpenUpload]) -> None:
    """Abort them. Raises `AwsError`."""
    for upload in uploads:
        objects.abort_upload(upload.key, upload.upload_id)


def data_prefix(facts: TableFacts, bucket: str) -> str | None:
    """Return the beginning of the keys of data files; None for a table in another bucket, where
    nothing is cleaned up."""
    where = urlsplit(data_location(facts.location, facts.properties))
    path = where.path.strip("/")
    plain = path and not where.query and not where.fragment
    return f"{path}/" if where.scheme == "s3" and where.netloc == bucket and plain else None
