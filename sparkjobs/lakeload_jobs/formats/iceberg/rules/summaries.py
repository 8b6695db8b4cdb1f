"""Numbers of a load in the summary of its snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from lakeload_jobs.contract.result import RowChanges
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_DELETED, SUMMARY_MODE, SUMMARY_ROWS

_MERGED = "spark.merge-into.num-target-rows-"


def changes(summary: Mapping[str, str]) -> RowChanges | None:
    """Return what an UPSERT did; None for what is none, and where its numbers are false."""
    if summary.get(SUMMARY_MODE) != "UPSERT":
        return None
    if not any(name.startswith(_MERGED) for name in summary):
        # Every row was replaced, or none had to be written.
        return RowChanges(number_in(summary, "added-records"), 0, 0)
    return merged_rows(summary)


def merged_rows(summary: Mapping[str, str]) -> RowChanges | None:
    """Return what a MERGE did; None where its numbers are not those of its files. Spark counts some
    rows twice, such as those of a sorted table, of which it takes a sample first."""
    found = RowChanges(*(number_in(summary, f"{_MERGED}{what}") for what in _ACTIONS))
    copied = number_in(summary, f"{_MERGED}copied")
    in_files = found.inserted + found.updated + copied
    return found if in_files == number_in(summary, "added-records") else None


_ACTIONS = ("inserted", "updated", "deleted")


def beyond(done: RowChanges, summary: Mapping[str, str], *, copies: bool) -> int:
    """Return how many rows the snapshot of a MERGE has more in its files than it did.

    Where files were rewritten, their other rows are in them again; deletes that had been beside
    them are not told apart, and nothing is compared.
    """
    added = number_in(summary, "added-records")
    if not copies:
        return added - done.inserted - done.updated
    beside = ("total-position-deletes", "removed-position-deletes", "total-equality-deletes")
    if any(number_in(summary, name) for name in beside):
        return 0
    return added - number_in(summary, "deleted-records") - (done.inserted - done.deleted)


def loaded_rows(summary: Mapping[str, str]) -> int:
    """Return the rows of the load as they were counted, else those that the snapshot brought."""
    if SUMMARY_ROWS in summary:
        return number_in(summary, SUMMARY_ROWS)
    merged = changes(summary)
    rows = number_in(summary, "added-records") if merged is None else merged.rows
    return max(rows - number_in(summary, SUMMARY_DELETED), 0)


def number_in(summary: Mapping[str, str], name: str) -> int:
    """Return a number of a summary, 0 where its writer left it out."""
    text = summary.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else 0
