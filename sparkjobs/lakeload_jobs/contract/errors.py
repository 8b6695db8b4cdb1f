"""The error family. Every expected failure is one of these, and its class decides the exit code."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """Exit codes are an API (docs/exit-codes.md)."""

    OK = 0
    TABLE_FAILED = 1
    INVALID = 2
    REFUSED = 3
    MACHINE = 4
    FOLLOW_UP_FAILED = 5
    BUG = 70
    INTERRUPTED = 130


_WORST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.TABLE_FAILED,
    ExitCode.BUG,
    ExitCode.MACHINE,
    ExitCode.INVALID,
    ExitCode.REFUSED,
    ExitCode.FOLLOW_UP_FAILED,
    ExitCode.OK,
)


def worst_exit(codes: Iterable[int]) -> ExitCode:
    """Return the exit code of several ends: that of the worst of them, OK for none."""
    return min(map(ExitCode, codes), key=_WORST_FIRST.index, default=ExitCode.OK)


def shared_exit(codes: Iterable[int]) -> ExitCode:
    """Return the exit code of several failures: the one they share, else TABLE_FAILED."""
    found = set(codes)
    return ExitCode(found.pop()) if len(found) == 1 else ExitCode.TABLE_FAILED


ERROR_CODES_PAGE = "error-codes/"
"""The page of error types and codes, from the root of the documentation site."""


def anchor(code: str) -> str:
    """Return the anchor of an error type or code on its page: `NoFiles` is at `no-files`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "-", code)
    return words.strip("-").lower()


def docs_link(code: str) -> str:
    """Return the link to the explanation of an error type or code, from the root of the site."""
    return f"{ERROR_CODES_PAGE}#{anchor(code)}"


class LakeloadError(Exception):
    """An expected failure: what was being done and what happened, and in `hint` what to do next."""

    exit_code: ClassVar[ExitCode] = ExitCode.TABLE_FAILED

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.retryable = retryable

    def __reduce__(self) -> tuple[object, ...]:
        # Those of subclasses have other arguments.
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(
    kind: type[LakeloadError], args: tuple[object, ...], state: dict[str, object]
) -> LakeloadError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidInput(LakeloadError):
    """A flag or a document is wrong; running it again unchanged cannot help."""

    exit_code = ExitCode.INVALID


class Refused(LakeloadError):
    """AWS, a catalog, a source or the network said no before any table started."""

    exit_code = ExitCode.REFUSED


class MachineNotReady(LakeloadError):
    """This machine lacks Java, Spark, a jar, memory or disk."""

    exit_code = ExitCode.MACHINE


class JavaNeeded(MachineNotReady):
    """A table needs the Java code of its format, and Spark was started without it.

    The command line then starts Spark again, with the jars. Users see this where that fails."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"`{target}` needs the Java code of its table format: {reason}")
        self.reason = reason


class LoadFailed(LakeloadError):
    """One table could not be loaded; its data is not in."""

    exit_code = ExitCode.TABLE_FAILED


class NewerFormat(LoadFailed):
    """What is stored was written by a newer lakeload than this one."""

    def __init__(self, what: str, found: int, newest: int) -> None:
        super().__init__(
            f"{what} was written by a newer lakeload: it has format {found}, but this one reads "
            f"formats up to {newest}",
            hint="upgrade lakeload on this machine, as with `pip install --upgrade lakeload`",
        )


class FollowUpFailed(LakeloadError):
    """All data is in; something that follows a commit did not work."""

    exit_code = ExitCode.FOLLOW_UP_FAILED


class CommitConflict(FollowUpFailed):
    """Another writer changed the same part of a table first, every time: nobody's load failed."""


class Interrupted(LakeloadError):
    """Stopped by the user or the system."""

    exit_code = ExitCode.INTERRUPTED


DISK_FULL_HINT = (
    "free space, or use a larger disk: `spark.local.dir` in `spark.conf` for Spark's temporary "
    "files, LAKELOAD_RUN_DIR for runs and their logs, LAKELOAD_CACHE_DIR for the cache"
)


def disk_full(error: BaseException) -> MachineNotReady | None:
    """Return the failure of a write to a disk or quota that is full; None for any other error."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = f"`{error.filename}`" if error.filename else "a file"
        return MachineNotReady(f"the disk is full: writing {what} failed", hint=DISK_FULL_HINT)
    return None
