"""Cache folder: atomic writes, cleanup of unused files, and the zip of the job."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import marshal
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import BinaryIO

import platformdirs

import lakeload_jobs
from lakeload_jobs.contract.errors import MachineNotReady
from lakeload_jobs.contract.maintain import SECONDS_A_DAY

_LOOK_AGAIN = 0.2


@contextlib.contextmanager
def only_maker(part: Path, waiting: Callable[[], None]) -> Iterator[BinaryIO]:
    """Yield the unfinished file `part`, open and locked, with what an earlier maker left in it.

    The kernel lets go of the lock when a process dies, however it dies. `waiting` is called once
    in a while until another maker has ended; what it raises ends the wait. Whoever finishes
    renames `part` inside of the block. Raises `OSError`, also where the file system has no locks.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    while True:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "r+b", buffering=0) as file:
            _lock(file, waiting)
            # Its maker may have renamed it meanwhile: then this is a finished file's lock.
            if _is_still(file, part):
                yield file
                return


def finish(file: BinaryIO, part: Path, target: Path) -> None:
    """Give the unfinished file its name, with its bytes on the disk. Raises `OSError`."""
    os.fchmod(file.fileno(), 0o644)
    os.fsync(file.fileno())
    part.replace(target)


def _lock(file: BinaryIO, waiting: Callable[[], None]) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise OSError(error.errno, "its file system has no file locks") from error
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            waiting()
            time.sleep(_LOOK_AGAIN)
        else:
            return


def _is_still(file: BinaryIO, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(file.fileno())
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


DAYS = 30
"""Longer than any load runs."""


def mark_used(path: Path) -> None:
    """Remember that a file is used from now on, before looking whether it is there.

    Does nothing where it is not, or belongs to somebody else.
    """
    with _locked(path.parent, fcntl.LOCK_SH), contextlib.suppress(OSError):
        # By what it opened: another may take the name meanwhile, with a time of its own.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.utime(file, ns=(time.time_ns(), os.fstat(file).st_mtime_ns))
        finally:
            os.close(file)


def remove_unused(folder: Path, *patterns: str, keep: Collection[str] = ()) -> tuple[Path, ...]:
    """Remove what matches a pattern, is not named in `keep`, and was not used for `DAYS`.

    Returns what was removed. Whoever marks a file at the same moment keeps it. Never fails: where
    locks are not to be had, or something cannot be removed, it stays.
    """
    oldest = time.time() - DAYS * SECONDS_A_DAY
    removed = []
    with _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as alone:
        found = [path for pattern in patterns for path in folder.glob(pattern)] if alone else []
        for path in sorted(set(found)):
            with contextlib.suppress(OSError):
                if path.name not in keep and _last_used(path) < oldest:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    removed.append(path)
    return tuple(removed)


def _last_used(path: Path) -> float:
    status = path.stat()
    return max(status.st_atime, status.st_mtime)


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[bool]:
    """Lock a folder of the cache for a moment; yield whether that could be done."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, how)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNCHECKED = (1).to_bytes(4, "little")
_DIGITS = 16


def jobs_directory() -> Path:
    """Return the folder of the installed `lakeload_jobs` package."""
    return Path(lakeload_jobs.__path__[0])


def entry_script() -> Path:
    """Return the script given to spark-submit."""
    return jobs_directory() / "entry" / "run_job.py"


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return LAKELOAD_CACHE_DIR, else the platform's cache directory."""
    if configured := environment.get("LAKELOAD_CACHE_DIR"):
        return Path(configured).absolute()
    return platformdirs.user_cache_path("lakeload", appauthor=False)


def jobs_package(cache: Path, source: Path | None = None) -> Path:
    """Return the zip of the package, made once per content and version of Python.

    Beside its modules it holds their byte code: Python never keeps that of what it imports from a
    zip, so driver and workers of every run would compile them anew. Whoever makes one removes those
    that have not been used for a long time: each version of lakeload has its own. Raises
    `MachineNotReady` when the cache cannot be written, or Spark could not take the zip from there.
    """
    if "," in str(cache):
        raise MachineNotReady(
            f"Spark cannot use files in `{cache}`: it splits names at commas",
            hint="set LAKELOAD_CACHE_DIR to a folder without that character",
        )
    root = source or jobs_directory()
    files = {
        f"{root.name}/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    digest = hashlib.sha256(MAGIC_NUMBER)
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    target = cache / f"{root.name}-{digest.hexdigest()[:_DIGITS]}.zip"
    mark_used(target)
    if target.is_file():
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=cache, prefix=f".{root.name}-", suffix=".part", delete=False
        ) as part:
            _write(files, Path(part.name))
        # Another sync may be doing the same: both write the same modules, and one name remains.
        os.replace(part.name, target)  # noqa: PTH105 (a name, not a path, is at hand)
    except OSError as error:
        raise MachineNotReady(
            f"writing `{target}` failed: {error.strerror}",
            hint="set LAKELOAD_CACHE_DIR to a writable folder",
        ) from error
    remove_unused(cache, f"{root.name}-{'[0-9a-f]' * _DIGITS}.zip", f".{root.name}-*.part")
    return target


def _write(files: Mapping[str, bytes], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
            if name.endswith(".py"):
                code = zipfile.ZipInfo(f"{name}c", _EPOCH)
                archive.writestr(code, _byte_code(name, content), zipfile.ZIP_DEFLATED)


def _byte_code(name: str, source: bytes) -> bytes:
    """Return the content of a `.pyc` that is taken without a look at the source (PEP 552).

    A Python of another version passes it over and compiles the source.
    """
    code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
    return MAGIC_NUMBER + _UNCHECKED + source_hash(source) + code
