"""What to ask of the tables of a pipeline in Athena (F72, F73). Pure.

https://docs.aws.amazon.com/athena/latest/ug/select.html and, for Iceberg,
https://docs.aws.amazon.com/athena/latest/ug/querying-iceberg-time-travel-and-version-travel-queries.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakeload.policy.engines.athena_table import create_table
from lakeload.policy.engines.iceberg_queries import iceberg_queries
from lakeload.policy.engines.iceberg_words import athena_words
from lakeload.policy.engines.table_queries import shared_queries
from lakeload.policy.iam.glue import uses_glue
from lakeload.policy.text.snippets import Snippet, name, text
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec, Nested, TableSpec
from lakeload_jobs.core.layout import partition_path
from lakeload_jobs.core.names import PARTITION_KEY


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
            hint="`--for` trino, spark, duckdb, pyiceberg and snowflake read other catalogs",
        )
    return iceberg_queries(table, athena_words(table, now - timedelta(days=1)), tracking)


def athena_access(destination: DestinationSpec) -> tuple[Snippet, ...]:
    """Say what has to be set up for Iceberg tables: nothing but permissions."""
    if destination.table_format != "ICEBERG" or not uses_glue(destination):
        return ()
    why = (
        "Nothing: Athena (engine version 3) reads the tables of AWS Glue as they are. Who queries "
        "needs the policies of `lakeload policy --read-only` and, where Lake Formation guards the "
        "catalog, the grants of `--for lake-formation --read-only`."
    )
    if destination.iceberg.format_version > 2:
        why += (
            "\nAthena documents format version 2 alone, and this destination makes tables of "
            f"version {destination.iceberg.format_version}: try it before relying on it."
        )
    return (Snippet("what to set up", "", why),)
