"""Rejected records that abandoned loads have left in the side table of an Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.formats.iceberg.catalogs.changes import settle_partition, until_committed
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables, committable
from lakeload_jobs.formats.iceberg.rules.rejects import (
    ROUND_COLUMN,
    fate_of,
    is_forgotten,
    pending_rejects,
)


def settle_rejects(
    tables: CatalogTables, table: TableSpec, summary: Mapping[str, str], own: str | None = None
) -> None:
    """Remove the rejected records of rounds that were not published and cannot be any more.
    `summary` is that of the snapshots.

    `own` is the branch of a round of this attempt that has ended. Others stay remembered for a
    while: one that was paused may yet add its records.
    """
    schema, side = table.schema, table.table + REJECTED_SUFFIX
    known = tables.read(schema, side)
    if known is None:
        return
    pending = tuple(pending_rejects(facts_of(known)))
    if not pending:
        return
    # Read after what is pending: an attempt publishes after it is remembered.
    main = tables.read(schema, table.table)
    facts = None if main is None else facts_of(main)
    for one in pending:
        fate = fate_of(facts, tables.destination.iceberg.branch, one)
        if fate == "WAITS":
            continue
        gone = (ROUND_COLUMN, one.branch) if fate == "GONE" else None
        forget = fate == "COUNTS" or is_forgotten(one, own, datetime.now(UTC))
        _settle(tables, schema, side, gone, one.name if forget else None, summary)


def _settle(
    tables: CatalogTables,
    schema: str,
    side: str,
    partition: tuple[str, str] | None,
    forget: str | None,
    summary: Mapping[str, str],
) -> None:
    def once() -> None:
        now = tables.read(schema, side)
        if now is not None:
            files = tables.files(now)
            settle_partition(tables.store, files, now, partition, summary=summary, forget=forget)

    with committable(f"{schema}.{side}"):
        until_committed(once, f"settling the rejected records in `{schema}.{side}`")
