"""Tables of a catalog, read, created and committed to by requests of our own.

A `TableStore` says what became of a commit and repeats none: what to do is for those to decide who
know what they have sent.
"""

from __future__ import annotations

import gzip
import json
import logging
import threading
import time
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lakeload_jobs.aws import AwsError
from lakeload_jobs.formats.iceberg.commits.errors import Unsupported, damaged
from lakeload_jobs.formats.iceberg.commits.manifests import MetadataFiles, metadata_folder
from lakeload_jobs.formats.iceberg.commits.metadata import (
    FORMAT_VERSIONS,
    NOTHING,
    Json,
    Metadata,
    NewTable,
    check,
    normalised,
    updated,
)

logger = logging.getLogger(__name__)

_CODEC = "write.metadata.compression-codec"
_DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
_KEY = "encryption.key-id"
_GZIP = b"\x1f\x8b"
_KNOWN_FILES = 16
"""Metadata files that are held in memory: a load reads its table several times."""


@dataclass(frozen=True)
class ReadTable:
    """A table as it was when it was read: its metadata, the file that has it, and what the store
    compares a commit with. `config` is what a REST catalog says for the table, keys included;
    `credentials` are more of that, for locations that begin so."""

    namespace: str
    name: str
    metadata: Metadata
    metadata_location: str
    version: Any = None
    config: Mapping[str, str] | None = None
    credentials: Sequence[tuple[str, Mapping[str, str]]] = ()

    @property
    def target(self) -> str:
        """`namespace.name`, for messages."""
        return f"{self.namespace}.{self.name}"

    @property
    def location(self) -> str:
        """Where its files lie, without a final slash."""
        return str(self.metadata["location"]).rstrip("/")

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""
        found: Mapping[str, str] = self.metadata.get("properties", {})
        return found


class TableStore(Protocol):
    """Tables of one catalog. Namespaces have one level. Every method raises `CatalogError` and
    `AwsError` for what is refused, which is then not in, and `Unsupported` for metadata that
    lakeload does not know."""

    def namespace_location(self, namespace: str) -> str | None:
        """Return where a namespace lies, '' where it does not say; None where there is none."""

    def create_namespace(self, namespace: str, location: str | None) -> None:
        """Create a namespace, at `location` if there is one. Raises `CommitRejected` where the
        namespace is there already, `CommitUnknown` where nobody can say."""

    def open(self) -> None:
        """Make sure that the catalog takes our identity, as far as it can be asked without a
        table."""

    def load(self, namespace: str, name: str) -> ReadTable | None:
        """Read a table; None where there is none."""

    def create(self, namespace: str, name: str, table: NewTable, location: str | None) -> ReadTable:
        """Create a table; `location` None leaves its place to the catalog. Raises `CommitRejected`
        where there is one, `CommitUnknown` where nobody can say."""

    def commit(
        self,
        table: ReadTable,
        requirements: Iterable[Mapping[str, Any]],
        updates: Iterable[Mapping[str, Any]],
    ) -> ReadTable:
        """Commit the updates if the table meets the requirements; return it as it is then.

        It is sent once. Raises `CommitRejected` where it is certainly not in, and `CommitUnknown`
        where only a read can tell.
        """

    def drop(self, table: ReadTable) -> None:
        """Drop a table and leave its files; one that is gone is no error. Nessie alone compares
        whether it has changed since it was read. Raises as `commit`."""


class RemovableFiles(MetadataFiles, Protocol):
    """Files of which old ones may be deleted."""

    def delete(self, location: str) -> None:
        """Delete a file; a missing one is no error."""


@dataclass(frozen=True)
class MetadataWriter:
    """Writes metadata files for the catalogs that hold no more than their names. Thread-safe."""

    files: RemovableFiles
    _known: OrderedDict[str, Json] = field(default_factory=OrderedDict)
    """The metadata of the files that were read or written last: no file is ever changed."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stay: threading.Event = field(default_factory=threading.Event)
    """Set once old files may not be deleted."""

    def read(self, location: str) -> Json:
        """Return the metadata in a file, compressed or not. Raises `Unsupported`, and `LoadFailed`
        for a file that is damaged."""
        with self._lock:
            known = self._known.get(location)
        if known is not None:
            return known
        data = self.files.read(location)
        try:
            written = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise damaged(location, "the metadata file", error) from error
        metadata = supported(written)
        self._keep(location, metadata)
        return metadata

    def create(self, table: NewTable, location: str) -> tuple[Json, str]:
        """Write the metadata of a new table; return it with the place of its file."""
        metadata = updated(NOTHING, table.updates(location), replaces=None, now_ms=now_ms())
        return metadata, self._write(metadata, 0)

    def commit(
        self,
        table: ReadTable,
        requirements: Iterable[Mapping[str, Any]],
        updates: Iterable[Mapping[str, Any]],
    ) -> tuple[Json, str]:
        """Write the metadata after a commit; return it with the place of its file."""
        check(table.metadata, requirements)
        before = table.metadata_location
        metadata = updated(table.metadata, updates, replaces=before, now_ms=now_ms())
        return metadata, self._write(metadata, _number(before) + 1)

    def delete_old(self, before: Metadata, after: Metadata) -> None:
        """Delete the metadata files that a commit has dropped from the log, where the table says
        so. The commit is in: files that cannot be deleted are left to `maintain`."""
        wanted = after.get("properties", {}).get(_DELETE_AFTER_COMMIT, "false").lower() == "true"
        if not wanted:
            return
        kept = {entry["metadata-file"] for entry in after.get("metadata-log", ())}
        for entry in before.get("metadata-log", ()):
            if entry["metadata-file"] in kept or self._stay.is_set():
                continue
            try:
                self.files.delete(entry["metadata-file"])
            except AwsError as error:
                logger.info("an old metadata file stays: %s", error.message)
                if error.denied:
                    # A load needs no permission for it, and asks once.
                    self._stay.set()

    def _write(self, metadata: Metadata, number: int) -> str:
        data = json.dumps(metadata, separators=(",", ":")).encode()
        packed = metadata.get("properties", {}).get(_CODEC, "none").lower() == "gzip"
        name = f"{number:05d}-{uuid.uuid4()}{'.gz' if packed else ''}.metadata.json"
        place = f"{metadata_folder(metadata)}/{name}"
        self.files.write(place, gzip.compress(data) if packed else data)
        self._keep(place, dict(metadata))
        return place

    def _keep(self, location: str, metadata: Json) -> None:
        with self._lock:
            self._known[location] = metadata
            while len(self._known) > _KNOWN_FILES:
                self._known.popitem(last=False)


def _number(location: str) -> int:
    """Return the number in the name of a metadata file; 0 where another writer has none there."""
    text = location.rpartition("/")[2].partition("-")[0]
    return int(text) if text.isdigit() else 0


def supported(read: Json) -> Json:
    """Return metadata of a version and with contents that commits keep, with what its writer has
    left out. Raises `Unsupported`."""
    version = read.get("format-version")
    if version not in FORMAT_VERSIONS:
        raise Unsupported(f"the format version {version}")
    metadata = normalised(read)
    if metadata.get("encryption-keys") or _KEY in metadata["properties"]:
        raise Unsupported("encryption keys of the table")
    return metadata


def now_ms() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000
