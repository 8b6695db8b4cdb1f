"""Rows of an UPSERT with the same key: all but the last are lost, which may not be meant."""

from __future__ import annotations

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import SameKey
from lakeload_jobs.contract.spec import OnSameKey, TableSpec


class KeyNotUnique(LoadFailed):
    """Several rows of a load have the same `primary_key`, and `on_same_key` is FAIL."""


def same_key_sentence(
    table: TableSpec, same: SameKey | None, of: int, *, loaded_before: bool
) -> tuple[OnSameKey, str]:
    """Return what to say of rows that later ones of the load replaced, '' for none, and how.

    Raises `KeyNotUnique` where `on_same_key` is FAIL, as it is where the document names the key of
    a table of a database: one that earlier versions have loaded gets a warning so far.
    """
    policy = table.on_same_key or ("FAIL" if table.names_database_key else "WARN")
    if same is None:
        return policy, ""
    what = (
        f"{same.rows:,} of {of:,} rows were replaced by later rows of this load with the same "
        f"`primary_key`, such as {same.example}; if they are different records, it lacks a column"
    )
    if policy != "FAIL":
        return policy, what
    if table.on_same_key is None and loaded_before:
        return "WARN", f"{what}. From the next version on this is an error (`on_same_key`)"
    raise KeyNotUnique(
        f"the `primary_key` of `{table.source}` is not unique: {same.rows:,} of {of:,} rows have "
        f"the key of a later row of this load, such as {same.example}; nothing was committed",
        hint="name the columns in `primary_key` that identify a row, or set `on_same_key: WARN` "
        "for the table to load the last row of each key",
    )
