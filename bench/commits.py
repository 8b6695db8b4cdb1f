"""`python -m bench.commits`: CPU of the commits of one load, by the history of its Iceberg table.

A load makes a branch, and publishes one file: two metadata files, a manifest and its list, in
memory. The property with the jobs of the table is as long as it gets.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence

from lakeload_jobs.formats.iceberg.catalogs.table_stores import MetadataWriter, ReadTable, now_ms
from lakeload_jobs.formats.iceberg.commits.manifests import write_added
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    NewTable,
    add_snapshot,
    assert_ref,
    ref,
    remove_ref,
    set_branch,
    set_properties,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import Addition, added, new_snapshot_id

LIMIT = 0.05
"""Seconds of CPU of a load's commits at 1,000 snapshots."""
HISTORIES = (5, 100, 300, 600, 1000)
JOBS = "j" * 36_000
SCHEMA: Json = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
FILE: Json = {
    "content": 0,
    "file_format": "PARQUET",
    "partition": {},
    "record_count": 100,
    "file_size_in_bytes": 4_000,
    "sort_order_id": 0,
}


class Memory:
    """Metadata files."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def read(self, location: str) -> bytes:
        """Return a file."""
        return self.held[location]

    def write(self, location: str, data: bytes) -> None:
        """Keep a file."""
        self.held[location] = data

    def delete(self, location: str) -> None:
        """Forget a file."""
        self.held.pop(location, None)


def load(files: Memory, location: str) -> str:
    """Make the commits of one load; return the metadata file that is the table's then."""
    # A process of its own: nothing is known of earlier files.
    writer = MetadataWriter(files)
    table = ReadTable("shop", "orders", writer.read(location), location)
    head = ref(table.metadata, MAIN)
    if head is not None:
        metadata, location = writer.commit(table, [], [set_branch("load", head)])
        table = ReadTable("shop", "orders", metadata, location)
    number = new_snapshot_id()
    entry = {**FILE, "file_path": f"s3://lake/shop/orders/data/{number}.parquet"}
    manifest = write_added(files, table.metadata, number, [entry])
    addition = Addition(number, head, [manifest], {"lakeload.job-id": str(number)})
    snapshot = added(files, table.metadata, addition, now_ms=now_ms())
    updates = [
        add_snapshot(snapshot),
        set_branch(MAIN, number),
        remove_ref("load"),
        set_properties({"lakeload.jobs": JOBS}),
    ]
    return writer.commit(table, [assert_ref(MAIN, head)], updates)[1]


def costs(version: int) -> Sequence[float]:
    """Return the seconds of CPU of each load of a new table."""
    files = Memory()
    new = NewTable(SCHEMA, {"spec-id": 0, "fields": []}, {"order-id": 0, "fields": []}, {}, version)
    _, location = MetadataWriter(files).create(new, "s3://lake/shop/orders")
    found = []
    for _ in range(max(HISTORIES)):
        before = time.process_time()
        location = load(files, location)
        found.append(time.process_time() - before)
    return found


def main() -> int:
    """Print the CPU of a load's commits; return 1 where it is over the limit."""
    over = False
    for version in (2, 3):
        found = costs(version)
        for history in HISTORIES:
            last = found[max(0, history - 20) : history]
            usual, worst = statistics.median(last), max(found[max(0, history - 100) : history])
            print(
                f"format version {version}, {history:5,} snapshots: {usual * 1000:5.1f} ms,"
                f" the one in 100 that merges manifests {worst * 1000:5.1f} ms"
            )
        over |= statistics.median(found[-20:]) > LIMIT
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
