"""Records of the commit log, never changed, and the markers beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from lakeload_jobs import __version__
from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import IndexKind
from lakeload_jobs.contract.spec import PartitionStrategy, TableHandling
from lakeload_jobs.contract.state import StateChange, check_format
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.data_files.uploads import StagedFile


@dataclass(frozen=True)
class Column:
    """A target column and its type, in the words of `core.types`."""

    name: str
    type: str


@dataclass(frozen=True)
class Target:
    """The table a record belongs to: its place in the bucket."""

    prefix: str
    schema: str
    table: str


@dataclass(frozen=True)
class GlueTarget:
    """The Glue table that step 6 brings into step.

    `partition_key` is the one partition column, None for a table without partitions. With
    `projection` Athena computes the partitions and none are registered.
    """

    database: str
    table: str
    partition_key: str | None = None
    projection: bool = False


@dataclass(frozen=True)
class Rejects:
    """What one job set aside: the files of the side table `table`, beside the target."""

    table: str
    columns: tuple[Column, ...]
    rows: int
    files: tuple[StagedFile, ...]


@dataclass(frozen=True)
class LoadRecord:
    """One committed job: all that is needed to finish it without its author.

    The number is the key's, not the record's: a job that was overtaken writes the same bytes again
    under the next number. `started_at` and `created_at` are the author's clock, for people.
    """

    KIND: ClassVar[str] = "LOAD"

    tool: str
    pipeline: str
    source: str
    job_id: str
    attempt_id: str
    started_at: datetime
    created_at: datetime
    synced: datetime
    mode: Literal["APPEND"]
    table_handling: TableHandling
    fingerprint: str
    target: Target
    partition_strategy: PartitionStrategy
    file_name_pattern: str
    partition: str
    columns: tuple[Column, ...]
    column_map: dict[str, str]
    """Source name → target name; it wins over computing the names anew."""
    index: IndexKind
    rows: int
    files: tuple[StagedFile, ...]
    glue: GlueTarget | None = None
    """None: the job has no catalog, and needs no `.cat`."""
    state: StateChange | None = None
    """Only if the job sets one: an append must not carry an older state forward."""
    inputs: tuple[Any, ...] = ()
    """What this job read, as its source notes it (`contract.state.Evidence`)."""
    author: str = ""
    """`user@host pid 4711` that started the job, for people (`core.authors`); '' in records of
    before it was noted."""
    known: tuple[Any, ...] = ()
    """What earlier jobs read, repeated so that nobody has to read their records again."""
    rejected: Rejects | None = None
    """Only if records were set aside: what was written before there was this has no such key."""
    retried: str | None = None
    """The job whose rejected records this one has read, all of them; likewise."""
    deleted_rows: int | None = None
    """How many of `rows`, the last ones, are keys that the source no longer has; likewise."""

    @property
    def uploads(self) -> tuple[StagedFile, ...]:
        """The files of the table and of its side table: published together, or void together."""
        return self.files + (self.rejected.files if self.rejected else ())

    @property
    def location(self) -> TableLocation:
        """Where the table lies. Raises `ValueError` for a target that lakeload did not write."""
        return TableLocation(self.target.prefix, self.target.schema, self.target.table)

    @property
    def all_rows(self) -> int:
        """The rows of all uploads."""
        return self.rows + (self.rejected.rows if self.rejected else 0)

    def of_side_table(self) -> LoadRecord | None:
        """Return this job as one of the side table, for the catalog; None without rejects."""
        rejected = self.rejected
        if rejected is None:
            return None
        return replace(
            self,
            target=replace(self.target, table=rejected.table),
            columns=rejected.columns,
            rows=rejected.rows,
            files=rejected.files,
            glue=None if self.glue is None else replace(self.glue, table=rejected.table),
            rejected=None,
        )

    @property
    def bytes(self) -> int:
        """The encoded bytes of all files."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True)
class FenceRecord:
    """Attempts, or uploads, that may no longer commit: they are about to be aborted.

    A writer that passes a fence stops when it finds its attempt or one of its uploads in it.
    """

    KIND: ClassVar[str] = "FENCE"

    tool: str
    created_at: datetime
    attempts: tuple[str, ...]
    reason: str
    uploads: tuple[str, ...] = ()
    """Upload ids: all that a LIST of open uploads tells of them."""
    resets: str = ""
    """A pipeline whose every attempt is locked out and whose earlier records are forgotten: its
    objects are being deleted, and `.clean` beside this record says that they are."""


@dataclass(frozen=True)
class EndMarker:
    """How a job ended when not simply done: `void`, or `partial` (a person accepted the loss).

    Done is the empty object, so that a LIST alone shows it.
    """

    KIND: ClassVar[str] = "END"

    tool: str
    created_at: datetime
    outcome: Literal["void", "partial"]
    reason: str
    lost: tuple[str, ...] = ()
    """Keys whose uploads are gone."""


@dataclass(frozen=True)
class CleanMarker:
    """A void record's uploads are aborted and its objects deleted."""

    KIND: ClassVar[str] = "CLEAN"

    tool: str
    created_at: datetime
    deleted: tuple[str, ...]


@dataclass(frozen=True)
class CatMarker:
    """The catalog has the record's columns and partitions."""

    KIND: ClassVar[str] = "CAT"

    tool: str
    created_at: datetime


Record = LoadRecord | FenceRecord


FORMAT = 3
_FIRST_FORMAT = 1
"""Of all objects but records with one of these keys: every lakeload reads it. An older one would
not publish the uploads of a side table, and not know of deleted rows."""
_FORMATS = {"rejected": 2, "retried": 2, "deleted_rows": 3, "digest": 1}


class LogObject(Protocol):
    """A dataclass that is one object of the log."""

    KIND: ClassVar[str]


T = TypeVar("T", bound=LogObject)


class LogDamaged(LoadFailed):
    """The commit log holds something that no lakeload wrote, or misses something."""


def encode(value: LogObject) -> bytes:
    """Return the object's bytes: JSON with `format` and `kind` first."""
    body = to_json(value)
    own = _FIRST_FORMAT
    for name, number in _FORMATS.items():
        if body.get(name) is None:
            body.pop(name, None)
        else:
            own = max(own, number)
    document = {"format": own, "kind": value.KIND, **body}
    return json.dumps(document, separators=(",", ":")).encode()


def decode_record(data: bytes, key: str) -> Record:
    """Read a LOAD or FENCE record. Raises `NewerFormat` or `LogDamaged` naming `key`."""
    document = _document(data, key)
    kind = document.pop("kind")
    if kind == LoadRecord.KIND:
        return _read(LoadRecord, document, key)
    if kind == FenceRecord.KIND:
        return _read(FenceRecord, document, key)
    raise damaged(key, f"its kind is {kind!r}")


def decode(kind: type[T], data: bytes, key: str) -> T:
    """Read a marker or checkpoint. Raises `NewerFormat` or `LogDamaged` naming `key`."""
    document = _document(data, key)
    if (found := document.pop("kind")) != kind.KIND:
        raise damaged(key, f"its kind is {found!r}")
    return _read(kind, document, key)


def tool_version() -> str:
    """Return `lakeload X.Y.Z`."""
    return f"lakeload {__version__}"


def _document(data: bytes, key: str) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(key, "it is not JSON") from error
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise damaged(key, "it has no `format`")
    check_format(document, FORMAT, f"the record `{key}`")
    document.pop("format")
    if "kind" not in document:
        raise damaged(key, "it has no `kind`")
    return document


def _read(kind: type[T], document: dict[str, Any], key: str) -> T:
    try:
        return from_json(kind, document)
    except CodecError as error:
        raise damaged(key, str(error)) from error


def damaged(key: str, what: str) -> LogDamaged:
    """Return the error of an object that no lakeload wrote there."""
    return LogDamaged(
        f"`{key}` is not a valid log object: {what}",
        hint="restore the object as it was (bucket versioning keeps it); never edit the log",
    )
