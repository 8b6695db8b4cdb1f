"""Step 6: the catalog follows what is done, never holds it up, and is caught up with later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.core.comments import Comments
from lakeload_jobs.formats.parquet.log.records import (
    CleanMarker,
    Column,
    EndMarker,
    FenceRecord,
    GlueTarget,
    LoadRecord,
    encode,
)
from lakeload_jobs.formats.parquet.log.table_log import Committed, OpenedLog
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.parquet.log.writer import LONG_AGO, Writer, commit_only
from tests.servers.fault_proxy import FaultProxy, answer
from tests.servers.ministack import Lake

GLUE = GlueTarget("shop", "orders", "lakeload_partition")


@dataclass
class Ledger:
    """A catalog that writes down what it is told, and refuses while `broken`."""

    broken: bool = False
    told: list[tuple[list[str], list[str]]] = field(default_factory=list)

    def check(self, target: GlueTarget, columns: Sequence[Column]) -> None:
        """Not asked by the log."""

    def describe(self, target: GlueTarget, comments: Comments) -> None:
        pass

    def bring_into_step(self, records: Sequence[LoadRecord], columns: Sequence[Column]) -> None:
        """Write down the jobs and the columns."""
        if self.broken:
            raise LoadFailed("the catalog is down")
        jobs = [record.job_id for record in records]
        self.told.append((jobs, sorted(column.name for column in columns)))


def covered(lake: Lake, writer: Writer) -> int:
    """Return the number up to which the checkpoint goes."""
    key = writer.location.checkpoint_key
    return int(json.loads(lake.read(key))["number"]) if key in set(lake.keys()) else 0


def test_job_is_synced_to_the_catalog_after_its_end_and_then_checkpointed(
    objects: Objects, lake: Lake
) -> None:
    ledger = Ledger()
    writer = Writer(objects, glue=GLUE, catalog=ledger)
    result = writer.run()
    assert isinstance(result, Committed)
    assert result.catalog_error is None
    assert ledger.told == [(["job-1"], ["id"])]
    assert json.loads(lake.read(writer.location.cat_key(1)))["kind"] == "CAT"
    assert Writer(objects, catalog=ledger).open().catalog_error is None
    assert len(ledger.told) == 1
    Writer(objects, "job-2", glue=GLUE, catalog=ledger).run()
    assert covered(lake, writer) == 2


def test_failed_catalog_sync_keeps_the_data_and_is_repeated_at_the_next_open(
    objects: Objects, lake: Lake
) -> None:
    ledger = Ledger(broken=True)
    results = [
        Writer(objects, f"job-{number}", glue=GLUE, catalog=ledger, columns=(f"c{number}",)).run()
        for number in (1, 2)
    ]
    for result in results:
        assert isinstance(result, Committed)
        assert result.outcome == "done"
        assert "catalog is down" in str(result.catalog_error)
    assert len(lake.data_keys()) == 4
    again = Writer(objects, "job-2", glue=GLUE, catalog=ledger)
    known = again.open()
    assert known.already is not None
    assert "catalog is down" in str(known.catalog_error)
    assert covered(lake, again) == 0
    seen = again.inspect()
    assert [(job.number, job.action) for job in seen.settled] == [(1, "catalog"), (2, "catalog")]
    ledger.broken = False
    repaired = Writer(objects, "job-3", catalog=ledger).open()
    assert repaired.catalog_error is None
    assert [(job.number, job.action) for job in repaired.settled] == [
        (1, "catalog"),
        (2, "catalog"),
    ]
    assert ledger.told == [(["job-1", "job-2"], ["c1", "c2"])]
    assert Writer(objects, "job-3", catalog=ledger).open().settled == ()


def test_checkpoint_stops_before_a_job_missing_in_the_catalog(objects: Objects, lake: Lake) -> None:
    ledger = Ledger()
    for number in (1, 2, 3):
        ledger.broken = number == 3
        Writer(objects, f"job-{number}", files=0, glue=GLUE, catalog=ledger).run()
    assert covered(lake, Writer(objects)) == 2
    ledger.broken = False
    Writer(objects, "job-4", files=0, catalog=ledger).run()
    assert covered(lake, Writer(objects)) == 4


def test_late_catalog_sync_sends_the_columns_of_all_jobs(objects: Objects) -> None:
    ledger = Ledger()
    Writer(objects, "job-1", glue=GLUE, catalog=ledger, columns=("a", "b")).run()
    Writer(objects, "job-2", glue=GLUE, catalog=ledger, columns=("b", "c")).run()
    assert ledger.told[-1] == (["job-2"], ["a", "b", "c"])


def test_abandoned_catalog_sync_is_finished_by_the_next_job(objects: Objects) -> None:
    ledger = Ledger()
    commit_only(objects, Writer(objects, glue=GLUE))
    opened = Writer(objects, "job-2", catalog=ledger).open()
    assert [job.action for job in opened.settled] == ["publish", "catalog"]
    assert [jobs for jobs, _ in ledger.told] == [["job-1"]]


def test_void_job_is_not_synced_to_the_catalog(objects: Objects) -> None:
    ledger = Ledger()
    writer = Writer(objects, glue=GLUE)
    commit_only(objects, writer)
    void = EndMarker("lakeload test", LONG_AGO, "void", "by hand")
    objects.put_if_absent(writer.location.end_key(1), encode(void))
    Writer(objects, "job-2", catalog=ledger).open()
    assert ledger.told == []


def test_job_of_a_reset_pipeline_is_not_synced_to_the_catalog(objects: Objects, lake: Lake) -> None:
    ledger = Ledger()
    location = Writer(objects, glue=GLUE).location
    Writer(objects, glue=GLUE, files=0).run()
    reset = FenceRecord("lakeload test", LONG_AGO, (), "by hand", resets="shop")
    objects.put_if_absent(location.record_key(2), encode(reset))
    clean = CleanMarker("lakeload test", LONG_AGO, ())
    objects.put_if_absent(location.clean_key(2), encode(clean))
    opened = Writer(objects, "job-2", catalog=ledger).open()
    assert (opened.settled, ledger.told) == ((), [])
    Writer(objects, "job-2", files=0, catalog=ledger).run()
    assert covered(lake, Writer(objects)) == 3


def test_job_without_a_catalog_client_leaves_its_sync_pending(objects: Objects, lake: Lake) -> None:
    writer = Writer(objects, glue=GLUE)
    assert isinstance(writer.run(), Committed)
    opened = Writer(objects, "job-2").open()
    assert (opened.settled, opened.catalog_error) == ((), None)
    assert covered(lake, writer) == 0
    Writer(objects, "job-2", catalog=Ledger()).run()
    assert covered(lake, writer) == 2


def test_job_finished_by_another_attempt_is_synced_to_the_catalog(objects: Objects) -> None:
    ledger = Ledger()
    fast = Writer(objects, glue=GLUE)
    slow = Writer(objects, glue=GLUE, catalog=ledger)
    slow.open()
    assert isinstance(fast.run(), Committed)
    result = slow.log.commit(slow.stage())
    assert result.already
    assert [jobs for jobs, _ in ledger.told] == [["job-1"]]


def test_failed_catalog_marker_is_reported_like_a_failed_catalog(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    fault_proxy.on("PutObject", answer(403, "AccessDenied"), key="*.cat")
    result = Writer(proxied, glue=GLUE, catalog=Ledger()).run()
    assert isinstance(result, Committed)
    assert isinstance(result.catalog_error, LakeloadError)
    assert result.outcome == "done"


def test_catalog_warning_does_not_stop_a_load(objects: Objects) -> None:
    Writer(objects, glue=GLUE, catalog=Ledger(broken=True)).run()
    opened = Writer(objects, "job-2", catalog=Ledger(broken=True)).open()
    assert isinstance(opened, OpenedLog)
    assert opened.already is None
    with pytest.raises(LoadFailed, match="catalog is down"):
        raise opened.catalog_error or AssertionError
