"""A table in a folder of this machine, changed by commits of our own alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable, Table

from lakeload_jobs.formats.iceberg.commits.manifests import (
    DELETED,
    Manifest,
    read_list,
    read_manifest,
    write_added,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    NOTHING,
    Json,
    NewTable,
    add_snapshot,
    ref,
    set_branch,
    snapshot_of,
    updated,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import Addition, added, new_snapshot_id

NOW = 1_700_000_000_000
SCHEMA: Json = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "city", "required": False, "type": "string"},
    ],
}
BY_CITY: Json = {
    "spec-id": 0,
    "fields": [{"name": "city", "transform": "identity", "source-id": 2, "field-id": 1000}],
}
UNPARTITIONED: Json = {"spec-id": 0, "fields": []}


class Folder:
    """Metadata files of this machine."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def read(self, location: str) -> bytes:
        return Path(location.removeprefix("file://")).read_bytes()

    def write(self, location: str, data: bytes) -> None:
        Path(location.removeprefix("file://")).write_bytes(data)
        self.written.append(location)


def data_file(name: str, rows: int, **partition: Any) -> Json:
    """What a manifest says of a file that nobody reads."""
    return {
        "content": 0,
        "file_path": f"s3://lake/{name}.parquet",
        "file_format": "PARQUET",
        "partition": partition,
        "record_count": rows,
        "file_size_in_bytes": 10 * rows,
        "sort_order_id": 0,
    }


@dataclass
class OwnTable:
    """The table: `metadata` is that of its last commit."""

    metadata: Json
    files: Folder
    folder: Path

    @classmethod
    def new(
        cls,
        folder: Path,
        version: int = 2,
        spec: Json = UNPARTITIONED,
        properties: Mapping[str, str] | None = None,
    ) -> OwnTable:
        """Create a table."""
        (folder / "metadata").mkdir()
        order: Json = {"order-id": 0, "fields": []}
        table = NewTable(SCHEMA, spec, order, properties or {}, version)
        metadata = updated(NOTHING, table.updates(str(folder)), replaces=None, now_ms=NOW)
        return cls(metadata, Folder(), folder)

    def copy(self) -> OwnTable:
        """The table as somebody else holds it, in the same folder."""
        return OwnTable(copy.deepcopy(self.metadata), self.files, self.folder)

    def manifest(self, *data_files: Json) -> Manifest:
        """Write a manifest."""
        return write_added(self.files, self.metadata, new_snapshot_id(), data_files)

    def addition(
        self, manifests: Sequence[Manifest], head: int | None = None, *, replaces: bool = False
    ) -> Json:
        """Return a snapshot of these manifests on top of `head`, or of main."""
        number = int(manifests[0].row["added_snapshot_id"]) if manifests else new_snapshot_id()
        at = ref(self.metadata, MAIN) if head is None else head
        one = Addition(number, at, manifests, {}, replaces)
        return added(self.files, self.metadata, one, now_ms=NOW)

    def commit(self, snapshot: Json, branch: str = MAIN) -> None:
        """Add a snapshot, and have a branch at it."""
        updates = [add_snapshot(snapshot), set_branch(branch, snapshot["snapshot-id"])]
        self.metadata = updated(self.metadata, updates, replaces="before", now_ms=NOW)

    def append(self, *data_files: Json, branch: str = MAIN) -> Json:
        """Add files to a branch in one commit."""
        head = ref(self.metadata, branch)
        snapshot = self.addition([self.manifest(*data_files)], head)
        self.commit(snapshot, branch)
        return snapshot

    def snapshot(self, branch: str = MAIN) -> Json:
        """The snapshot that a branch is at."""
        number = ref(self.metadata, branch)
        assert number is not None
        found = snapshot_of(self.metadata, number)
        assert found is not None
        return found

    def rows(self, branch: str = MAIN) -> list[Json]:
        """The manifests of a branch."""
        return read_list(self.files, self.snapshot(branch))

    def entries(self, branch: str = MAIN) -> list[Json]:
        """The entries of live files of a branch, by the names of the files."""
        found = [
            entry
            for row in self.rows(branch)
            for entry in read_manifest(self.files, row).entries
            if entry["status"] != DELETED
        ]
        return sorted(found, key=lambda entry: str(entry["data_file"]["file_path"]))

    def row_ids(self) -> dict[str, range]:
        """The ids of rows by the name of their file, in a table of version 3."""
        found = {}
        for entry in self.entries():
            one = entry["data_file"]
            name = one["file_path"].rpartition("/")[2].removesuffix(".parquet")
            found[name] = range(one["first_row_id"], one["first_row_id"] + one["record_count"])
        return found

    def read(self) -> Table:
        """The table as pyiceberg reads it."""
        place = self.folder / "table.metadata.json"
        place.write_text(json.dumps(self.metadata), encoding="utf-8")
        return StaticTable.from_metadata(str(place))

    def planned(self) -> set[str]:
        """The files that pyiceberg would read."""
        return {task.file.file_path for task in self.read().scan().plan_files()}
