"""How each engine names an Iceberg table, its past and its snapshots. Pure.

Trino: https://trino.io/docs/current/connector/iceberg.html (Athena's statements are Trino's);
Spark: https://iceberg.apache.org/docs/latest/spark-queries/;
DuckDB: https://duckdb.org/docs/current/core_extensions/iceberg/iceberg_functions;
Snowflake: https://docs.snowflake.com/en/user-guide/tables-iceberg-time-travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from lakeload.policy.text.snippets import ddl_name, name, text
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_JOB, SUMMARY_ROWS

LAKE = "lake"
"""What engines with several catalogs call this one in the queries."""

_ANY_SNAPSHOT = "1234567890123456789"


@dataclass(frozen=True)
class Words:
    """One table in one engine's SQL."""

    relation: str
    """What queries read from: the branch that is loaded, where the engine can name one."""
    instant: str
    """The literal of an example time."""
    at_time: str | None
    """The relation as it was then; None for another branch than `main`, whose times no engine
    keeps."""
    at_snapshot: str
    snapshots: str | None
    """The query for the snapshots, newest first; None where the engine has none."""
    jobs: bool = True
    """Whether that query tells which job made each."""


def athena_words(table: TableSpec, then: datetime) -> Words:
    """Return the words of Athena, which reads `main`."""
    return _trino_like(name(table.schema, table.table), table, (), then, "main")


def trino_words(table: TableSpec, then: datetime, branch: str) -> Words:
    """Return the words of Trino."""
    whole = name(LAKE, table.schema, table.table)
    return _trino_like(whole, table, (LAKE,), then, branch)


def spark_words(table: TableSpec, then: datetime, branch: str) -> Words:
    """Return the words of Spark SQL with Iceberg's runtime."""
    whole = ddl_name(LAKE, table.schema, table.table)
    instant = f"TIMESTAMP {text(_with_zone(then))}"
    return Words(
        relation=whole if branch == "main" else f"{whole} VERSION AS OF {text(branch)}",
        instant=instant,
        at_time=f"{whole} TIMESTAMP AS OF {instant}" if branch == "main" else None,
        at_snapshot=f"{whole} VERSION AS OF {_ANY_SNAPSHOT}",
        snapshots=_jobs(
            f"{whole}.`snapshots`",
            f"{whole}.`history`" if branch == "main" else None,
            f"summary[{text(SUMMARY_JOB)}] AS job_id",
            f"summary[{text(SUMMARY_ROWS)}] AS row_count",
        ),
    )


def duckdb_words(relation: str, then: datetime) -> Words:
    """Return the words of DuckDB, which reads `main`, for an attached table."""
    return Words(
        relation=relation,
        instant=f"TIMESTAMPTZ {text(f'{then:%Y-%m-%d %H:%M:%S}+00')}",
        at_time=f"{relation} AT (TIMESTAMP => TIMESTAMP {text(f'{then:%Y-%m-%d %H:%M:%S}')})",
        at_snapshot=f"{relation} AT (VERSION => {_ANY_SNAPSHOT})",
        snapshots=f"SELECT snapshot_id, timestamp_ms\nFROM iceberg_snapshots({relation})\n"
        "ORDER BY timestamp_ms DESC;",
        jobs=False,
    )


def snowflake_words(relation: str, then: datetime) -> Words:
    """Return the words of Snowflake, which reads `main`, for a table made there."""
    instant = f"{text(f'{then:%Y-%m-%d %H:%M:%S} +0000')}::TIMESTAMP_TZ"
    return Words(
        relation=relation,
        instant=instant,
        at_time=f"{relation} AT (TIMESTAMP => {instant})",
        at_snapshot=f"{relation} AT (VERSION => {_ANY_SNAPSHOT})",
        snapshots=None,
    )


def _trino_like(
    whole: str, table: TableSpec, catalog: tuple[str, ...], then: datetime, branch: str
) -> Words:
    instant = f"TIMESTAMP {text(_with_zone(then))}"
    main = branch == "main"
    return Words(
        relation=whole if main else f"{whole} FOR VERSION AS OF {text(branch)}",
        instant=instant,
        at_time=f"{whole} FOR TIMESTAMP AS OF {instant}" if main else None,
        at_snapshot=f"{whole} FOR VERSION AS OF {_ANY_SNAPSHOT}",
        snapshots=_jobs(
            name(*catalog, table.schema, f"{table.table}$snapshots"),
            name(*catalog, table.schema, f"{table.table}$history") if main else None,
            f"element_at(summary, {text(SUMMARY_JOB)}) AS job_id",
            f"element_at(summary, {text(SUMMARY_ROWS)}) AS row_count",
        ),
    )


def _jobs(snapshots: str, history: str | None, job: str, rows: str) -> str:
    """Join with the history of `main`: other snapshots are of branches, staged or left there."""
    columns = f"SELECT snapshot_id, {'made_current_at' if history else 'committed_at'}, operation,"
    if history is None:
        return f"{columns}\n  {job},\n  {rows}\nFROM {snapshots}\nORDER BY committed_at DESC;"
    return (
        f"{columns}\n  {job},\n  {rows}\nFROM {history}\nJOIN {snapshots} USING (snapshot_id)\n"
        "WHERE is_current_ancestor\nORDER BY made_current_at DESC;"
    )


def _with_zone(then: datetime) -> str:
    return f"{then.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
