"""What a table's commits remember of who loads it, and how: a change stops before the load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.core.layout import TableLocation, binding_key
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt, TableSettings
from lakeload_jobs.formats.parquet.log.records import GlueTarget, LoadRecord
from lakeload_jobs.formats.parquet.log.reset import Resetter
from lakeload_jobs.formats.parquet.log.target_claims import Bindings
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.parquet.log.writer import Writer, commit_only
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake

PREFIX = "data-lake/test"
GLUE = GlueTarget("shop", "orders", "lakeload_partition")
PROJECTED = GlueTarget("shop", "orders", "lakeload_partition", projection=True)
BY_HOUR = TableSettings(GLUE, "HOUR")
NO_GLUE = TableSettings(None, "HOUR")


@dataclass
class Loader(Writer):
    """A writer that says how it lays out the table."""

    settings: TableSettings = NO_GLUE

    def attempt(self) -> LoadAttempt:
        """What is asked of the log."""
        return replace(super().attempt(), settings=self.settings)

    def stage(self) -> LoadRecord:
        """Step 2."""
        settings = self.settings
        return replace(
            super().stage(), glue=settings.glue, partition_strategy=settings.partition_strategy
        )


def refusal(call: Callable[[], object], kind: type[LakeloadError] = InvalidInput) -> LakeloadError:
    with pytest.raises(kind) as caught:
        call()
    return caught.value


def claim(objects: Objects, source: str, table: str) -> None:
    """Claim a table, as a process does that dies before its commit."""
    location = TableLocation(PREFIX, "shop", table)
    Bindings(objects, PREFIX).check_and_claim("shop", source, location)


def settings(strategy: PartitionStrategy, *, projection: bool = False) -> TableSettings:
    key = None if strategy == "NONE" else "lakeload_partition"
    return TableSettings(GlueTarget("shop", "orders", key, projection), strategy)


@pytest.mark.parametrize(
    ("before", "now", "said", "way_back"),
    [
        (NO_GLUE, BY_HOUR, "without AWS Glue", "update_glue_catalog: false"),
        (BY_HOUR, NO_GLUE, "with AWS Glue", "update_glue_catalog: true"),
        (BY_HOUR, settings("NONE"), "HOUR", "partition_strategy: HOUR"),
        (settings("NONE"), settings("DAY"), "NONE", "partition_strategy: NONE"),
        (settings("DAY"), settings("SYNC_ID"), "DAY", "partition_strategy: DAY"),
        (BY_HOUR, TableSettings(PROJECTED, "HOUR"), "registered", "partition_projection: false"),
        (TableSettings(PROJECTED, "HOUR"), BY_HOUR, "computed", "partition_projection: true"),
    ],
)
def test_table_settings_that_readers_rely_on_cannot_change(
    objects: Objects, before: TableSettings, now: TableSettings, said: str, way_back: str
) -> None:
    Loader(objects, "job-1", pipeline="first", settings=before).run()
    later = Loader(objects, "job-2", pipeline="first", settings=now)

    for call in (later.open, later.inspect, replace(later, pipeline="second").open):
        refused = refusal(call)
        assert "`data-lake/test/shop/orders/`" in refused.message
        assert "pipeline `first`, record 1" in refused.message
        assert said in refused.message
        assert way_back in (refused.hint or "")
        assert "lakeload reset" in (refused.hint or "")


def test_without_glue_the_partitions_may_change(objects: Objects) -> None:
    Loader(objects, "job-1", settings=TableSettings(None, "HOUR")).run()

    later = Loader(objects, "job-2", settings=TableSettings(None, "NONE"))

    assert not later.open().first_run


def test_a_checkpoint_remembers_the_settings_too(objects: Objects) -> None:
    for job_id in ("job-1", "job-2"):
        Loader(objects, job_id, files=0).run()
    assert objects.find(Writer(objects).location.checkpoint_key) is not None

    refused = refusal(Loader(objects, "job-3", settings=BY_HOUR).open)

    assert "without AWS Glue" in refused.message


def test_table_settings_changed_during_a_load_reject_its_commit(
    objects: Objects, lake: Lake
) -> None:
    slow = Loader(objects, "job-1", settings=BY_HOUR)
    slow.open()
    record = slow.stage()
    Loader(objects, "job-2", pipeline="other").run()

    refused = refusal(lambda: slow.log.commit(record))

    assert "without AWS Glue (pipeline `other`)" in refused.message
    assert lake.uploads() == []
    assert len(lake.data_keys()) == 2


def test_void_load_sets_no_table_settings(objects: Objects, admin_objects: Objects) -> None:
    writer = Loader(objects, "job-1")
    record = commit_only(objects, writer)
    writer.log.abandon(record.files)

    assert Loader(admin_objects, "job-2", settings=BY_HOUR).open().first_run


def test_source_loaded_into_another_table_is_rejected(objects: Objects) -> None:
    Loader(objects, "job-1").run()
    moved = Loader(objects, "job-2", table="orders_2", table_handling="APPEND")

    for call in (moved.open, moved.inspect):
        refused = refusal(call)
        assert refused.message == (
            "pipeline `shop` loads `orders` into `data-lake/test/shop/orders/` (record 1), and "
            "would now load it into `data-lake/test/shop/orders_2/`"
        )
        for setting in ("glue_database_prefix", "destination_prefix", "namespace", "`name`"):
            assert setting in (refused.hint or "")

    assert not Loader(objects, "job-3").open().first_run
    assert replace(moved, pipeline="anew").open().first_run


def test_target_claim_without_a_load_does_not_block(objects: Objects) -> None:
    claim(objects, "orders", "orders")
    moved = Loader(objects, "job-2", table="orders_2")

    assert moved.inspect().first_run
    moved.run()

    back = refusal(Loader(objects, "job-3").open)
    assert "loads `orders` into `data-lake/test/shop/orders_2/` (record 1)" in back.message


def test_target_claim_of_an_unfinished_load_blocks(objects: Objects) -> None:
    died = Loader(objects, "job-1")
    claim(objects, "orders", "orders")
    commit_only(objects, died)

    assert "record 1" in refusal(Loader(objects, "job-2", table="orders_2").open).message


def test_second_of_two_first_loads_into_two_tables_is_rejected(
    objects: Objects, lake: Lake
) -> None:
    slow = Loader(objects, "job-1")
    slow.open()
    record = slow.stage()
    Loader(objects, "job-2", table="orders_2").run()

    refused = refusal(lambda: slow.log.commit(record))

    assert "orders_2/` (record 1), and would now load it into" in refused.message
    assert lake.uploads() == []
    assert all("/orders_2/" in key for key in lake.data_keys())


def test_target_claim_needs_two_requests_on_the_first_run_only(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    Loader(proxied, "job-1").run()
    Loader(proxied, "job-2").run()

    passed = [r for r in fault_proxy.requests if "pipeline-sources" in r.key]

    assert [request.operation for request in passed] == ["GetObject", "PutObject"]


def test_target_claim_released_is_removed_for_its_table_only(
    objects: Objects, admin_objects: Objects
) -> None:
    claim(objects, "orders", "orders")
    key = binding_key(PREFIX, "shop", "orders")
    bindings = Bindings(admin_objects, PREFIX)

    bindings.release("shop", "orders", TableLocation(PREFIX, "shop", "orders_2"))
    assert objects.find(key) is not None
    bindings.release("shop", "orders", TableLocation(PREFIX, "shop", "orders"))
    assert objects.find(key) is None
    bindings.release("shop", "orders", TableLocation(PREFIX, "shop", "orders"))


def test_reset_releases_the_target_claim(objects: Objects, admin_objects: Objects) -> None:
    old = Loader(objects, "job-1")
    old.run()

    Resetter(
        admin_objects, old.location, "shop", catalog=None, parallelism=2, notify=old.notes.append
    ).run("by a test")

    assert objects.find(binding_key(PREFIX, "shop", "orders")) is None
    assert Loader(objects, "job-2", table="orders_2").open().first_run


def test_target_claims_of_different_sources_are_separate(objects: Objects, lake: Lake) -> None:
    for number, source in enumerate(("a/b", "a b", "../x", "日本", "Orders", "orders")):
        Loader(objects, f"job-{number}", source=source, table=f"t{number}", files=0).run()

    claims = lake.keys(f"{PREFIX}/_lakeload/pipeline-sources/shop/")

    assert len(claims) == 6
    assert all(len(key.rpartition("/")[2]) == len("0123456789abcdef.json") for key in claims)


def test_renamed_pipeline_is_rejected_and_duplicates_are_named(objects: Objects) -> None:
    Loader(objects, "job-1", pipeline="shop").run()

    refused = refusal(
        Loader(objects, "job-2", pipeline="store", table_handling="FAIL").open, LoadFailed
    )
    assert "pipeline `store`" in refused.message
    assert "pipeline `shop` loads into" in refused.message
    assert "restore `name: shop`" in (refused.hint or "")

    opened = Loader(objects, "job-2", pipeline="store", table_handling="APPEND").open()
    assert opened.first_run
    assert "pipeline `shop` loads `orders`" in opened.warnings[0]


def test_pipelines_may_share_a_table_when_the_second_appends(objects: Objects) -> None:
    Loader(objects, "job-1", pipeline="shop", source="orders").run()

    refused = refusal(
        Loader(objects, "job-2", "eu", source="orders-eu", table_handling="FAIL").open, LoadFailed
    )
    assert "restore" not in (refused.hint or "")
    assert "APPEND" in (refused.hint or "")

    second = Loader(objects, "job-2", pipeline="eu", source="orders-eu")
    assert second.open().warnings == ()


def test_two_sources_of_one_pipeline_never_share_a_table(objects: Objects) -> None:
    Loader(objects, "job-1", source="orders").run()

    refused = refusal(Loader(objects, "job-2", source="returns").open)

    assert "loads `orders` into" in refused.message
    assert "`returns` cannot be loaded into the same table" in refused.message
