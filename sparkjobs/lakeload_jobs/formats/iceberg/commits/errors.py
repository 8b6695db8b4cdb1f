"""Ends of a commit, beside success."""

from __future__ import annotations

from lakeload_jobs.contract.errors import LoadFailed


class CommitRejected(Exception):
    """The commit is certainly not in: another one came first, or it contradicts the table.

    `busy`: the catalog has not compared what it asserts with the table.
    """

    def __init__(self, message: str, *, busy: bool = False) -> None:
        super().__init__(message)
        self.busy = busy


class CommitUnknown(Exception):
    """The commit is in, or it is not: only a read of the table can tell.

    `overtaken`: the table has moved, so that what is not in by then cannot come in any more.
    """

    def __init__(self, message: str, *, overtaken: bool = False) -> None:
        super().__init__(message)
        self.overtaken = overtaken


class Unsupported(Exception):
    """The table has something that lakeload's own commits do not know: "the table has …".

    `hint` says what to do about it, where that is not to use another version.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def damaged(location: str, what: str, error: Exception) -> LoadFailed:
    """Return the error of a metadata file whose bytes are not what its format has."""
    why = " ".join(str(error).split())[:200] or type(error).__name__
    return LoadFailed(
        f"reading `{location}`: {what} is damaged: {why}",
        hint="restore the file from a copy, or roll the table back to a snapshot without it",
    )
