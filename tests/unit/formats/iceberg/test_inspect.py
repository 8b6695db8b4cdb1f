"""When a sync of Iceberg tables ends without Spark, and as what."""

from __future__ import annotations

from lakeload.formats.iceberg.inspect import IcebergState
from lakeload.formats.inspection import outcome_without_spark
from lakeload_jobs.contract.errors import ExitCode, LoadFailed
from lakeload_jobs.contract.spec import FilesInput, TableSpec
from lakeload_jobs.formats.iceberg.catalogs import CatalogError
from lakeload_jobs.formats.iceberg.rules.facts import Snapshot

ORDERS = TableSpec("orders", "shop", "orders", FilesInput("CSV", ("/data/orders.csv",), {}), "f")
SUMMARY = {"lakeload.rows": "1200", "added-files-size": "34567"}
IN = IcebergState(ORDERS, already=Snapshot(77, None, 1_795_255_200_000, SUMMARY))


def test_a_job_that_is_in_is_reported_from_its_snapshot() -> None:
    outcome = outcome_without_spark([IN])
    assert outcome is not None
    (table,) = outcome.tables
    assert (table.status, table.rows, table.bytes, table.snapshot_id) == ("NO_OP", 1200, 34567, 77)
    assert outcome.exit_code == ExitCode.OK


def test_one_remaining_table_needs_spark_even_without_a_catalog_response() -> None:
    assert outcome_without_spark([IN, IcebergState(ORDERS)]) is None
    assert outcome_without_spark([IcebergState(ORDERS)]) is None


def test_error_of_every_table_is_an_error_of_the_run() -> None:
    denied = IcebergState(ORDERS, error=CatalogError("no", code="Forbidden", status=403))
    foreign = IcebergState(ORDERS, error=LoadFailed("somebody else's table"))
    refused, failed = outcome_without_spark([denied]), outcome_without_spark([IN, foreign])
    assert refused is not None
    assert failed is not None
    assert (refused.exit_code, failed.exit_code) == (ExitCode.REFUSED, ExitCode.TABLE_FAILED)
    assert [table.status for table in failed.tables] == ["NO_OP", "FAILED"]
