"""Files opened as bytes, local or in S3, on the driver and in tasks."""

from __future__ import annotations

import io
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.sources.paths.file_state import FileState, is_s3
from lakeload_jobs.sources.paths.local_listing import not_a_file
from lakeload_jobs.sources.paths.objects import ObjectFile, SourceObjects, changed
from lakeload_jobs.sources.paths.source_bytes import Bytes

_RANGE = 1 << 20


@dataclass(frozen=True)
class FileBytes:
    """Opens the files of a table. It travels to the tasks, so it holds references to secrets and
    no secret: `identity` reads `s3://` paths, in sessions named after `label`."""

    identity: DestinationSpec | None = None
    label: str = ""

    @contextmanager
    def stream(self, file: FileState, start: int = 0) -> Iterator[Bytes]:
        """Open a file from byte `start` on. Raises `LoadFailed` and `AwsError`."""
        if is_s3(file.path):
            with self._objects.stream(file, start) as body:
                yield body
            return
        with _opened(file) as local:
            local.seek(start)
            yield local

    @contextmanager
    def seekable(self, file: FileState) -> Iterator[IO[bytes]]:
        """Open a file for reads in any order."""
        if is_s3(file.path):
            with io.BufferedReader(self.object_file(file), _RANGE) as ranges:
                yield cast("IO[bytes]", ranges)
            return
        with _opened(file) as local:
            yield local

    def object_file(self, file: FileState) -> ObjectFile:
        """Return an object in S3 as a file."""
        return ObjectFile(self._objects, file)

    @property
    def _objects(self) -> SourceObjects:
        if self.identity is None:
            raise ValueError("`s3://` paths need an S3 reader")
        key = repr((self.identity, self.label))
        # The driver reads in several threads.
        with _clients_lock:
            if key not in _clients:
                # Of a worker, which runs many tasks; no more than one, as sessions of a driver go
                # on.
                _clients.clear()
                _clients[key] = SourceObjects(AwsSession(self.identity, label=self.label))
            return _clients[key]


_clients: dict[str, SourceObjects] = {}
_clients_lock = threading.Lock()


@contextmanager
def _opened(file: FileState) -> Iterator[IO[bytes]]:
    try:
        opened = open(file.path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115
    except FileNotFoundError as error:
        raise changed(file.path, "was removed") from error
    except OSError as error:
        raise LoadFailed(
            f"reading `{file.path}`: {error.strerror}",
            hint="allow the user who runs lakeload to read it",
        ) from error
    with opened:
        mode = os.fstat(opened.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise not_a_file(file.path, mode)
        yield cast("IO[bytes]", opened)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file: a named pipe would wait for a program that writes."""
    return os.open(path, flags | os.O_NONBLOCK)
