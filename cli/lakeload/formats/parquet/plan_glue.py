"""What a sync would change in Glue, table by table. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lakeload.formats.inspection import AT_ONCE
from lakeload.formats.parquet.inspect import Foreseen
from lakeload.formats.plan_model import CatalogPlan, TablePlan
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.glue import GlueCatalog, glue_target
from lakeload_jobs.formats.parquet.log.records import GlueTarget


def plan_catalog(
    plans: Sequence[TablePlan],
    foreseen: Sequence[Foreseen],
    session: AwsSession,
    destination: DestinationSpec,
) -> tuple[TablePlan, ...]:
    """Return the plans with what Glue says of each table; without Glue as they are.

    What Glue holds in a table's place refuses that table. Glue that cannot be asked refuses none:
    the load would put the data in, and the catalog would follow.
    """
    catalog = GlueCatalog(session, destination)

    def look(plan: TablePlan, table: Foreseen) -> TablePlan:
        location = TableLocation(destination.prefix, table.table.schema, table.table.table)
        target = glue_target(destination, location)
        if target is None or table.opened is None:
            return plan
        named = CatalogPlan(target.database, target.table)
        return _with_catalog(replace(plan, catalog=named), named, catalog, target, table)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="plan-catalog") as pool:
        return tuple(pool.map(look, plans, foreseen))


def _with_catalog(
    plan: TablePlan, named: CatalogPlan, catalog: GlueCatalog, target: GlueTarget, table: Foreseen
) -> TablePlan:
    columns = table.opened.columns if table.opened else ()
    try:
        change = catalog.foresee(target, columns)
    except AwsError as error:
        return replace(plan, catalog=replace(named, unasked=ErrorInfo.of(error, "open")))
    except LakeloadError as error:
        return replace(plan, action="REFUSED", error=ErrorInfo.of(error, "open"))
    known = replace(
        named,
        creates_database=change.creates_database,
        creates_table=change.creates_table,
        adds_columns=change.adds_columns,
    )
    return replace(plan, catalog=known)
