"""A load and its catalog: what stops it, and what is only told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import ExitCode, LakeloadError
from lakeload_jobs.core.comments import Comments
from lakeload_jobs.formats.parquet.glue import CatalogConflict
from lakeload_jobs.formats.parquet.load.catalog import catalog_stale, check_catalog, lagging
from lakeload_jobs.formats.parquet.log.records import Column, GlueTarget, LoadRecord

TARGET = GlueTarget("shop", "orders")


class Answering:
    """A catalog whose check raises what it was given."""

    def __init__(self, error: LakeloadError | None) -> None:
        self.error = error
        self.asked = 0

    def check(self, target: GlueTarget, columns: Sequence[Column]) -> None:
        self.asked += 1
        if self.error is not None:
            raise self.error

    def describe(self, target: GlueTarget, comments: Comments) -> None:
        pass

    def bring_into_step(self, records: Sequence[LoadRecord], columns: Sequence[Column]) -> None:
        raise AssertionError("a check only looks")


def test_catalog_sync_unreachable_catalog_is_a_warning() -> None:
    away = Answering(AwsError("reading: access denied", code="AccessDeniedException", status=400))
    assert check_catalog(away, TARGET, ()) == (
        "the catalog could not be checked before the load: reading: access denied",
    )
    assert check_catalog(Answering(None), TARGET, ()) == ()


def test_catalog_sync_conflicting_table_stops_the_load() -> None:
    with pytest.raises(CatalogConflict, match="a view"):
        check_catalog(Answering(CatalogConflict("`orders` is a view")), TARGET, ())


def test_catalog_sync_without_a_catalog_sends_no_request() -> None:
    catalog = Answering(CatalogConflict("never seen"))
    assert check_catalog(catalog, None, ()) == ()
    assert catalog.asked == 0


def test_catalog_sync_failure_reports_loaded_data() -> None:
    stale = catalog_stale(AwsError("denied", code="403", hint="allow `glue:GetTable`"))
    assert stale.exit_code == ExitCode.FOLLOW_UP_FAILED
    assert stale.message.startswith("the data is committed")
    assert stale.hint is not None
    assert stale.hint.startswith("allow `glue:GetTable`; then run `lakeload recover`")
    assert lagging(None) == ()
    assert "earlier jobs" in lagging(stale)[0]
