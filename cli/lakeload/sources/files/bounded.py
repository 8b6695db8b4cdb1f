"""Inspection of files in a process of its own, so that no file can take the command down.

Native code may end its process, run without end or take all memory, whatever Python does about it.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from lakeload.sources.files.formats.base import InspectedFile
from lakeload.sources.files.inspection import inspect_file, not_inspected
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.sizes import format_size
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState

SECONDS = 60
"""Timeout of the inspection of one file."""
MEMORY = 2 << 30
"""Limit of the memory that the process takes beside what the command has, in bytes."""


def inspect_files(files: Sequence[FileState], opener: FileBytes) -> Iterator[InspectedFile]:
    """Yield what files hold, as `inspect_file` does; a file that takes more than `SECONDS` or
    `MEMORY`, or ends the process, has an `error`. Raises `AwsError`."""
    done = 0
    while done < len(files):
        for found in _in_process(files[done:], opener):
            done += 1
            yield found


def _in_process(files: Sequence[FileState], opener: FileBytes) -> Iterator[InspectedFile]:
    """Yield what the first files hold, up to one that the process does not survive."""
    # With `fork` nothing is imported again; nothing was read before, so no thread of Arrow is lost.
    context = multiprocessing.get_context("fork")
    results, sender = context.Pipe(duplex=False)
    process = context.Process(target=_inspect_all, args=(tuple(files), opener, sender), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, from Python 3.12 on
        process.start()
    sender.close()
    try:
        for file in files:
            if not results.poll(SECONDS):
                yield not_inspected(file, f"its inspection takes more than {SECONDS} seconds")
                return
            try:
                found = results.recv()
            except EOFError:
                process.join()
                yield not_inspected(file, _ending(process.exitcode))
                return
            if isinstance(found, LakeloadError):
                raise found
            yield found
    finally:
        process.kill()
        process.join()
        results.close()


def _ending(status: int | None) -> str:
    ended = f"exit status {status}"
    if status is not None and status < 0:
        ended = signal.Signals(-status).name
    limit = format_size(MEMORY)
    return f"its inspection was ended by {ended}: it is damaged, or needs more than {limit}"


def _inspect_all(files: Sequence[FileState], opener: FileBytes, sender: Connection) -> None:
    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # native code says there how it ends
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    # What the fork has inherited counts; at the limit, Python waits for ever for a new thread.
    limit = data_size() + MEMORY
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    for file in files:
        try:
            sender.send(inspect_file(file, opener))
        except LakeloadError as error:
            sender.send(error)
            return


def data_size() -> int:
    """Return the bytes of this process that RLIMIT_DATA counts; 0 where only Linux would tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except OSError:
        return 0
    return pages * resource.getpagesize()
