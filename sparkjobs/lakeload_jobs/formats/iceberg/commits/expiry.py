"""Expired snapshots: which they are, and which files go with them.

The rules are those of Iceberg's own expiry (`RemoveSnapshots`, `ExpireSnapshotsSparkAction`).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakeload_jobs.formats.iceberg.commits.manifests import ManifestLists, each_of, read_paths
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    Metadata,
    assert_definition,
    assert_ref,
    int_property,
    ref,
    remove_ref,
    remove_schemas,
    remove_snapshots,
    remove_specs,
)

_MAX_AGE = "history.expire.max-snapshot-age-ms"
_LEAST = "history.expire.min-snapshots-to-keep"
_MAX_REF_AGE = "history.expire.max-ref-age-ms"
_FIVE_DAYS_MS = 5 * 24 * 60 * 60 * 1000
_FOR_EVER_MS = (1 << 63) - 1

_HELD = 1_000_000
"""Locations of files that are held in memory, about: where more may go, manifests are read again
for each part of them."""


# Which


@dataclass(frozen=True)
class Expired:
    """The snapshots that the retention of a table lets go, and the branches and tags that are older
    than theirs."""

    snapshots: tuple[int, ...]
    refs: tuple[str, ...]


def expired(
    metadata: Metadata, now_ms: int, *, older_than_ms: int | None, retain_last: int | None
) -> Expired:
    """Return what the retention of a table lets go now. `older_than_ms`, since 1970, and
    `retain_last` take the place of the table's properties; branches may have their own. Raises
    `Unsupported` for a property that is not a number."""
    if older_than_ms is None:
        older_than_ms = now_ms - int_property(metadata, _MAX_AGE, _FIVE_DAYS_MS)
    if retain_last is None:
        retain_last = int_property(metadata, _LEAST, 1)
    times = {one["snapshot-id"]: one["timestamp-ms"] for one in metadata.get("snapshots", ())}
    refs = _refs(metadata)
    max_age = int_property(metadata, _MAX_REF_AGE, _FOR_EVER_MS)
    old = {name for name, at in refs.items() if _is_old(name, at, times, now_ms, max_age)}
    kept: set[int] = set()
    referenced: set[int] = set()
    for name in refs.keys() - old:
        at = refs[name]
        kept.add(at["snapshot-id"])
        lineage = [at["snapshot-id"]]
        if at.get("type", "branch") == "branch":
            lineage = _lineage(metadata, at["snapshot-id"])
            age = at.get("max-snapshot-age-ms")
            since = older_than_ms if age is None else now_ms - age
            kept.update(_young(lineage, times, since, at.get("min-snapshots-to-keep", retain_last)))
        referenced.update(lineage)
    kept |= {one for one, at in times.items() if one not in referenced and at >= older_than_ms}
    return Expired(tuple(one for one in times if one not in kept), tuple(sorted(old)))


def _refs(metadata: Metadata) -> Mapping[str, Mapping[str, Any]]:
    refs: Mapping[str, Mapping[str, Any]] = metadata.get("refs", {})
    head = ref(metadata, MAIN)
    return refs if head is None else {MAIN: {"snapshot-id": head}, **refs}


def _is_old(
    name: str, at: Mapping[str, Any], times: Mapping[int, int], now_ms: int, max_age: int
) -> bool:
    if name == MAIN:
        return False
    written = times.get(at["snapshot-id"])
    own = at.get("max-ref-age-ms")
    return written is None or now_ms - written > (max_age if own is None else own)


def _young(
    lineage: Sequence[int], times: Mapping[int, int], since: int, least: int
) -> Iterator[int]:
    for number, snapshot in enumerate(lineage):
        if number >= least and times[snapshot] < since:
            return
        yield snapshot


def _lineage(metadata: Metadata, head: int) -> list[int]:
    """Return the snapshots that a branch is made of, as far as the table has them."""
    parents = {
        one["snapshot-id"]: one.get("parent-snapshot-id") for one in metadata.get("snapshots", ())
    }
    found = []
    at: int | None = head
    while at is not None and at in parents:
        found.append(at)
        at = parents[at]
    return found


# The commit


def requirements(metadata: Metadata) -> list[Json]:
    """Return what the commit asserts: every branch and tag is where it was, as is the definition,
    so that nothing which the expiry removes has come into use."""
    refs = [assert_ref(name, at["snapshot-id"]) for name, at in _refs(metadata).items()]
    return [*refs, *assert_definition(metadata)]


def updates(lists: ManifestLists, metadata: Metadata, gone: Expired) -> list[Json]:
    """Return the updates that remove snapshots, with the schemas and partition specs that they
    alone have used. Reads the lists of manifests of all: what cannot be read shows now."""
    lists.read(metadata.get("snapshots", ()))
    left = [
        one for one in metadata.get("snapshots", ()) if one["snapshot-id"] not in gone.snapshots
    ]
    rows = lists.read(left).values()
    schemas = {one.get("schema-id") for one in left} | {metadata.get("current-schema-id", 0)}
    specs = {row["partition_spec_id"] for row in rows} | {metadata.get("default-spec-id", 0)}
    old_schemas = _ids(metadata, "schemas", "schema-id") - schemas
    old_specs = _ids(metadata, "partition-specs", "spec-id") - specs
    return [
        *map(remove_ref, gone.refs),
        *([remove_snapshots(gone.snapshots)] if gone.snapshots else ()),
        *([remove_specs(sorted(old_specs))] if old_specs else ()),
        *([remove_schemas(sorted(old_schemas))] if old_schemas else ()),
    ]


def _ids(metadata: Metadata, name: str, number: str) -> set[int]:
    return {one.get(number, 0) for one in metadata.get(name, ())}


# Files


@dataclass(frozen=True)
class FreedFiles:
    """Files that no snapshot has any more: locations with their bytes. `lists` are those of
    manifests, and manifests that are in none: nobody has noted their bytes."""

    files: Mapping[str, int]
    lists: Collection[str] = ()


def freed_files(lists: ManifestLists, before: Metadata, after: Metadata) -> Iterator[FreedFiles]:
    """Yield the files that the snapshots of `before` have and those of `after` have not.

    Manifests of both are read where snapshots are gone that had others: first those of the ones
    that are gone.
    """
    there = {one["snapshot-id"] for one in after.get("snapshots", ())}
    gone = [one for one in before.get("snapshots", ()) if one["snapshot-id"] not in there]
    kept = lists.read(after.get("snapshots", ()))
    old = [row for place, row in lists.read(gone).items() if place not in kept]
    read = partial(read_paths, lists.files)
    parts = 1 + sum(map(_count, old)) // _HELD
    for part in range(parts):
        found: dict[str, int] = {}
        for paths in each_of(read, old):
            found |= {
                place: size
                for place, size in paths.items()
                if parts == 1 or zlib.crc32(place.encode()) % parts == part
            }
        for paths in each_of(read, kept.values() if found else ()):
            for place in paths:
                found.pop(place, None)
        yield FreedFiles(found)
    # Last: they were read above.
    sizes = {row["manifest_path"]: row.get("manifest_length") for row in old}
    known = {place: size for place, size in sizes.items() if size is not None}
    unknown = {one["manifest-list"] for one in gone if "manifest-list" in one} | sizes.keys()
    unknown -= {one.get("manifest-list") for one in after.get("snapshots", ())}
    yield FreedFiles(known | _statistics(before, after), unknown - known.keys())


def _count(row: Json) -> int:
    """Return how many files a manifest names that a snapshot has, 0 where the list does not say."""
    return sum(row.get(name) or 0 for name in ("added_files_count", "existing_files_count"))


def _statistics(before: Metadata, after: Metadata) -> dict[str, int]:
    def known(metadata: Metadata) -> dict[str, int]:
        return {
            one["statistics-path"]: one["file-size-in-bytes"]
            for name in ("statistics", "partition-statistics")
            for one in metadata.get(name, ())
        }

    there = known(after)
    return {place: size for place, size in known(before).items() if place not in there}


_HISTORY = {
    "snapshots": "snapshot-id",
    "statistics": "statistics-path",
    "partition-statistics": "statistics-path",
}
"""What an expiry removes, and what tells each of its kind apart."""


def with_earlier(metadata: Metadata, earlier: Iterable[Metadata]) -> Metadata:
    """Return metadata with the snapshots and statistics that some earlier metadata of the table
    had."""
    known = [*earlier, metadata]
    if len(known) == 1:
        return metadata
    return {**metadata, **{name: _all_of(known, name, key) for name, key in _HISTORY.items()}}


def _all_of(known: Iterable[Metadata], name: str, key: str) -> list[Json]:
    return list({one[key]: one for metadata in known for one in metadata.get(name, ())}.values())
