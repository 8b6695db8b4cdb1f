"""The account of a load before its commit: each row that was read is in exactly one place."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lakeload_jobs.contract.errors import LoadFailed


@dataclass(frozen=True)
class Balance:
    """How many rows a load has read, and what became of them.

    `written` are those that the footers of the data files or the staged snapshot count.
    """

    read: int
    written: int
    dropped: int = 0
    """Rows for which `where` is not true, where tasks evaluate it; Spark drops them before they are
    counted as read."""
    rejected: int = 0
    same_key: int = 0
    unchanged: int = 0
    ignored: int = 0
    without_row: int = 0
    """Deletes of rows that the table does not have."""
    twins: int = 0
    """Rows of the table that share a key with another one: each row of the load meets them all."""


_PLACES = {
    "written": "written",
    "dropped": "dropped by `where`",
    "rejected": "set aside",
    "same_key": "replaced by a later row with the same key",
    "unchanged": "equal to the row of the table",
    "ignored": "older than the row of the table",
    "without_row": "deletes of rows that the table does not have",
}


def check_balance(balance: Balance, target: str) -> None:
    """Raise `LoadFailed` with the numbers where a row is missing or there is one too many."""
    counts = {field.name: getattr(balance, field.name) for field in fields(balance)}
    together = sum(counts[name] for name in _PLACES)
    if together == balance.read + balance.twins and min(counts.values()) >= 0:
        return
    parts = [
        f"{counts[name]:,} {what}"
        for name, what in _PLACES.items()
        if counts[name] or name == "written"
    ]
    more = f" and {balance.twins:,} more for rows of the table that share a key"
    raise LoadFailed(
        f"the rows of `{target}` do not add up: {balance.read:,} read"
        f"{more if balance.twins else ''}, {', '.join(parts)}; nothing was committed",
        hint="load only complete files that no process writes to, and run again; if the numbers "
        "differ again, report it with the log of Spark",
        retryable=True,
    )
