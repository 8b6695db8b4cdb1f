"""Parquet files with encryption, which is not read.

Arrow ends the process where it is asked for an encrypted column of a row group, so files are looked
at before they are.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.files.formats.parquet.pages import read_struct
from lakeload_jobs.sources.files.typed.rows import DAMAGED_HINT
from lakeload_jobs.sources.paths.file_state import FileState

END_BYTES = 64 << 10
"""So many bytes at the end of a file Arrow reads first."""
_LENGTH_AND_MAGIC = 8
_ENCRYPTION_ALGORITHM = 8
"""A field of a footer."""


def check_footer(file: FileState, source: Any) -> None:
    """Raise `UnreadableFile` for an encrypted footer. `source` is the file as Arrow takes it."""
    with _stream(source) as stream:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(max(size - len(b"PARE"), 0))
        if stream.read(len(b"PARE")) == b"PARE":
            raise _encrypted(file, "an encrypted footer")


def check_columns(file: FileState, source: Any, metadata: pq.FileMetaData) -> None:
    """Raise `UnreadableFile` for encrypted columns below a footer that is not encrypted, and for a
    footer with other bytes."""
    with _stream(source) as stream:
        end = stream.seek(0, io.SEEK_END) - _LENGTH_AND_MAGIC
        stream.seek(end)
        length = int.from_bytes(stream.read(4), "little")
        # A signature follows such a footer. Others are not read twice, which takes a while.
        if length == metadata.serialized_size:
            return
        stream.seek(end - length)
        try:
            footer = read_struct(stream.read(length))
        except (IndexError, ValueError, RecursionError) as error:
            # Whether it is encrypted cannot be told, and Arrow would end the process.
            why = "the file is damaged: its footer is longer than what it says"
            raise UnreadableFile(file.path, why, hint=DAMAGED_HINT) from error
    if _ENCRYPTION_ALGORITHM in footer:
        raise _encrypted(file, "encrypted columns")


def _encrypted(file: FileState, what: str) -> UnreadableFile:
    return UnreadableFile(file.path, f"it has {what}", hint="write it without encryption")


@contextmanager
def _stream(source: Any) -> Iterator[Any]:
    if not isinstance(source, str):
        yield source
        return
    with Path(source).open("rb") as stream:
        yield stream
