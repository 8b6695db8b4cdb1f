"""What to ask of the tables of a pipeline in Athena (F72, F73). Pure.

https://docs.aws.amazon.com/athena/latest/ug/select.html and, for Iceberg,
https://docs.aws.amazon.com/athena/latest/ug/querying-iceberg-time-travel-and-version-travel-queries.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakeload.policy.athena_table import create_table
from lakeload.policy.glue import uses_glue
from lakeload.policy.snippets import Snippet, name, text
from lakeload.policy.table_queries import shared_queries
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec, Nested, TableSpec
from lakeload_jobs.rules.layout import partition_path
from lakeload_jobs.rules.names import PARTITION_KEY

_ANY_SNAPSHOT = "1234567890123456789"


def athena_queries(
    destination: DestinationSpec,
    table: TableSpec,
    tracking: Sequence[str],
    *,
    now: datetime,
    nested: Nested = "NATIVE",
) -> tuple[Snippet, ...]:
    """Return statements for one table; `now` is the end of the example ranges.

    A Parquet table that is not in Glue gets the statements that make it one Athena can read.
    Raises `InvalidInput` for an Iceberg catalog that Athena does not read.
    """
    now = now.astimezone(UTC)
    if destination.table_format == "ICEBERG":
        return _iceberg_queries(destination, table, tracking, now)
    made: tuple[Snippet, ...] = ()
    if not uses_glue(destination):
        made = create_table(destination, table, tracking, nested)
        table = _as_athena_names(table)
    relation = name(table.schema, table.table)
    only = _injected(destination)
    ranges = _partition_query(destination, table, relation, tracking, now)
    return (*made, *shared_queries(table, relation, tracking, only), *ranges)


def _as_athena_names(table: TableSpec) -> TableSpec:
    """Fold the names as Athena does; a table without a schema goes into `default`."""
    return replace(table, schema=(table.schema or "default").lower(), table=table.table.lower())


def _injected(destination: DestinationSpec) -> str:
    """Return the condition without which Athena refuses to project job ids, or ''."""
    parquet = destination.parquet
    projected = parquet.partition_projection or not parquet.update_glue_catalog
    if parquet.partition_strategy == "SYNC_ID" and projected:
        return f"{PARTITION_KEY} IN ('<JOB_ID>')"
    return ""


def _partition_query(
    destination: DestinationSpec,
    table: TableSpec,
    relation: str,
    tracking: Sequence[str],
    now: datetime,
) -> tuple[Snippet, ...]:
    strategy = destination.parquet.partition_strategy
    if strategy == "SYNC_ID":
        return (
            Snippet(
                f"{table.target}: the rows of one job",
                f"SELECT *\nFROM {relation}\nWHERE {PARTITION_KEY} = '<JOB_ID>';",
                f"The partition key `{PARTITION_KEY}` is the job's id: no other files are read. "
                "`lakeload runs` lists the ids.",
            ),
        )
    if strategy == "NONE":
        return _range_by_column(table, relation, tracking, now)
    day = partition_path("DAY", now, "")
    hours = f"BETWEEN {text(f'{day}/00')} AND {text(f'{day}/23')}"
    return (
        Snippet(
            f"{table.target}: the loads of one day",
            f"SELECT *\nFROM {relation}\n"
            f"WHERE {PARTITION_KEY} {f'= {text(day)}' if strategy == 'DAY' else hours};",
            f"`{PARTITION_KEY}` is text, the UTC time of the load. Name it whenever you can: "
            "Athena bills what it reads, and `_supa_synced` alone makes it read every file.",
        ),
    )


def _range_by_column(
    table: TableSpec, relation: str, tracking: Sequence[str], now: datetime
) -> tuple[Snippet, ...]:
    if "_supa_synced" not in tracking:
        return ()
    since = f"{now - timedelta(days=1):%Y-%m-%d %H:%M:%S}"
    return (
        Snippet(
            f"{table.target}: the loads since a time",
            f"SELECT *\nFROM {relation}\nWHERE _supa_synced >= TIMESTAMP {text(since)};",
            "`_supa_synced` is UTC. The table has no partitions.",
        ),
    )


def _iceberg_queries(
    destination: DestinationSpec, table: TableSpec, tracking: Sequence[str], now: datetime
) -> tuple[Snippet, ...]:
    if not uses_glue(destination):
        kind = destination.iceberg.catalog.type
        raise InvalidInput(
            f"writing queries for Athena: it reads Iceberg tables from AWS Glue, and the catalog "
            f"of this destination is `{kind}`",
            hint="`--for snowflake` writes what Snowflake needs to read them",
        )
    relation = name(table.schema, table.table)
    return (
        *shared_queries(table, relation, tracking),
        *_range_by_column_of_iceberg(table, relation, tracking, now),
        *_time_travel(table, relation, now),
    )


def _range_by_column_of_iceberg(
    table: TableSpec, relation: str, tracking: Sequence[str], now: datetime
) -> tuple[Snippet, ...]:
    """The column is a timestamp with time zone there."""
    if "_supa_synced" not in tracking:
        return ()
    since = f"{now - timedelta(days=1):%Y-%m-%d %H:%M:%S} UTC"
    return (
        Snippet(
            f"{table.target}: the loads since a time",
            f"SELECT *\nFROM {relation}\nWHERE _supa_synced >= TIMESTAMP {text(since)};",
            "Iceberg knows the least and greatest value of each file and reads only those it must.",
        ),
    )


def _time_travel(table: TableSpec, relation: str, now: datetime) -> tuple[Snippet, ...]:
    then = f"{now - timedelta(days=1):%Y-%m-%d %H:%M:%S} UTC"
    snapshots = name(table.schema, f"{table.table}$snapshots")
    return (
        Snippet(
            f"{table.target}: its snapshots",
            f"SELECT snapshot_id, committed_at, operation, summary\nFROM {snapshots}\n"
            "ORDER BY committed_at DESC;",
            "Each load is one snapshot, for as long as snapshots are kept.",
        ),
        Snippet(
            f"{table.target}: as it was at a time",
            f"SELECT *\nFROM {relation}\nFOR TIMESTAMP AS OF TIMESTAMP {text(then)};",
            "A time before the first snapshot is an error.",
        ),
        Snippet(
            f"{table.target}: as one snapshot left it",
            f"SELECT *\nFROM {relation}\nFOR VERSION AS OF {_ANY_SNAPSHOT};",
            "Replace the number by a `snapshot_id` of the query above.",
        ),
    )
