"""Rejected records that abandoned loads have left in the side table of an Iceberg table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.formats.iceberg.catalogs.changes import settle_partition, until_committed
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables, committable
from lakeload_jobs.formats.iceberg.rules.rejects import (
    REJECTED_OF,
    ROUND_COLUMN,
    SettledRejects,
    fate_of,
    is_forgotten,
    pending_rejects,
)


def settle_rejects(
    tables: CatalogTables,
    schema: str,
    table: str,
    summary: Mapping[str, str],
    own: str | None = None,
    *,
    dropped: Collection[str] = (),
    dry_run: bool = False,
) -> tuple[SettledRejects, ...]:
    """Remove the rejected records of rounds that were not published and cannot be any more; return
    those of which there was anything left. `summary` is that of the snapshots.

    `own` is the branch of a round of this attempt that has ended. Others stay remembered for a
    while: one that was paused may yet add its records. A dry run returns what it would settle once
    the branches `dropped` are.
    """
    side, settled = table + REJECTED_SUFFIX, []
    known = tables.read(schema, side)
    if known is None or known.properties.get(REJECTED_OF) != f"{schema}.{table}":
        return ()
    pending = tuple(pending_rejects(facts_of(known)))
    if not pending:
        return ()
    # Read after what is pending: an attempt publishes after it is remembered.
    main = tables.read(schema, table)
    facts = None if main is None else facts_of(main)
    if facts is not None and dry_run:
        facts = replace(facts, refs={k: v for k, v in facts.refs.items() if k not in dropped})
    for one in pending:
        fate = fate_of(facts, one)
        if fate == "WAITS":
            continue
        gone = (ROUND_COLUMN, one.branch) if fate == "GONE" else None
        forget = fate == "COUNTS" or is_forgotten(one, own, datetime.now(UTC))
        if dry_run or _settle(tables, schema, side, gone, one.name if forget else None, summary):
            settled.append(SettledRejects(one.branch, one.attempt, one.job, fate == "COUNTS"))
    return tuple(settled)


def _settle(
    tables: CatalogTables,
    schema: str,
    side: str,
    partition: tuple[str, str] | None,
    forget: str | None,
    summary: Mapping[str, str],
) -> bool:
    """Remove a partition of a side table, and a property; return whether there was any of it."""

    def once() -> bool:
        now = tables.read(schema, side)
        if now is None:
            return False
        files, store = tables.files(now), tables.store
        return settle_partition(store, files, now, partition, summary=summary, forget=forget)

    with committable(f"{schema}.{side}"):
        return until_committed(once, f"settling the rejected records in `{schema}.{side}`")
