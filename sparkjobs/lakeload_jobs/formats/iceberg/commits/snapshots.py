"""Snapshots that add files to a table, or put them in the place of all rows that are there."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.manifests import (
    ADDED,
    DATA,
    DELETED,
    DELETES,
    EXISTING,
    Manifest,
    MetadataFiles,
    check_version,
    partition_key,
    read_list,
    read_manifest,
    read_manifests,
    write_added_again,
    write_again,
    write_list,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    ROW_LINEAGE,
    Json,
    Metadata,
    int_property,
    ref,
    snapshot_of,
    spec_of,
)

_MERGE_ENABLED = "commit.manifest-merge.enabled"
_MERGE_COUNT = "commit.manifest.min-count-to-merge"
_MERGE_SIZE = "commit.manifest.target-size-bytes"
_COUNT, _SIZE = 100, 8 * 1024 * 1024

Operation = Literal["append", "overwrite", "delete"]

_TOTALS: Mapping[str, tuple[str, str]] = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
"""Total in a summary → what of the same summary raises and lowers it."""


def new_snapshot_id() -> int:
    """Return an id that no snapshot has: 63 random bits."""
    return secrets.randbits(63) or 1


@dataclass(frozen=True)
class Addition:
    """What a snapshot is to add to a branch. `head` is where the branch is, None for nowhere;
    `manifests` name the new files; `summary` is what the snapshot says of itself."""

    snapshot_id: int
    head: int | None
    manifests: Sequence[Manifest]
    summary: Mapping[str, str]
    replaces: bool = False
    """Whether every row that is there goes."""


def added(files: MetadataFiles, metadata: Metadata, addition: Addition, *, now_ms: int) -> Json:
    """Write the list of manifests of a snapshot on top of `addition.head`; return the snapshot.

    One request for the list of the head, one for the new list, and those of the manifests that are
    removed or merged. Raises `Unsupported` and `AwsError`.
    """
    check_version(metadata)
    parent = None if addition.head is None else snapshot_of(metadata, addition.head)
    changes = _Changes()
    rows = [row for row in read_list(files, parent) if _has_live_files(row)]
    operation: Operation = "append"
    if addition.replaces:
        operation = "overwrite"
        rows = _removed(files, metadata, rows, addition.snapshot_id, changes)
    for manifest in addition.manifests:
        changes.add(manifest)
    rows = [*(dict(manifest.row) for manifest in addition.manifests), *rows]
    rows = _merged(files, metadata, rows, addition.snapshot_id)
    return _snapshot(files, metadata, addition, rows, _Summary(operation, changes), now_ms)


def again(
    files: MetadataFiles,
    metadata: Metadata,
    staged: Json,
    head: int | None,
    snapshot_id: int,
    summary: Mapping[str, str],
    *,
    now_ms: int,
) -> Json:
    """Make an append that is staged on a branch again, on top of another `head`: its data files,
    with a manifest for each of its own. Return the snapshot.

    Raises `Unsupported` where the staged snapshot does more than add data files.
    """
    manifests = []
    for row in _changed(files, staged):
        manifest = write_added_again(files, metadata, read_manifest(files, row), snapshot_id)
        manifests += [] if manifest is None else [manifest]
    addition = Addition(snapshot_id, head, manifests, summary)
    return added(files, metadata, addition, now_ms=now_ms)


def moved(
    files: MetadataFiles, metadata: Metadata, staged: Json, *, schema_id: int, now_ms: int
) -> Json:
    """Return a snapshot that is staged in a private copy of the metadata as one of the metadata as
    it is now. Its parent has to be where it was; branches of others may have come in between.

    The list of manifests stays where the numbers in it still hold, else it is written again.
    """
    sequence = metadata.get("last-sequence-number", 0) + 1
    lineage = metadata["format-version"] >= ROW_LINEAGE
    first_row_id = metadata.get("next-row-id", 0) if lineage else None
    snapshot = {
        **staged,
        "timestamp-ms": max(now_ms, metadata.get("last-updated-ms", 0)),
        "schema-id": schema_id,
    }
    if staged["sequence-number"] == sequence and staged.get("first-row-id") == first_row_id:
        return snapshot
    rows = read_list(files, staged)
    for row in rows:
        if row["added_snapshot_id"] == staged["snapshot-id"]:
            for name in ("sequence_number", "min_sequence_number"):
                if row[name] == staged["sequence-number"]:
                    row[name] = sequence
        # Row ids of earlier snapshots are all lower.
        first = row.get("first_row_id")
        if lineage and first is not None and first >= staged["first-row-id"]:
            row["first_row_id"] = first + first_row_id - staged["first-row-id"]
    snapshot["manifest-list"] = write_list(
        files,
        metadata,
        rows,
        snapshot_id=staged["snapshot-id"],
        parent=staged.get("parent-snapshot-id"),
        sequence=sequence,
        first_row_id=first_row_id,
    )
    numbers = {"sequence-number": sequence}
    return {**snapshot, **numbers, **({"first-row-id": first_row_id} if lineage else {})}


@dataclass(frozen=True)
class AddedFile:
    """A data file that a snapshot has added."""

    location: str
    rows: int
    size: int


def files_of(files: MetadataFiles, snapshot: Json) -> Iterator[AddedFile]:
    """Yield the data files that a snapshot has added."""
    for row in _changed(files, snapshot):
        if row["content"] != DATA:
            continue
        for entry in read_manifest(files, row).entries:
            if entry["status"] == ADDED and entry["snapshot_id"] == snapshot["snapshot-id"]:
                one = entry["data_file"]
                yield AddedFile(one["file_path"], one["record_count"], one["file_size_in_bytes"])


def _changed(files: MetadataFiles, snapshot: Json) -> list[Json]:
    """Return the rows of the manifests that a snapshot has written."""
    rows = read_list(files, snapshot)
    return [row for row in rows if row["added_snapshot_id"] == snapshot["snapshot-id"]]


def without_partition(
    files: MetadataFiles,
    metadata: Metadata,
    partition: tuple[str, str],
    snapshot_id: int,
    summary: Mapping[str, str],
    *,
    now_ms: int,
) -> Json | None:
    """Write a list of manifests without the files of one partition, given its field and text, on
    top of `main`; return the snapshot, None where there is no such file.

    Deletes of single rows go with the partition that they are for. Raises `Unsupported` where files
    are not partitioned by the field.
    """
    head = ref(metadata, MAIN)
    parent = None if head is None else snapshot_of(metadata, head)
    changes = _Changes()
    rows = []
    for row in read_list(files, parent):
        if not _has_live_files(row):
            continue
        rows.append(_row_without(files, metadata, row, partition, snapshot_id, changes))
    if not changes.counts:
        return None
    addition = Addition(snapshot_id, head, (), summary)
    return _snapshot(files, metadata, addition, rows, _Summary("delete", changes), now_ms)


def _row_without(
    files: MetadataFiles,
    metadata: Metadata,
    row: Json,
    partition: tuple[str, str],
    snapshot_id: int,
    changes: _Changes,
) -> Json:
    """Return the row of a manifest in which the files of a partition are deleted: the same row
    where it has none."""
    name, text = partition
    names = [field["name"] for field in spec_of(metadata, row["partition_spec_id"])["fields"]]
    if name not in names:
        if row["content"] != DATA:
            # Deletes for any partition: they are for others too.
            return row
        raise Unsupported(f"files that are not partitioned by `{name}`")
    at, manifest, entries = names.index(name), read_manifest(files, row), []
    for entry in manifest.entries:
        if entry["status"] == DELETED:
            continue
        if tuple(entry["data_file"]["partition"].values())[at] == text:
            changes.remove(entry["data_file"])
            entries.append({**entry, "status": DELETED, "snapshot_id": snapshot_id})
        else:
            entries.append({**entry, "status": EXISTING})
    if all(entry["status"] == EXISTING for entry in entries):
        return row
    return write_again(files, metadata, [manifest], entries, snapshot_id)


@dataclass
class _Changes:
    """What a snapshot adds and removes, as its summary counts it."""

    counts: Counter[str] = field(default_factory=Counter)
    partitions: set[str] = field(default_factory=set)

    def add(self, manifest: Manifest) -> None:
        """Count the files of a new manifest."""
        self.counts["added-data-files"] += manifest.files
        self.counts["added-records"] += manifest.rows
        self.counts["added-files-size"] += manifest.size
        self.partitions |= manifest.partitions

    def remove(self, data_file: Json) -> None:
        """Count a file of rows or of deletes that goes."""
        content, rows, size = (
            data_file["content"],
            data_file["record_count"],
            data_file["file_size_in_bytes"],
        )
        self.partitions.add(partition_key(data_file))
        if content == DATA:
            self.counts += Counter({"deleted-data-files": 1, "deleted-records": rows})
        else:
            kind = "position" if content == _POSITION_DELETES else "equality"
            file = f"{kind}-delete-files"
            if data_file["file_format"].upper() == _PUFFIN:
                # Several deletion vectors lie in one file.
                file, size = "dvs", data_file["content_size_in_bytes"]
            self.counts += Counter({"removed-delete-files": 1, f"removed-{file}": 1})
            self.counts[f"removed-{kind}-deletes"] += rows
        self.counts["removed-files-size"] += size


_POSITION_DELETES = 1
_PUFFIN = "PUFFIN"


@dataclass(frozen=True)
class _Summary:
    operation: Operation
    changes: _Changes

    def text(self, own: Mapping[str, str], before: Mapping[str, str] | None) -> dict[str, str]:
        """Return the summary: what the load says of itself, what changed, and the totals.

        Totals are known as long as every snapshot before has told them.
        """
        counts = self.changes.counts
        found = {"operation": self.operation, **own}
        found |= {name: str(value) for name, value in counts.items() if value}
        found["changed-partition-count"] = str(len(self.changes.partitions))
        for total, (more, less) in _TOTALS.items():
            known = "0" if before is None else before.get(total, "")
            if self.operation == "overwrite":
                # All that was there is gone.
                found[total] = str(counts[more])
            elif known.isdigit() and (now := int(known) + counts[more] - counts[less]) >= 0:
                found[total] = str(now)
        return found


def _snapshot(
    files: MetadataFiles,
    metadata: Metadata,
    addition: Addition,
    rows: Sequence[Json],
    summary: _Summary,
    now_ms: int,
) -> Json:
    number, head = addition.snapshot_id, addition.head
    parent = None if head is None else snapshot_of(metadata, head)
    sequence = metadata.get("last-sequence-number", 0) + 1
    for row in rows:
        for name in ("sequence_number", "min_sequence_number"):
            if row.get(name) is None:
                row[name] = sequence
    ids = _number_rows(metadata, rows)
    place = write_list(
        files,
        metadata,
        rows,
        snapshot_id=number,
        parent=head,
        sequence=sequence,
        first_row_id=ids.get("first-row-id"),
    )
    return {
        "snapshot-id": number,
        **({} if head is None else {"parent-snapshot-id": head}),
        "sequence-number": sequence,
        "timestamp-ms": max(now_ms, metadata.get("last-updated-ms", 0)),
        "manifest-list": place,
        "schema-id": metadata["current-schema-id"],
        "summary": summary.text(
            addition.summary, (parent.get("summary") or {}) if parent else None
        ),
        **ids,
    }


def _number_rows(metadata: Metadata, rows: Sequence[Json]) -> dict[str, int]:
    """Give the manifests without one their first row id; return what the snapshot says of ids."""
    if metadata["format-version"] < ROW_LINEAGE:
        return {}
    first = following = metadata.get("next-row-id", 0)
    for row in rows:
        if row["content"] == DATA and row.get("first_row_id") is None:
            row["first_row_id"] = following
            following += row["existing_rows_count"] + row["added_rows_count"]
    return {"first-row-id": first, "added-rows": following - first}


def _has_live_files(row: Json) -> bool:
    return bool(row["added_files_count"] or row["existing_files_count"])


def _removed(
    files: MetadataFiles,
    metadata: Metadata,
    rows: Sequence[Json],
    snapshot_id: int,
    changes: _Changes,
) -> list[Json]:
    """Return manifests that say of every live file that it is deleted."""
    found = []
    for manifest in read_manifests(files, rows):
        gone = [
            {**entry, "status": DELETED, "snapshot_id": snapshot_id}
            for entry in manifest.entries
            if entry["status"] != DELETED
        ]
        for entry in gone:
            changes.remove(entry["data_file"])
        found.append(write_again(files, metadata, [manifest], gone, snapshot_id))
    return found


# Merging


def _merged(
    files: MetadataFiles, metadata: Metadata, rows: Sequence[Json], snapshot_id: int
) -> list[Json]:
    """Merge small manifests as the table's properties say and Iceberg's own commits do: those of
    rows and those of deletes, each spec for itself, the last one first."""
    properties = metadata.get("properties", {})
    enabled = properties.get(_MERGE_ENABLED, "true").lower() == "true"
    found: list[Json] = []
    for content in (DATA, DELETES):
        of_content = [row for row in rows if row["content"] == content]
        if not enabled:
            found += of_content
            continue
        specs = {row["partition_spec_id"] for row in of_content}
        for spec in sorted(specs, reverse=True):
            group = [row for row in of_content if row["partition_spec_id"] == spec]
            found += _merged_group(files, metadata, group, of_content[0], snapshot_id)
    return found


def _merged_group(
    files: MetadataFiles,
    metadata: Metadata,
    group: Sequence[Json],
    newest: Json,
    snapshot_id: int,
) -> Iterator[Json]:
    """Yield the manifests of one spec, merged up to a size. Those beside the newest one of all wait
    until there are enough."""
    least = int_property(metadata, _MERGE_COUNT, _COUNT)
    for part in _packed(group, int_property(metadata, _MERGE_SIZE, _SIZE)):
        waits = len(part) < least and any(row is newest for row in part)
        if len(part) == 1 or waits:
            yield from part
        else:
            yield _one_of(files, metadata, part, snapshot_id)


def _packed(rows: Sequence[Json], size: int) -> list[list[Json]]:
    """Cut rows into neighbours of at most `size` bytes, full ones at the end: the oldest."""
    parts: list[list[Json]] = []
    free = 0
    for row in reversed(rows):
        length = row["manifest_length"]
        if not parts or length > free:
            parts.append([])
            free = size
        parts[-1].insert(0, row)
        free -= length
    return parts[::-1]


def _one_of(
    files: MetadataFiles, metadata: Metadata, rows: Sequence[Json], snapshot_id: int
) -> Json:
    """Write one manifest with the entries of several: files that are there, and what this snapshot
    has removed."""
    manifests = read_manifests(files, rows)
    entries = [
        entry if entry["snapshot_id"] == snapshot_id else _existing(entry)
        for manifest in manifests
        for entry in manifest.entries
        if entry["status"] != DELETED or entry["snapshot_id"] == snapshot_id
    ]
    return write_again(files, metadata, manifests, entries, snapshot_id)


def _existing(entry: Json) -> Json:
    if entry["sequence_number"] is None or entry["file_sequence_number"] is None:
        raise Unsupported("a file without a sequence number")
    return {**entry, "status": EXISTING}
