"""What a plan tells of an Iceberg table from its metadata."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lakeload.formats.iceberg.inspect import IcebergState
from lakeload.formats.iceberg.plan import plan_states
from lakeload.formats.inspection import InspectionRequest
from lakeload.launch.spec import Attempt
from lakeload_jobs.contract.spec import NO_OPTIONS, CatalogSpec, DestinationSpec, IcebergSpec
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.rules.branches import staging_branch
from tests.unit.formats.iceberg.metadata import LOCATION, open_table, snapshot
from tests.unit.launch.specs import ATTEMPT, SYNCED, table

OTHERS = [f"{digit * 8}-2222-3333-4444-555555555555" for digit in "234"]


def look(catalog: CatalogSpec) -> InspectionRequest:
    """Return an inspection of job `monday` of pipeline `shop`."""
    destination = DestinationSpec(
        "lake", "us-east-1", "p", table_format="ICEBERG", iceberg=IcebergSpec(catalog=catalog)
    )
    return InspectionRequest(destination, "shop", Attempt("monday", ATTEMPT, SYNCED), NO_OPTIONS)


def test_plan_lists_branches_that_a_load_would_drop() -> None:
    now = datetime.now(UTC)
    ages = (timedelta(hours=30), timedelta(hours=2), timedelta(hours=1))
    old, ours, young = (
        staging_branch(now - age, attempt) for age, attempt in zip(ages, OTHERS, strict=True)
    )
    own = {"lakeload.job-id": "monday", "lakeload.pipeline": "shop"}
    opened = open_table(
        snapshot(1, None, **{"total-records": "7"}),
        snapshot(2, 1, **own),
        snapshot(3, 1),
        refs={"main": 1, old: 3, ours: 2, young: 3},
    )
    seen = IcebergState(table("orders"), facts_of(opened))
    (plan,) = plan_states([seen], look(CatalogSpec()), local=False)
    assert plan.iceberg is not None
    assert {left.name: left.drops for left in plan.iceberg.branches} == {
        old: True,
        ours: True,
        young: False,
    }
    assert (plan.iceberg.snapshot_id, plan.iceberg.rows, plan.iceberg.location) == (1, 7, LOCATION)
    assert plan.iceberg.partition_by == ("bucket(16, id)", "price")
    assert plan.iceberg.identifiers == ("id",)


def test_plan_shows_what_a_branch_that_is_not_there_yet_begins_with() -> None:
    opened = open_table(snapshot(1, None, **{"total-records": "7"}), refs={"main": 1})
    seen = IcebergState(table("orders"), facts_of(opened))
    request = look(CatalogSpec())
    audit = replace(request.destination.iceberg, branch="audit")
    request = replace(request, destination=replace(request.destination, iceberg=audit))
    (plan,) = plan_states([seen], request, local=False)
    assert plan.iceberg is not None
    assert (plan.iceberg.branch, plan.iceberg.snapshot_id, plan.iceberg.rows) == ("audit", 1, 7)


def test_plan_shows_the_location_of_a_new_table_unless_the_catalog_chooses() -> None:
    new = IcebergState(table("orders"))
    rest, nessie = CatalogSpec("REST", uri="http://c"), CatalogSpec("NESSIE", api="NATIVE")
    found = [
        plan_states([new], look(catalog), local=False)[0].iceberg
        for catalog in (CatalogSpec(), rest, nessie)
    ]
    assert [(plan.exists, plan.location) for plan in found if plan] == [
        (False, "s3://lake/p/shop/orders"),
        (False, None),
        (False, "s3://lake/p/shop/orders"),
    ]


def test_plan_warns_of_late_rows_that_can_return() -> None:
    request = look(CatalogSpec())

    def warnings(**settings: Any) -> tuple[str, ...]:
        given = replace(table("orders"), mode="UPSERT", primary_key=("id",), **settings)
        (plan,) = plan_states([IcebergState(given)], request, local=False)
        return plan.warnings

    (said,) = warnings(cursor="at", deleted_when="gone", deletes="DELETE")
    assert "an older version of a removed row that arrives late is loaded as a new row" in said
    assert warnings(cursor="at", deleted_when="gone", deletes="MARK") == ()
    assert warnings(cursor="at", deletes="DELETE") == ()
