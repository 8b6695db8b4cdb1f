"""Hash of a source file's content, by which a file that was only written again is known.

It is taken by a read of its own: the read that loads leaves out columns, or is Spark's. Who keeps
the hash compares the file's identity before and after, so that it is that of what was loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.paths.file_state import FileState, is_s3
from lakeload_jobs.sources.paths.objects import SourceObjects, changed
from lakeload_jobs.sources.paths.source_bytes import Bytes
from lakeload_jobs.sources.readers import SourceReaders

_CHUNK = 8 << 20
_AT_ONCE = 4


def content_hashes(
    files: Sequence[FileState], source: FilesInput, readers: SourceReaders | None = None
) -> tuple[str, ...]:
    """Return the hash of each file: the SHA-256 of the SHA-256 of its chunks of 8 MiB.

    `readers` are needed for `s3://` paths alone. Raises `LoadFailed` for a file that cannot be read
    or is not there any more, and `AwsError`.
    """
    objects: SourceObjects | None = None
    if any(is_s3(file.path) for file in files):
        if readers is None:
            raise ValueError("`s3://` paths need an S3 reader")
        objects = readers.objects(source)

    def content_hash(file: FileState) -> str:
        whole = hashlib.sha256()
        with _opened(file, objects) as stream:
            while chunk := _read(stream):
                whole.update(hashlib.sha256(chunk).digest())
        return whole.hexdigest()

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="content") as pool:
        return tuple(pool.map(content_hash, files))


@contextmanager
def _opened(file: FileState, objects: SourceObjects | None) -> Iterator[Bytes]:
    if objects is not None and is_s3(file.path):
        with objects.stream(file, 0) as body:
            yield body
        return
    try:
        with Path(file.path).open("rb", buffering=0) as opened:
            yield opened
    except FileNotFoundError as error:
        raise changed(file.path, "was removed") from error
    except OSError as error:
        raise LoadFailed(
            f"reading `{file.path}`: {error.strerror}",
            hint="allow the user who runs lakeload to read it",
        ) from error


def _read(stream: Bytes) -> bytes:
    """Return the next chunk, shorter only at the end."""
    pieces: list[bytes] = []
    left = _CHUNK
    while left and (piece := stream.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
