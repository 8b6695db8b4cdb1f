"""What a job is told when it opens a table: first runs, clashing identities, a damaged log."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed, NewerFormat
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.records import (
    CatMarker,
    GlueTarget,
    LogDamaged,
    encode,
)
from lakeload_jobs.formats.parquet.log.table_log import Committed
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.parquet.log.writer import LONG_AGO, Writer, commit_only
from tests.servers.ministack import Lake


def test_first_run_under_fail_requires_an_empty_table(
    objects: Objects, admin_objects: Objects
) -> None:
    writer = Writer(objects, table_handling="FAIL")
    admin_objects.put(writer.location.data_path + "old.parquet", b"x")
    with pytest.raises(LoadFailed, match="did not write") as caught:
        writer.open()
    assert "APPEND" in (caught.value.hint or "")
    assert Writer(objects).open().first_run


def test_first_run_rejects_a_folder_with_the_tables_of_another_destination(
    objects: Objects, admin_objects: Objects
) -> None:
    """Its first run is told apart: `table_handling: APPEND` would mix the two for readers."""
    writer = Writer(objects, table_handling="FAIL")
    log = TableLocation(writer.location.data_path.rstrip("/"), "", "items").record_key(1)
    admin_objects.put(log, b"{}")

    with pytest.raises(LoadFailed, match="is the `prefix` of another destination") as caught:
        writer.open()

    assert caught.value.hint == "load into another `name`"
    assert Writer(objects, table_handling="FAIL", table="others").open().first_run


def test_second_run_under_fail_appends(objects: Objects) -> None:
    Writer(objects, "job-1", table_handling="FAIL").run()
    opened = Writer(objects, "job-2", table_handling="FAIL").open()
    assert not opened.first_run
    assert opened.column_map == {"ID": "id"}
    assert [column.name for column in opened.columns] == ["id"]


def test_first_run_under_fail_rejects_the_table_of_another_pipeline(objects: Objects) -> None:
    Writer(objects, "job-1", pipeline="first", files=0).run()
    with pytest.raises(LoadFailed, match="pipeline `first` loads into"):
        Writer(objects, "job-2", pipeline="second", table_handling="FAIL").open()


def test_conflicting_table_settings_are_rejected_and_named(objects: Objects) -> None:
    Writer(objects).run()
    with pytest.raises(InvalidInput, match="pipeline `other` is already a job of pipeline `shop`"):
        Writer(objects, pipeline="other").open()
    with pytest.raises(InvalidInput, match=r"loads `orders` into .*`returns`"):
        Writer(objects, "job-2", source="returns").open()
    with pytest.raises(InvalidInput, match="ffffffffffff, now 000000000000"):
        Writer(objects, fingerprint="0" * 64).open()


def test_a_missing_record_stops_every_writer(objects: Objects, lake: Lake) -> None:
    writer = Writer(objects)
    commit_only(objects, writer, number=2)
    with pytest.raises(LogDamaged, match="no record 1"):
        writer.open()


def test_an_end_without_its_record_stops_every_writer(objects: Objects) -> None:
    writer = Writer(objects)
    objects.put(writer.location.end_key(1), b"")
    with pytest.raises(LogDamaged, match="no record 1"):
        writer.open()


def test_record_of_a_newer_lakeload_is_rejected(objects: Objects) -> None:
    writer = Writer(objects)
    objects.put(writer.location.record_key(1), b'{"format":9,"kind":"LOAD"}')
    with pytest.raises(NewerFormat, match="newer lakeload"):
        writer.open()


def test_the_checkpoint_is_only_a_cache(objects: Objects, lake: Lake) -> None:
    for number in range(3):
        Writer(objects, f"job-{number}", state={"at": number}).run()
    location = Writer(objects).location
    checkpoint = json.loads(lake.read(location.checkpoint_key))
    assert checkpoint["number"] == 3
    fast = Writer(objects, "job-9").open()
    for text in (b"", b"not JSON", b'{"format":9}'):
        objects.put(location.checkpoint_key, text)
        slow = Writer(objects, "job-9").open()
        assert slow == fast
    assert slow.state == {"at": 2}
    assert Writer(objects, "job-1", state={"at": 1}).open().already is not None


def test_checkpoint_stops_before_an_unfinished_record(objects: Objects, lake: Lake) -> None:
    for number in range(2):
        Writer(objects, f"job-{number}").run()
    stuck = Writer(objects, "job-2")
    late = Writer(objects, "job-3")
    late.open()
    commit_only(objects, stuck, number=3)
    assert isinstance(result := late.log.commit(late.stage()), Committed)
    assert result.number == 4
    assert json.loads(lake.read(late.location.checkpoint_key))["number"] == 2
    assert len(Writer(objects, "job-4").open().settled) == 1


def test_job_with_a_pending_catalog_sync_is_done_and_not_checkpointed(
    objects: Objects, lake: Lake
) -> None:
    writer = Writer(objects)
    writer.open()
    record = replace(writer.stage(), glue=GlueTarget("shop", "orders"))
    assert writer.log.commit(record).outcome == "done"
    Writer(objects, "job-2").run()
    assert objects.find(writer.location.checkpoint_key) is None
    objects.put_if_absent(writer.location.cat_key(1), encode(CatMarker("lakeload test", LONG_AGO)))
    Writer(objects, "job-3").run()
    assert json.loads(lake.read(writer.location.checkpoint_key))["number"] == 3


def test_inspecting_a_table_writes_nothing(objects: Objects, lake: Lake) -> None:
    stuck = Writer(objects)
    commit_only(objects, stuck)
    before = lake.keys()
    seen = Writer(objects, "job-2", table_handling="FAIL").inspect()
    assert [(pending.job_id, pending.action) for pending in seen.settled] == [("job-1", "publish")]
    assert (seen.next_number, seen.already, seen.first_run) == (2, None, False)
    known = Writer(objects, "job-1", table_handling="FAIL").inspect()
    assert known.already is not None
    assert lake.keys() == before
    assert len(lake.uploads()) == 2


def test_a_job_without_rows_still_moves_the_state(objects: Objects, lake: Lake) -> None:
    Writer(objects, files=0, state={"cursor": 7}).run()
    assert lake.data_keys() == []
    assert Writer(objects, "job-2").open().state == {"cursor": 7}


def test_an_abandoned_attempt_leaves_no_uploads(objects: Objects, lake: Lake) -> None:
    writer = Writer(objects)
    writer.open()
    record = writer.stage()
    assert len(lake.uploads()) == 2
    assert writer.log.abandon(record.files) == 0
    assert lake.uploads() == []
