"""`lakeload reset`: exactly this pipeline's objects go, whoever is loading meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.admission import Conflict
from lakeload_jobs.formats.parquet.log.records import GlueTarget
from lakeload_jobs.formats.parquet.log.recovery import recover_table
from lakeload_jobs.formats.parquet.log.reset import (
    LogInUse,
    RemovedObjects,
    Resetter,
    TableCatalog,
    remove_log,
)
from lakeload_jobs.storage.objects import Objects
from tests.integration.commands.conftest import Command
from tests.integration.formats.parquet.log.writer import Writer, commit_only
from tests.servers.ministack import Lake

Load = Callable[..., Writer]

ORDERS = TableLocation("data-lake/test", "shop", "orders")
GLUE = GlueTarget("shop", "orders", "lakeload_partition")
STRANGER = "data-lake/test/shop/orders/2026/11/21/10/by-hand.parquet"


@dataclass
class Tables:
    """A catalog that owns one table until it is dropped."""

    there: set[str] = field(default_factory=lambda: {"orders"})

    def owns(self, target: GlueTarget, location: TableLocation) -> bool:
        return target.table in self.there and location == ORDERS

    def drop_table(self, target: GlueTarget, location: TableLocation) -> bool:
        owned = self.owns(target, location)
        self.there.discard(target.table)
        return owned


def resetter(
    objects: Objects, pipeline: str = "shop", catalog: TableCatalog | None = None
) -> Resetter:
    return Resetter(
        objects, ORDERS, pipeline, catalog=catalog, parallelism=4, notify=lambda _: None
    )


def reset(
    objects: Objects, pipeline: str = "shop", catalog: TableCatalog | None = None
) -> RemovedObjects:
    return resetter(objects, pipeline, catalog).run("by a test")


def jobs_of(keys: Iterable[str]) -> set[str]:
    return {key.partition("part-")[2].rpartition("-")[0] for key in keys}


def test_reset_removes_exactly_the_objects_of_the_pipeline(
    load: Load, admin_objects: Objects, lake: Lake
) -> None:
    load("ours-1")
    load("theirs", pipeline="other")
    load("ours-2")
    admin_objects.put(STRANGER, b"by hand")
    plan = resetter(admin_objects).plan()
    assert jobs_of(item.key for item in plan.objects) == {"ours-1", "ours-2"}
    assert (plan.rows, plan.others, plan.strangers) == (4, ("other",), (STRANGER,))
    removed = reset(admin_objects)
    assert (removed.objects, removed.rows, removed.number) == (4, 4, 4)
    assert jobs_of(lake.data_keys()) == {"theirs", ""}
    assert admin_objects.get(STRANGER) == b"by hand"
    assert resetter(admin_objects).plan().nothing_to_do
    assert reset(admin_objects).number is None


def test_reset_keeps_an_object_replaced_by_another_writer(
    load: Load, admin_objects: Objects, lake: Lake
) -> None:
    load("ours", files=2)
    taken = lake.data_keys()[0]
    admin_objects.put(taken, b"not ours any more")
    assert resetter(admin_objects).plan().strangers == (taken,)
    assert reset(admin_objects).objects == 1
    assert lake.data_keys() == [taken]


def test_a_load_that_began_before_the_reset_cannot_commit_after_it(
    load: Load, admin_objects: Objects, lake: Lake
) -> None:
    load("job-1")
    running = Writer(admin_objects, "running")
    running.open()
    record = running.stage()
    reset(admin_objects)
    with pytest.raises(Conflict, match="was reset in this table while job `running`"):
        running.log.commit(record)
    assert (lake.data_keys(), lake.uploads()) == ([], [])


def test_a_load_of_another_pipeline_is_not_disturbed(
    load: Load, admin_objects: Objects, lake: Lake
) -> None:
    load("ours")
    running = Writer(admin_objects, "theirs", pipeline="other")
    running.open()
    record = running.stage()
    reset(admin_objects)
    running.log.commit(record)
    assert jobs_of(lake.data_keys()) == {"theirs"}


def test_a_load_that_commits_while_the_reset_begins_is_reset_with_the_rest(
    load: Load, admin_objects: Objects, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("job-1")
    put = admin_objects.put_if_absent
    faster = [Writer(admin_objects, "job-2")]

    def overtaken(key: str, body: bytes) -> bool:
        if b"FENCE" in body and faster:
            faster.pop().run()
        return put(key, body)

    monkeypatch.setattr(admin_objects, "put_if_absent", overtaken)
    removed = reset(admin_objects)
    assert (removed.number, removed.objects) == (3, 4)
    assert lake.data_keys() == []
    assert resetter(admin_objects).plan().nothing_to_do


def test_reset_pipeline_starts_over_under_the_next_record_number(
    load: Load, admin_objects: Objects
) -> None:
    load("job-1", state={"cursor": 1})
    reset(admin_objects)
    opened = Writer(admin_objects, "job-2", table_handling="FAIL", source="renamed").open()
    assert (opened.first_run, opened.next_number) == (True, 3)
    assert (opened.state, opened.column_map, opened.columns) == (None, {}, ())
    with pytest.raises(InvalidInput, match="the job id cannot be reused"):
        Writer(admin_objects, "job-1").open()
    load("job-2", table_handling="FAIL")
    load("job-3")
    # From the checkpoint the same is known.
    with pytest.raises(InvalidInput, match="the job id cannot be reused"):
        Writer(admin_objects, "job-1").open()
    assert Writer(admin_objects, "job-2").open().already is not None


def test_reset_without_delete_permission_changes_nothing(
    load: Load, objects: Objects, admin_objects: Objects, lake: Lake
) -> None:
    load("job-1")
    before = lake.keys()
    with pytest.raises(AwsError) as caught:
        reset(objects)
    assert "s3:DeleteObject" in (caught.value.hint or "")
    assert ORDERS.data_path in caught.value.message
    assert lake.keys() == before
    assert Writer(admin_objects, "job-2").open().next_number == 2


def test_reset_interrupted_stops_the_pipeline_until_the_next_reset_finishes(
    load: Load, admin_objects: Objects, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("job-1")
    load("theirs", pipeline="other")
    delete = admin_objects.delete

    def cut_off(key: str, etag: str) -> bool:
        if "part-job-1-" in key:
            raise KeyboardInterrupt
        return delete(key, etag)

    with monkeypatch.context() as until_then:
        until_then.setattr(admin_objects, "delete", cut_off)
        with pytest.raises(KeyboardInterrupt):
            reset(admin_objects)
    with pytest.raises(LoadFailed, match="is being reset"):
        Writer(admin_objects, "job-2").open()
    load("theirs-2", pipeline="other")
    assert resetter(admin_objects).plan().begun == 3
    assert reset(admin_objects).number == 3
    assert jobs_of(lake.data_keys()) == {"theirs", "theirs-2"}
    assert Writer(admin_objects, "job-2").open().first_run


def test_reset_removes_unfinished_and_damaged_jobs(
    load: Load, admin_objects: Objects, lake: Lake
) -> None:
    load("done")
    damaged = commit_only(admin_objects, Writer(admin_objects, "damaged", files=3), 2)
    first, second, _ = damaged.files
    admin_objects.complete_upload(first.key, first.upload_id, first.parts)
    admin_objects.abort_upload(second.key, second.upload_id)
    commit_only(admin_objects, Writer(admin_objects, "unfinished"), 3)
    plan = resetter(admin_objects).plan()
    assert [own.record.job_id for own in plan.unfinished] == ["damaged", "unfinished"]
    reset(admin_objects)
    assert (lake.data_keys(), lake.uploads()) == ([], [])


def test_reset_of_the_last_pipeline_drops_the_glue_table(
    load: Load, admin_objects: Objects
) -> None:
    load("ours", glue=GLUE)
    load("theirs", pipeline="other", glue=GLUE)
    catalog = Tables()
    assert reset(admin_objects, catalog=catalog).glue == ()
    assert catalog.there == {"orders"}
    assert resetter(admin_objects, "other", catalog).plan().glue == (GLUE,)
    assert reset(admin_objects, "other", catalog).glue == (GLUE,)
    assert catalog.there == set()
    # Nothing owes the catalog anything any more, although no load had brought it into step.
    behind = recover_table(
        admin_objects, ORDERS, catalog=None, parallelism=1, notify=lambda _: None, dry_run=True
    )
    assert behind.finished == ()


def test_reset_with_log_keeps_the_log_of_other_pipelines(
    load: Load, admin_objects: Objects, lake: Lake
) -> None:
    load("ours")
    load("theirs", pipeline="other")
    reset(admin_objects)
    with pytest.raises(LogInUse, match="pipeline `other` has rows"):
        remove_log(admin_objects, ORDERS, "shop", 4)
    reset(admin_objects, "other")
    staging = Writer(admin_objects, "staging", files=1).stage()
    with pytest.raises(LogInUse, match="a load may be running"):
        remove_log(admin_objects, ORDERS, "other", 4)
    admin_objects.abort_upload(staging.files[0].key, staging.files[0].upload_id)
    assert remove_log(admin_objects, ORDERS, "other", 4) > 0
    assert lake.keys(ORDERS.log_path) == []


def test_reset_with_log_interrupted_is_finished_by_the_next(
    command: Command, load: Load, admin_objects: Objects, lake: Lake
) -> None:
    load("job-1")
    reset(admin_objects)
    first = admin_objects.find(ORDERS.record_key(1))
    assert first is not None
    admin_objects.delete(first.key, first.etag)
    without = command("reset", "pipeline.yml", "orders", "--yes")
    assert without.code == 1
    assert "finish it with `lakeload reset --with-log --yes`" in without.err
    assert command("reset", "pipeline.yml", "orders", "--with-log", "--yes").code == 0
    assert lake.keys(ORDERS.log_path) == []
    load("job-1", table_handling="FAIL")


def test_reset_without_yes_is_a_dry_run(command: Command, load: Load, lake: Lake) -> None:
    load("monday")
    load("monday", table="visits")
    before = lake.keys()
    shown = command("reset", "pipeline.yml", "orders", "payments")
    assert shown.code == 0
    assert shown.lines() == [
        "shop.orders",
        "  would remove 2 objects of 1 job: 2 rows, 90 B",
        "  the log stays (`--with-log` removes it as well)",
        "shop.payments",
        "  no rows of this pipeline",
    ]
    assert "`lakeload reset pipeline.yml orders payments --yes`" in shown.err.replace("\n", " ")
    assert lake.keys() == before
    done = command("reset", "pipeline.yml", "orders", "--yes", "--output", "json")
    assert done.code == 0
    (table,) = done.document["tables"]
    assert (table["removed"]["objects"], table["removed"]["rows"]) == (2, 2)
    assert jobs_of(lake.data_keys()) == {"monday"}
    assert {key.split("/")[3] for key in lake.data_keys()} == {"visits"}
    history = command("runs", "pipeline.yml", "-v")
    assert "  shop.orders  2 rows  2 files  90 B  reset" in history.lines()
    assert "  shop.visits  2 rows  2 files  90 B  done" in history.lines()
    assert "pipeline shop was reset, lakeload reset by" in history.out


def test_reset_with_log_leaves_nothing_of_the_table(
    command: Command, load: Load, lake: Lake
) -> None:
    load("monday")
    load("tuesday")
    ended = command("reset", "pipeline.yml", "orders", "--with-log", "--yes")
    assert (ended.code, lake.keys()) == (0, [])
    again = command("reset", "pipeline.yml", "orders", "--with-log", "--yes")
    assert again.lines() == ["shop.orders", "  no rows of this pipeline"]


def test_reset_misspelled_table_is_rejected_before_any_request(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeload.probes.connection.preflight", None)
    ended = command("reset", "pipeline.yml", "oders", "--yes")
    assert ended.code == 2
    assert "`oders` matches no table of the pipeline" in ended.err
    assert "did you mean `orders`?" in ended.err
