"""Maintenance of tables in Glue: what a dry run says, what is done, and beside which loads."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.formats.iceberg import rewrites
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import now_ms
from lakeload_jobs.formats.iceberg.commits.expiry import expired
from lakeload_jobs.formats.iceberg.load.branches import create_branch, drop_branch
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.formats.iceberg.rules.branches import data_file_name, staging_branch
from tests.integration.formats.iceberg.test_publish_races import before_publishing
from tests.integration.formats.iceberg.upkeep import (
    NOW,
    Upkeep,
    glue_upkeep,
    incremental,
    small_files,
    statuses,
)
from tests.servers.ministack import Lake

# Many commits, each of which a busy machine takes seconds for.
pytestmark = pytest.mark.timeout(600)

ATTEMPT = "0b6f3c1e-7d7b-4c7e-9d0f-1f2e3d4c5b6a"


@pytest.fixture
def upkeep(spark: SparkSession, base_identity: Lake, tmp_path: Path) -> Upkeep:
    return glue_upkeep(spark, base_identity, tmp_path)


def test_maintain_dry_run_lists_the_steps_and_writes_nothing(upkeep: Upkeep) -> None:
    table = incremental(upkeep)
    upkeep.file([{"id": n} for n in range(10)])
    upkeep.loaded(table)
    small_files(upkeep, commits=3)
    upkeep.sql("DELETE FROM {t} WHERE id = 3")
    upkeep.file([{"id": 10}])
    upkeep.loaded(table)
    expected = upkeep.rows()
    left = staging_branch(datetime.now(UTC) - timedelta(days=2), ATTEMPT)
    young = staging_branch(datetime.now(UTC), ATTEMPT)
    for name in (left, young):
        create_branch(upkeep.tables, upkeep.schema, "orders", name, "main")
    before = upkeep.objects()

    said = upkeep.keep(table, apply=False, **NOW)

    assert statuses(said) == {
        "branches": "WOULD_DO",
        "uploads": "NOTHING_TO_DO",
        "compact": "WOULD_DO",
        "deletes": "NOTHING_TO_DO",
        "manifests": "WOULD_DO",
        "expire": "WOULD_DO",
        "orphans": "NOTHING_TO_DO",
    }
    assert said["branches"].items == (left,)
    assert upkeep.objects() == before

    did = upkeep.keep(table, "branches", "compact", "manifests")

    assert set(statuses(did).values()) == {"DONE"}
    assert set(upkeep.read().metadata.refs) == {"main", young}
    for name in ("files", "files_after", "bytes"):
        assert getattr(did["compact"], name) == getattr(said["compact"], name)
    assert (did["compact"].files, did["compact"].files_after) == (20, 1)
    assert upkeep.rows() == expected

    upkeep.sql(f"ALTER TABLE {{t}} DROP BRANCH `{young}`")
    orphan = f"{upkeep.java().location()}/data/left-behind.parquet"
    stream = upkeep.java().io().newOutputFile(orphan).create()
    stream.write(bytearray(b"left behind"))
    stream.close()
    said = upkeep.keep(table, "expire", "orphans", apply=False, **NOW)
    before = upkeep.objects()
    did = upkeep.keep(table, "expire", **NOW)
    gone = {key: size for key, size in before.items() if key not in upkeep.objects()}

    assert did["expire"] == replace(said["expire"], status="DONE")
    assert did["expire"].files == len(gone) > 0
    lists = sum(size for key, size in gone.items() if "/snap-" in key)
    assert did["expire"].bytes == sum(gone.values()) - lists
    assert (said["orphans"].items, said["orphans"].bytes) == ((orphan,), 11)
    assert statuses(upkeep.keep(table, "orphans", apply=True)) == {"orphans": "NOTHING_TO_DO"}
    assert statuses(upkeep.keep(table, "orphans", **NOW)) == {"orphans": "DONE"}
    assert orphan not in upkeep.objects()
    assert upkeep.rows() == expected

    # The state's snapshot is still there: the next load goes on from it.
    upkeep.file([{"id": 11}])
    assert upkeep.loaded(table).rows == 1


def test_steps_of_metadata_alone_do_without_java(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = upkeep.table(upkeep.file([{"id": 1}]))
    upkeep.loaded(table)
    small_files(upkeep, commits=2)
    dead = staging_branch(datetime.now(UTC) - timedelta(days=2), ATTEMPT)
    create_branch(upkeep.tables, upkeep.schema, "orders", dead, "main")
    rows, before = upkeep.rows(), upkeep.objects()
    with_jars = FORMATS["ICEBERG"].steps_with_jars

    def open_in(_: SparkCatalog, *given: object) -> None:
        raise AssertionError(given)

    monkeypatch.setattr(SparkCatalog, "open_in", open_in)
    monkeypatch.setattr("tests.integration.formats.iceberg.upkeep.open_in_spark", lambda *_: None)
    steps = [step for step in FORMATS["ICEBERG"].maintenance_steps if step not in with_jars]
    did = upkeep.keep(table, *steps, **NOW)
    for step in sorted(with_jars):
        with pytest.raises(AssertionError):
            upkeep.keep(table, step)
    monkeypatch.undo()

    assert statuses(did) == {"branches": "DONE", "uploads": "NOTHING_TO_DO", "expire": "DONE"}
    # The state's own snapshot stays, and those after it.
    assert (did["expire"].snapshots, did["expire"].files) == (1, 1)
    assert len(before.keys() - upkeep.objects().keys()) == 1
    assert upkeep.rows() == rows


@pytest.mark.parametrize(("codec", "name"), [("zstd", "zstandard"), ("snappy", "snappy")])
def test_manifests_that_java_packs_are_loaded_and_expired(
    upkeep: Upkeep, codec: str, name: str
) -> None:
    packs = {"write.manifest.compression-codec": codec, "commit.manifest.min-count-to-merge": "2"}
    upkeep.loaded(upkeep.table(upkeep.file([{"id": 1}]), table_properties=packs))
    small_files(upkeep)
    files = LakeFiles(AwsSession(upkeep.destination), upkeep.destination)
    # Of lists Java packs none.
    [manifest, *_] = upkeep.java().currentSnapshot().allManifests(upkeep.java().io())
    header = files.read(str(manifest.path())).partition(b"avro.codec")[2]
    assert header[1:].startswith(name.encode())

    upkeep.loaded(upkeep.table(upkeep.file([{"id": 2}])))
    assert [row["id"] for row in upkeep.rows()] == [1, 2, *range(100, 106)]
    small_files(upkeep, commits=2)
    upkeep.loaded(upkeep.table(upkeep.file([{"id": 3}]), mode="OVERWRITE"))
    small_files(upkeep)

    did = upkeep.keep(upkeep.table(), "expire", **NOW)

    assert statuses(did) == {"expire": "DONE"}
    assert (did["expire"].snapshots, len(upkeep.read().snapshots())) == (6, 2)
    # pyiceberg has no snappy: it reads what a load has merged.
    upkeep.loaded(upkeep.table(upkeep.file([{"id": 4}])))
    assert [row["id"] for row in upkeep.rows()] == [3, 4, *range(100, 106)]


def test_maintain_aborts_uploads_that_no_load_will_complete(upkeep: Upkeep) -> None:
    table = upkeep.table(upkeep.file([{"id": 1}]))
    assert upkeep.loaded(table).writer == "direct"
    now, admin, bucket = datetime.now(UTC), upkeep.lake.server.s3, upkeep.destination.bucket
    folder = str(upkeep.java().location()).removeprefix(f"s3://{bucket}/") + "/data/"
    dead = staging_branch(now - timedelta(days=2), ATTEMPT)
    left = folder + data_file_name(dead, 3, uuid.uuid4())
    others = f"{folder}00000-1-of-another-writer.parquet"
    for key in (left, others):
        admin.create_multipart_upload(Bucket=bucket, Key=key)

    def open_keys() -> set[str]:
        found = admin.list_multipart_uploads(Bucket=bucket, Prefix=folder).get("Uploads", [])
        return {one["Key"] for one in found}

    def said(*, apply: bool, age: int = 0) -> StepResult:
        return upkeep.keep(table, "uploads", apply=apply, abort_older_than=age)["uploads"]

    would = said(apply=False)
    young = said(apply=True, age=3600)
    create_branch(upkeep.tables, upkeep.schema, "orders", dead, "main")
    waits = said(apply=True)
    drop_branch(upkeep.tables, upkeep.schema, "orders", dead)
    at_work = staging_branch(now - timedelta(hours=1), str(uuid.uuid4()))
    create_branch(upkeep.tables, upkeep.schema, "orders", at_work, "main")
    beside = said(apply=True)
    drop_branch(upkeep.tables, upkeep.schema, "orders", at_work)
    assert open_keys() == {left, others}
    with upkeep.without_action("s3:ListBucketMultipartUploads"):
        denied = said(apply=True)
    done = said(apply=True)

    assert (would.status, would.items) == ("WOULD_DO", (left,))
    assert [one.status for one in (young, waits, beside)] == ["NOTHING_TO_DO"] * 3
    assert denied.status == "UNSUPPORTED"
    assert "listing the open uploads" in denied.notes[0]
    assert (done.status, done.files, done.items) == ("DONE", 1, (left,))
    assert open_keys() == {others}
    assert upkeep.rows() == [{"id": 1}]


def test_loads_concurrent_with_maintenance_are_all_committed(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed: dict[str, Any] = {"primary_key": ("id",)}
    upkeep.loaded(upkeep.table(upkeep.file([{"id": n, "note": "a"} for n in range(3)]), **keyed))
    small_files(upkeep)
    whole = upkeep.table(upkeep.file([{"id": 50, "note": "b"}]), **keyed)

    def meanwhile() -> None:
        steps = upkeep.keep(whole, "compact", "manifests", "expire", **NOW)
        assert statuses(steps)["compact"] == "DONE"

    before_publishing(monkeypatch, meanwhile)
    upkeep.loaded(whole)
    expected = {0, 1, 2, 50, *range(100, 106)}
    assert {row["id"] for row in upkeep.rows()} == expected

    small_files(upkeep)
    before_publishing(monkeypatch, meanwhile)
    rows = [{"id": 0, "note": "new"}, {"id": 51, "note": "b"}]
    upserted = upkeep.loaded(upkeep.table(upkeep.file(rows), mode="UPSERT", **keyed))

    assert upserted.changes is not None
    assert (upserted.changes.inserted, upserted.changes.updated) == (1, 1)
    found = upkeep.rows()
    assert {row["id"] for row in found} == {*expected, 51}
    assert [row["note"] for row in found if row["id"] == 0] == ["new"]
    assert list(upkeep.read().metadata.refs) == ["main"]


def test_orphans_are_none_of_a_load_that_commits_between_two_steps(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = upkeep.table(upkeep.file([{"id": 1}]))
    upkeep.loaded(table)
    more = upkeep.table(upkeep.file([{"id": 2}]))

    def compact(work: rewrites.SparkWork) -> StepResult:
        did = rewrites.compact(work)
        upkeep.loaded(more)
        return did

    monkeypatch.setitem(rewrites.STEPS, "compact", compact)
    did = upkeep.keep(table, "compact", "orphans", **NOW)

    assert statuses(did)["orphans"] == "NOTHING_TO_DO"
    assert upkeep.rows() == [{"id": 1}, {"id": 2}]


def test_compaction_with_conflicts_is_retried_and_then_reported(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = upkeep.table(upkeep.file([{"id": n} for n in range(10)]))
    upkeep.loaded(table)
    small_files(upkeep)
    rewrite, losses = rewrites._rewrite, iter(range(4))

    def disturbed(*given: Any) -> Any:
        if next(losses, None) is not None:
            upkeep.sql("DELETE FROM {t} WHERE id IN (SELECT min(id) FROM {t})")
        return rewrite(*given)

    monkeypatch.setattr(rewrites, "_rewrite", disturbed)
    lost = upkeep.keep(table, "compact")["compact"]
    won = upkeep.keep(table, "compact")["compact"]

    assert lost.error is not None
    assert (lost.status, lost.error.exit_code, lost.error.retryable) == ("CONFLICT", 5, True)
    assert won.status == "DONE"
    assert {row["id"] for row in upkeep.rows()} == {*range(4, 10), *range(100, 106)}


def test_snapshots_that_expire_are_those_of_icebergs_own_expiry(upkeep: Upkeep) -> None:
    upkeep.loaded(upkeep.table(upkeep.file([{"id": 1}])))
    small_files(upkeep, commits=3)
    (first, *_, last) = [one.snapshot_id for one in upkeep.read().snapshots()]
    settings = {
        "two": "WITH SNAPSHOT RETENTION 2 SNAPSHOTS",
        "aged": "WITH SNAPSHOT RETENTION 1 SNAPSHOTS 9 DAYS",
        "old": f"AS OF VERSION {first} RETAIN 1 MINUTES",
        "plain": f"AS OF VERSION {first}",
    }
    for name, setting in settings.items():
        upkeep.sql(f"ALTER TABLE {{t}} CREATE BRANCH {name} {setting}")
    small_files(upkeep, branch="plain")
    small_files(upkeep, branch="two", commits=2)
    upkeep.sql(f"ALTER TABLE {{t}} CREATE TAG kept AS OF VERSION {last}")
    upkeep.sql("ALTER TABLE {t} DROP BRANCH aged")
    times = [one.timestamp_ms for one in upkeep.read().snapshots()]
    metadata = upkeep.read().metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    java, found = upkeep.java(), {}

    for older_than in (None, times[0], times[2], times[4] + 1, times[-1] + 1):
        for retain_last in (None, 2, 4):
            update = java.expireSnapshots()
            if older_than is not None:
                update = update.expireOlderThan(older_than)
            if retain_last is not None:
                update = update.retainLast(retain_last)
            ours = expired(metadata, now_ms(), older_than_ms=older_than, retain_last=retain_last)
            theirs = {int(one.snapshotId()) for one in update.apply()}
            assert set(ours.snapshots) == theirs, (older_than, retain_last)
            found[older_than, retain_last] = len(theirs)

    assert len(set(found.values())) > 2, found


def test_maintain_respects_limits_and_permissions(upkeep: Upkeep) -> None:
    table = upkeep.table(upkeep.file([{"id": n} for n in range(10)]))
    upkeep.loaded(table)
    small_files(upkeep)
    sizes = [task.file.file_size_in_bytes for task in upkeep.read().scan().plan_files()]
    limit = sum(sorted(sizes)[-3:])

    refused = upkeep.keep(table, "compact", where="no_such = 1")["compact"]
    filtered = upkeep.keep(table, "compact", apply=False, where="id >= 101")["compact"]
    limited = upkeep.keep(table, "compact", max_bytes=limit)["compact"]
    snapshots = len(upkeep.read().snapshots())
    upkeep.allow(maintain=False)
    denied = upkeep.keep(table, "expire", retain_last=1, **NOW)["expire"]

    assert refused.error is not None
    assert (refused.status, refused.error.exit_code) == ("FAILED", 2)
    assert "`no_such` cannot be resolved" in refused.error.message
    assert filtered.files == 5
    assert (limited.status, limited.files, limited.files_after) == ("DONE", 3, 1)
    assert (limited.bytes or 0) <= limit
    assert denied.error is not None
    assert "`s3:DeleteObject`" in denied.error.message
    assert f"{upkeep.schema}/orders/metadata/" in denied.error.message
    assert len(upkeep.read().snapshots()) == snapshots > 1
    assert len(upkeep.rows()) == 16
