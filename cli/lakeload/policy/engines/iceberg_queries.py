"""What to ask of an Iceberg table: its rows, its jobs, its past, in any engine's SQL (F72, F73)."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload.policy.engines.iceberg_words import Words
from lakeload.policy.engines.table_queries import latest_sync, newest_rows, rows_of_each_job
from lakeload.policy.text.snippets import Snippet
from lakeload_jobs.contract.spec import TableSpec


def iceberg_queries(table: TableSpec, words: Words, tracking: Sequence[str]) -> tuple[Snippet, ...]:
    """Return the queries that this table can answer.

    Which they are follows from `mode`: APPEND keeps every version of a row, UPSERT the newest,
    OVERWRITE the last job's. One whose tracking columns the pipeline does not write is left out.
    """
    return (*iceberg_rows(table, words, tracking), *_past(table, words))


def iceberg_rows(table: TableSpec, words: Words, tracking: Sequence[str]) -> tuple[Snippet, ...]:
    """Return those queries alone that need nothing of the table's past."""
    return (*_rows(table, words, set(tracking)), *_since(table, words, tracking))


def _rows(table: TableSpec, words: Words, have: set[str]) -> list[Snippet]:
    found = []
    relation = words.relation
    if table.mode != "OVERWRITE" and "_supa_job_id" in have:
        if "_supa_synced" in have:
            found.append(latest_sync(table, relation))
        found.append(rows_of_each_job(table, relation, "_supa_synced" in have))
        found.append(_one_job(table, relation))
    if table.mode == "APPEND" and {"_supa_id", "_supa_synced"} <= have:
        found.append(newest_rows(table, relation, have))
    if table.mode != "APPEND" and table.deleted_when and "_supa_deleted" in have:
        found += _alive(table, relation)
    return found


def _one_job(table: TableSpec, relation: str) -> Snippet:
    why = "`lakeload runs` and the query above list the ids."
    if table.mode == "UPSERT":
        why += " Rows that a later job replaced are that job's."
    return Snippet(
        f"{table.target}: the rows of one job",
        f"SELECT *\nFROM {relation}\nWHERE _supa_job_id = '<JOB_ID>';",
        why,
    )


def _alive(table: TableSpec, relation: str) -> list[Snippet]:
    """With `deletes: DELETE` no deleted row is there to be left out."""
    if table.mode == "UPSERT" and table.deletes == "DELETE":
        return []
    return [
        Snippet(
            f"{table.target}: the rows that are not deleted",
            f"SELECT *\nFROM {relation}\nWHERE NOT _supa_deleted;",
            "`deleted_when` marks rows and the table keeps them.",
        )
    ]


def _since(table: TableSpec, words: Words, tracking: Sequence[str]) -> list[Snippet]:
    if "_supa_synced" not in tracking or table.mode == "OVERWRITE":
        return []
    return [
        Snippet(
            f"{table.target}: the loads since a time",
            f"SELECT *\nFROM {words.relation}\nWHERE _supa_synced >= {words.instant};",
            "Iceberg knows the least and greatest value of each file and reads only those it must.",
        )
    ]


def _past(table: TableSpec, words: Words) -> list[Snippet]:
    found = []
    where = "that `lakeload sync` and `lakeload runs -v` tell"
    if words.snapshots is not None:
        where = "of the query above"
        found.append(_snapshots(table, words.snapshots, jobs=words.jobs))
    if words.at_time is not None:
        found.append(
            Snippet(
                f"{table.target}: as it was at a time",
                f"SELECT *\nFROM {words.at_time};",
                "A time before the first snapshot, or before the oldest that is kept, is an error.",
            )
        )
    found.append(
        Snippet(
            f"{table.target}: as one snapshot left it",
            f"SELECT *\nFROM {words.at_snapshot};",
            f"Replace the number by a `snapshot_id` {where}.",
        )
    )
    return found


def _snapshots(table: TableSpec, query: str, *, jobs: bool) -> Snippet:
    made = ", and the jobs that made them" if jobs else ""
    told = (
        "Those without a job are not of lakeload's loads: maintenance, or another writer."
        if jobs
        else "`lakeload runs -v` tells which job made one. Some may be of loads that are staged, "
        "or that died before they were published."
    )
    return Snippet(
        f"{table.target}: its snapshots{made}",
        query,
        f"Each load is one snapshot, for as long as snapshots are kept. {told}",
    )
