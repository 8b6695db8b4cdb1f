"""What stands in the way of a table in Glue: every message names both sides (F27, B23)."""

from __future__ import annotations

from lakeload_jobs.contract.errors import LoadFailed


class CatalogConflict(LoadFailed):
    """Glue holds something under our name that is not our table as this load would have it."""


def other_location(what: str, there: str, ours: str) -> CatalogConflict:
    """A database, table or partition that lies elsewhere."""
    return CatalogConflict(
        f"{what} lies at `{there}` and this destination's at `{ours}`",
        hint="set `bucket`, `prefix` and `glue_database_prefix` as they were when it was made, or "
        "drop it from Glue (the files stay): the next sync or `lakeload recover` makes it again",
    )


def not_a_parquet_table(table: str, kind: str) -> CatalogConflict:
    """A view, an Iceberg table, a table of another file format (F27)."""
    return CatalogConflict(
        f"Glue's `{table}` is {kind} and this destination writes an external Parquet table",
        hint="drop or rename it in Glue, or give the table another `name` in the pipeline",
    )


def other_keys(table: str, theirs: str, ours: str) -> CatalogConflict:
    """A table that is partitioned by something else."""
    return CatalogConflict(
        f"Glue's `{table}` is partitioned by {theirs} and this destination's table by {ours}",
        hint="set `partition_strategy` as it was, or drop the table from Glue (the files stay): "
        "lakeload makes it again with its own partition key",
    )


def other_projection(table: str, theirs: str, ours: str) -> CatalogConflict:
    """A table whose partitions Athena finds in another way."""
    return CatalogConflict(
        f"Glue's `{table}` has {theirs} and this destination's table {ours}",
        hint="set `partition_projection` and `partition_strategy` as they were, or drop the table "
        "from Glue (the files stay): lakeload makes it again",
    )


def other_strategy(table: str, theirs: str, ours: str) -> CatalogConflict:
    """A table whose folders are cut otherwise: Athena would read an hour again with its day."""
    return CatalogConflict(
        f"Glue's `{table}` was made with `partition_strategy: {theirs}` and the destination says "
        f"`{ours}`",
        hint=f"set `partition_strategy: {theirs}`, or load into a table of another name",
    )


def other_types(table: str, pairs: list[tuple[str, str, str]]) -> CatalogConflict:
    """Columns of two types: (name, Glue's, ours). Athena would fail on the files of one of them."""
    shown = ", ".join(
        f"`{name}` is `{theirs}` in Glue and `{ours}` in this load" for name, theirs, ours in pairs
    )
    return CatalogConflict(
        f"columns of Glue's `{table}` have other types, which Athena would refuse to read "
        f"(HIVE_BAD_DATA, HIVE_PARTITION_SCHEMA_MISMATCH): {shown}",
        hint="give the column Glue's type with `columns.types`, or load into another table",
    )


def unreadable_type(column: str, kind: str, why: str) -> CatalogConflict:
    """A column that a Glue table cannot have."""
    return CatalogConflict(
        f"column `{column}` is `{kind}`: {why}",
        hint="set `nested: JSON`, give it another type with `columns.types`, or exclude it",
    )
