"""Snapshots that remove files of a table."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.manifests import (
    DATA,
    DELETED,
    EXISTING,
    MetadataFiles,
    read_list,
    read_manifest,
    write_again,
    write_list,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    ROW_LINEAGE,
    Json,
    Metadata,
    ref,
    snapshot_of,
)

_TOTALS: Mapping[str, str] = {
    "total-records": "deleted-records",
    "total-files-size": "removed-files-size",
    "total-data-files": "deleted-data-files",
    "total-delete-files": "",
    "total-position-deletes": "",
    "total-equality-deletes": "",
}
"""Total in a summary → what of the same summary lowers it, '' where nothing does here."""


def new_snapshot_id() -> int:
    """Return an id that no snapshot has: 63 random bits."""
    return secrets.randbits(63) or 1


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

    Raises `Unsupported` where files are not partitioned by the field, and where some may be deleted
    row by row.
    """
    head = ref(metadata, MAIN)
    parent = None if head is None else snapshot_of(metadata, head)
    if parent is None:
        return None
    told: dict[str, int] = {}
    rows = [
        _row_without(files, metadata, row, partition, snapshot_id, told)
        for row in read_list(files, parent)
        if row["added_files_count"] or row["existing_files_count"]
    ]
    if not told:
        return None
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
        snapshot_id=snapshot_id,
        parent=head,
        sequence=sequence,
        first_row_id=ids.get("first-row-id"),
    )
    return {
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": head,
        "sequence-number": sequence,
        "timestamp-ms": max(now_ms, metadata.get("last-updated-ms", 0)),
        "manifest-list": place,
        "schema-id": metadata["current-schema-id"],
        "summary": {
            "operation": "delete",
            **summary,
            **{name: str(value) for name, value in told.items()},
            "changed-partition-count": "1",
            **_totals(parent["summary"], told),
        },
        **ids,
    }


def _row_without(
    files: MetadataFiles,
    metadata: Metadata,
    row: Json,
    partition: tuple[str, str],
    snapshot_id: int,
    told: dict[str, int],
) -> Json:
    """Return the row of a manifest in which the files of a partition are deleted and counted in
    `told`: the same row where it has none."""
    if row.get("content", DATA) != DATA:
        raise Unsupported("deletes of single rows")
    field, text = partition
    manifest, gone = read_manifest(files, row), False
    entries = []
    for entry in manifest.entries:
        if entry["status"] == DELETED:
            continue
        data_file = entry["data_file"]
        if field not in data_file["partition"]:
            raise Unsupported(f"files that are not partitioned by `{field}`")
        if data_file["partition"][field] == text:
            gone = True
            entries.append({**entry, "status": DELETED, "snapshot_id": snapshot_id})
            for name, number in (
                ("deleted-data-files", 1),
                ("deleted-records", data_file["record_count"]),
                ("removed-files-size", data_file["file_size_in_bytes"]),
            ):
                told[name] = told.get(name, 0) + number
        else:
            entries.append({**entry, "status": EXISTING})
    return write_again(files, metadata, manifest, entries, snapshot_id) if gone else row


def _totals(before: Mapping[str, str], told: Mapping[str, int]) -> dict[str, str]:
    """Return the totals of a summary, as far as the snapshot before has told them."""
    known = {name: before[name] for name in _TOTALS if before.get(name, "").isdigit()}
    return {name: str(int(text) - told.get(_TOTALS[name], 0)) for name, text in known.items()}


def _number_rows(metadata: Metadata, rows: Sequence[Json]) -> dict[str, int]:
    """Give the manifests without one their first row id; return what the snapshot says of ids."""
    if metadata["format-version"] < ROW_LINEAGE:
        return {}
    first = following = metadata.get("next-row-id", 0)
    for row in rows:
        if row.get("first_row_id") is None:
            row["first_row_id"] = following
            following += row["existing_rows_count"] + row["added_rows_count"]
    return {"first-row-id": first, "added-rows": following - first}
