"""The questions every table with tracking columns answers, in SQL that engines share (F72).

Athena, Trino, Spark, DuckDB and Snowflake read each of these statements as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeload.policy.text.snippets import Snippet
from lakeload_jobs.contract.spec import TableSpec


def shared_queries(
    table: TableSpec, relation: str, tracking: Sequence[str], only: str = ""
) -> tuple[Snippet, ...]:
    """Return the latest sync, the rows of each job and the newest row of each record.

    `relation` is the table as the engine names it. `only` is a condition that every query of the
    table needs; which job is the latest cannot be asked then. A query whose tracking columns the
    pipeline does not write is left out.
    """
    have = set(tracking)
    found = []
    if not only and {"_supa_job_id", "_supa_synced"} <= have:
        found.append(latest_sync(table, relation))
    if "_supa_job_id" in have:
        found.append(rows_of_each_job(table, relation, "_supa_synced" in have, only))
    if {"_supa_id", "_supa_synced"} <= have:
        found.append(newest_rows(table, relation, have, only))
    return tuple(found)


def latest_sync(table: TableSpec, relation: str) -> Snippet:
    """Return the query for the rows of the newest job."""
    return Snippet(
        f"{table.target}: the rows of the latest sync",
        "\n".join(
            [
                "SELECT *",
                f"FROM {relation}",
                "WHERE _supa_job_id = (",
                "  SELECT max_by(_supa_job_id, _supa_synced)",
                f"  FROM {relation}",
                ");",
            ]
        ),
        "The next query lists the job ids; write one there to see an earlier sync.",
    )


def rows_of_each_job(table: TableSpec, relation: str, timed: bool, only: str = "") -> Snippet:
    """Return the query for the rows of each job, the newest first where they are `timed`."""
    columns = "_supa_job_id, count(*) AS row_count"
    order = "row_count DESC"
    if timed:
        columns += ", min(_supa_synced) AS synced"
        order = "synced DESC"
    lines = [f"SELECT {columns}", f"FROM {relation}", *([f"WHERE {only}"] if only else [])]
    return Snippet(
        f"{table.target}: how many rows each job brought",
        "\n".join([*lines, "GROUP BY _supa_job_id", f"ORDER BY {order};"]),
        "A job that brought no row has none here." + _name_all(only),
    )


def newest_rows(table: TableSpec, relation: str, have: set[str], only: str = "") -> Snippet:
    """Return the query for the newest version of each row; `have` are the tracking columns."""
    order = ["_supa_synced DESC", *(["_supa_index DESC"] if "_supa_index" in have else [])]
    alive = "\n  AND NOT _supa_deleted" if "_supa_deleted" in have else ""
    inner = [
        "  SELECT *, row_number() OVER (",
        f"    PARTITION BY _supa_id ORDER BY {', '.join(order)}",
        "  ) AS age",
        f"  FROM {relation}",
        *([f"  WHERE {only}"] if only else []),
    ]
    key = ", ".join(table.primary_key)
    why = (
        f"`_supa_id` stands for the primary key ({key}): one row for each key"
        + (", and none for a key whose newest row is deleted." if alive else ".")
        if key
        else "The table has no `primary_key`, so `_supa_id` stands for the whole row: this takes "
        "away rows that were loaded twice, and cannot tell a new version of a row from a new row."
    )
    return Snippet(
        f"{table.target}: the newest version of each row",
        "\n".join(["SELECT *", "FROM (", *inner, ") AS versions", f"WHERE age = 1{alive};"]),
        why + _name_all(only),
    )


def _name_all(only: str) -> str:
    return "\nName every job that is to be looked at." if only else ""
