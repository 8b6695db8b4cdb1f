"""The log's dataclasses ⇄ JSON objects. The formats are final: `format` counts up when an older
lakeload would misread what a newer one writes (docs/protocol-parquet.md)."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Protocol, TypeVar

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.parquet.log.records import FenceRecord, LoadRecord, Record

FORMAT = 1


class LogObject(Protocol):
    """A dataclass that is one object of the log."""

    KIND: ClassVar[str]


T = TypeVar("T", bound=LogObject)


class LogDamaged(LoadFailed):
    """The commit log holds something that no lakeload wrote, or misses something."""


class NewerFormat(LoadFailed):
    """The commit log was written by a newer lakeload than this one."""


def encode(value: LogObject) -> bytes:
    """Return the object's bytes: JSON with `format` and `kind` first."""
    document = {"format": FORMAT, "kind": value.KIND, **to_json(value)}
    return json.dumps(document, separators=(",", ":")).encode()


def decode_record(data: bytes, key: str) -> Record:
    """Read a LOAD or FENCE record. Raises `NewerFormat` or `LogDamaged` naming `key`."""
    document = _document(data, key)
    kind = document.pop("kind")
    if kind == LoadRecord.KIND:
        return _read(LoadRecord, document, key)
    if kind == FenceRecord.KIND:
        return _read(FenceRecord, document, key)
    raise _damaged(key, f"its kind is {kind!r}")


def decode(kind: type[T], data: bytes, key: str) -> T:
    """Read a marker or checkpoint. Raises `NewerFormat` or `LogDamaged` naming `key`."""
    document = _document(data, key)
    if (found := document.pop("kind")) != kind.KIND:
        raise _damaged(key, f"its kind is {found!r}")
    return _read(kind, document, key)


def tool_version() -> str:
    """Return `lakeload X.Y.Z`; executors may run from an archive without metadata."""
    try:
        return f"lakeload {version('lakeload')}"
    except PackageNotFoundError:
        return "lakeload"


def _document(data: bytes, key: str) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(key, "it is not JSON") from error
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise _damaged(key, "it has no `format`")
    if (found := document.pop("format")) > FORMAT:
        raise NewerFormat(
            f"`{key}` has format {found} and this lakeload reads up to {FORMAT}: it was written by "
            "a newer lakeload",
            hint="upgrade lakeload here: `pip install --upgrade lakeload`",
        )
    if "kind" not in document:
        raise _damaged(key, "it has no `kind`")
    return document


def _read(kind: type[T], document: dict[str, Any], key: str) -> T:
    try:
        return from_json(kind, document)
    except CodecError as error:
        raise _damaged(key, str(error)) from error


def _damaged(key: str, what: str) -> LogDamaged:
    return LogDamaged(
        f"`{key}` is not what lakeload writes: {what}",
        hint="restore the object as it was (bucket versioning keeps it); never edit the log",
    )
