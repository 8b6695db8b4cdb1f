"""recover, runs, reset and plan for Iceberg tables in Glue, as commands; no Spark is started."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

from lakeload.demo.aws import ACCOUNT_ID
from lakeload.documents.load import load_destination, load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.formats.iceberg.inspect import inspect
from lakeload.formats.inspection import InspectionRequest
from lakeload.launch.spec import new_attempt
from lakeload.policy.iam import PolicyOptions, role_policies
from lakeload.policy.policy_set import merged
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import NO_OPTIONS
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.file_ledger import LedgerEntry, ledger_key, write_entry
from lakeload_jobs.formats.iceberg.left_files import find_left_files
from lakeload_jobs.formats.iceberg.rules.branches import data_file_name, staging_branch
from lakeload_jobs.sources.files.selection import choose_files
from lakeload_jobs.storage.objects import Objects
from tests.integration.commands.conftest import ADMIN, Command
from tests.integration.commands.iceberg_writer import ATTEMPT, IcebergWriter, rows_of
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake

SCHEMA = "shop_upkeep"
YOUNG = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def writer(shop: Lake, tmp_path: Path) -> Iterator[IcebergWriter]:
    """An empty table of pipeline `shop`, whose documents are in the current folder."""
    endpoint = shop.server.endpoint
    shop.write_pipeline(
        tmp_path,
        tables=[{"table": "orders", "path": "orders.csv"}, {"table": "new", "path": "orders.csv"}],
        destination={
            "credentials": ADMIN,
            "table_format": "ICEBERG",
            "endpoints": dict.fromkeys(("s3", "sts", "glue"), endpoint),
        },
        destination_prefix=SCHEMA,
    )
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n")
    catalog = load_catalog(
        "writer",
        **{
            "type": "glue",
            "glue.endpoint": endpoint,
            "glue.region": shop.seeded.region,
            "s3.endpoint": endpoint,
            "s3.region": shop.seeded.region,
            "client.access-key-id": "test",
            "client.secret-access-key": "test",
        },
    )
    made = IcebergWriter(catalog, SCHEMA, "orders")
    made.create(f"s3://{shop.seeded.bucket}/{shop.seeded.prefix}/{SCHEMA}/orders")
    yield made
    glue_of(shop).delete_database(Name=SCHEMA)


def test_runs_show_jobs_of_the_snapshots(writer: IcebergWriter, command: Command) -> None:
    first = writer.load("monday", 3)
    second = writer.load("tuesday", 4)
    writer.table().manage_snapshots().rollback_to_snapshot(first).commit()
    shown = command("runs", "pipeline.yml")
    assert shown.code == 0
    states = [line.split()[-1] for line in shown.lines() if line.startswith("  ")]
    assert states == ["back", "done"]
    runs = command("runs", "pipeline.yml", "--output", "json").document["runs"]
    told = [(run["job_id"], run["snapshot_id"], run["rows"], run["state"]) for run in runs]
    assert told == [("tuesday", second, 4, "rolled back"), ("monday", first, 3, "done")]
    assert runs[0]["target"] == f"{SCHEMA}.orders"


def test_recover_drops_only_branches_of_abandoned_attempts(
    writer: IcebergWriter, command: Command
) -> None:
    head = writer.load("monday", 3)
    now = datetime.now(UTC)
    old = writer.stage(now - timedelta(hours=30))
    young = writer.stage(now - timedelta(hours=1), YOUNG)
    writer.table().manage_snapshots().create_branch(head, "audit").commit()
    planned = command("recover", "pipeline.yml", "--dry-run", "--output", "json").document
    orders, new = planned["tables"]
    assert (orders["status"], new["exists"]) == ("UNFINISHED", False)
    assert [branch["name"] for branch in orders["branches"]] == [old]
    assert [branch["name"] for branch in orders["younger_branches"]] == [young]
    assert set(writer.table().metadata.refs) == {"main", "audit", old, young}
    done = command("recover", "pipeline.yml")
    assert (done.code, f"{SCHEMA}.orders  RECOVERED   dropped 1 branch" in done.out) == (0, True)
    assert ATTEMPT in done.out
    refs = writer.table().metadata.refs
    assert set(refs) == {"main", "audit", young}
    assert refs["main"].snapshot_id == head
    assert command("recover", "pipeline.yml", "--abort-older-than", "0").code == 0
    assert set(writer.table().metadata.refs) == {"main", "audit"}
    refused = command("recover", "pipeline.yml", "--void", "monday", "--yes")
    assert refused.code == 2


def test_recover_aborts_uploads_of_abandoned_attempts(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.load("monday", 3)
    bucket, admin = shop.seeded.bucket, shop.server.s3
    gone = staging_branch(datetime.now(UTC) - timedelta(hours=30), ATTEMPT)
    name = data_file_name(gone, 0, uuid.uuid4())
    key = f"{shop.seeded.prefix}/{SCHEMA}/orders/data/{name}"
    admin.create_multipart_upload(Bucket=bucket, Key=key)
    young = command("recover", "pipeline.yml", "--output", "json").document
    flags = ("--abort-older-than", "0", "--output", "json")

    planned = command("recover", "pipeline.yml", "--dry-run", *flags).document
    left = admin.list_multipart_uploads(Bucket=bucket)["Uploads"]
    done = command("recover", "pipeline.yml", "--abort-older-than", "0")

    assert young["tables"][0]["uploads"] == []
    assert [one["key"] for one in planned["tables"][0]["uploads"]] == [key]
    assert planned["tables"][0]["status"] == "UNFINISHED"
    assert [one["Key"] for one in left] == [key]
    assert f"{SCHEMA}.orders  RECOVERED   removed 1 upload of abandoned attempts" in done.out
    assert "Uploads" not in admin.list_multipart_uploads(Bucket=bucket)


def files_of(writer: IcebergWriter, shop: Lake) -> set[str]:
    """Return the locations of all files in the data folder."""
    bucket, _, path = writer.table().location().removeprefix("s3://").partition("/")
    return {f"s3://{bucket}/{key}" for key in shop.keys(f"{path}/data/")}


def test_recover_removes_files_that_no_snapshot_names(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.load("monday", 3)
    begun = datetime.now(UTC) - timedelta(hours=30)
    committed = writer.complete(begun, commit=True)
    others = f"{writer.table().location()}/data/lakeload_notes.parquet"
    writer.table().io.new_output(others).create().close()
    kept = files_of(writer, shop)
    left = {writer.complete(begun), writer.complete(begun, YOUNG)}
    flags = ("--abort-older-than", "0", "--output", "json")
    keys = {location.partition(f"{shop.seeded.bucket}/")[2] for location in left}

    young = command("recover", "pipeline.yml", "--output", "json").document["tables"][0]
    planned = command("recover", "pipeline.yml", "--dry-run", *flags).document["tables"][0]
    there = files_of(writer, shop)
    told = command("recover", "pipeline.yml", "--dry-run", "--abort-older-than", "0")
    done = command("recover", "pipeline.yml", "--abort-older-than", "0")

    assert (young["status"], young["files"]) == ("UP_TO_DATE", [])
    assert (planned["status"], planned["warnings"]) == ("UNFINISHED", [])
    assert {one["key"] for one in planned["files"]} == keys
    assert all(one["bytes"] > 0 and one["modified"] for one in planned["files"])
    assert there == kept | left
    assert f"{SCHEMA}.orders  UNFINISHED  would remove 2 files of abandoned attempts" in told.out
    assert f"{SCHEMA}.orders  RECOVERED   removed 2 files of abandoned attempts" in done.out
    assert (done.code, files_of(writer, shop)) == (0, kept)
    assert committed in kept
    assert writer.table().scan().to_arrow().num_rows == 5


def test_recover_keeps_a_committed_file_whose_own_snapshot_has_expired(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.complete(datetime.now(UTC) - timedelta(hours=30), commit=True)
    snapshot = writer.table().current_snapshot()
    assert snapshot is not None
    writer.load("tuesday", 3)
    writer.table().maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    kept = files_of(writer, shop)

    (table, _) = command(
        "recover", "pipeline.yml", "--abort-older-than", "0", "--output", "json"
    ).document["tables"]

    assert (table["status"], table["files"]) == ("UP_TO_DATE", [])
    assert files_of(writer, shop) == kept
    assert len(writer.table().metadata.snapshots) == 1
    assert writer.table().scan().to_arrow().num_rows == 5


def test_recover_leaves_files_of_staged_snapshots_to_maintain(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.load("monday", 3)
    begun = datetime.now(UTC) - timedelta(hours=30)
    branch = writer.stage(begun)
    left = writer.complete(begun)
    location = writer.complete(begun)
    writer.table().add_files([location], branch=branch)
    flags = ("--abort-older-than", "0", "--output", "json")

    planned = command("recover", "pipeline.yml", "--dry-run", *flags).document["tables"][0]
    done = command("recover", "pipeline.yml", *flags).document["tables"][0]

    for table in (planned, done):
        assert [one["name"] for one in table["branches"]] == [branch]
        assert [one["key"].rpartition("/")[2] for one in table["files"]] == [
            left.rpartition("/")[2]
        ]
    assert location in files_of(writer, shop)
    assert left not in files_of(writer, shop)


def test_recover_keeps_files_that_are_younger_than_a_live_branch(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.load("monday", 3)
    now = datetime.now(UTC)
    live = writer.stage(now - timedelta(minutes=30), YOUNG)
    # Of its own, and of one that somebody has dropped.
    left = {writer.complete(now - timedelta(minutes=30), YOUNG), writer.complete(now)}

    (table, _) = command(
        "recover", "pipeline.yml", "--abort-older-than", "1h", "--output", "json"
    ).document["tables"]

    assert [one["name"] for one in table["younger_branches"]] == [live]
    assert table["files"] == []
    assert left <= files_of(writer, shop)


def test_recover_removes_no_files_of_a_table_whose_files_belong_to_others(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.load("monday", 3)
    left = writer.complete(datetime.now(UTC) - timedelta(hours=30))
    properties = {"gc.enabled": "false"}
    writer.table().transaction().set_properties(properties).commit_transaction()

    assert command("recover", "pipeline.yml", "--abort-older-than", "0").code == 0
    assert left in files_of(writer, shop)


def test_recover_removes_rejected_records_of_abandoned_attempts(
    writer: IcebergWriter, command: Command
) -> None:
    writer.load("monday", 3)
    now = datetime.now(UTC)
    dead = writer.stage(now - timedelta(hours=30))
    young = writer.stage(now - timedelta(hours=1), YOUNG)
    landed = staging_branch(now - timedelta(hours=2), str(uuid.uuid4()))
    summary = {"lakeload.job-id": "late", "lakeload.pipeline": "shop", "lakeload.branch": landed}
    writer.table().append(rows_of(1), snapshot_properties=summary)
    side = side_table(writer, {name: [f"of {name}"] for name in (dead, young, landed)})

    planned = command("recover", "pipeline.yml", "--dry-run", "--output", "json").document
    assert {one["branch"]: one["stay"] for one in planned["tables"][0]["rejected"]} == {
        dead: False,
        landed: True,
    }
    assert len(side.table().scan().to_arrow()) == 3
    done = command("recover", "pipeline.yml")

    assert done.code == 0, done.err
    told = (
        "dropped 1 branch of abandoned attempts; "
        "removed the rejected records of 1 abandoned attempt; "
        "the rejected records of 1 load stay: it is committed"
    )
    assert told in " ".join(done.out.split())
    assert set(side.table().scan().to_arrow()["staging_branch"].to_pylist()) == {young, landed}
    assert pending_of(side) == [f"lakeload.pending.{young}"]
    assert "nothing to do" in command("recover", "pipeline.yml").out
    assert command("recover", "pipeline.yml", "--abort-older-than", "0").code == 0
    assert side.table().scan().to_arrow()["staging_branch"].to_pylist() == [landed]
    # Whoever made it may be about to add records: it is remembered for a day.
    assert pending_of(side) == [f"lakeload.pending.{young}"]


def side_table(writer: IcebergWriter, rounds: dict[str, list[str]]) -> IcebergWriter:
    """Return the side table of a table, with the records of these rounds, all of them pending."""
    side = replace(writer, name=f"{writer.name}_rejected")
    schema = Schema(
        NestedField(1, "raw_record", StringType(), required=False),
        NestedField(2, "staging_branch", StringType(), required=False),
    )
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "staging_branch"))
    table = side.catalog.create_table(
        (side.namespace, side.name),
        schema,
        location=writer.table().location() + "_rejected",
        partition_spec=spec,
        properties={
            "lakeload.created-by": "shop",
            "lakeload.rejected-of": f"{writer.namespace}.{writer.name}",
        },
    )
    for name, records in rounds.items():
        rows = pa.table({"raw_record": records, "staging_branch": [name] * len(records)})
        table.append(rows)
        mark = {"branch": name, "attempt": ATTEMPT, "pipeline": "shop", "job": "j"}
        properties = {f"lakeload.pending.{name}": json.dumps(mark)}
        table.transaction().set_properties(properties).commit_transaction()
    return side


def pending_of(side: IcebergWriter) -> list[str]:
    properties = side.table().properties
    return [name for name in properties if name.startswith("lakeload.pending.")]


def test_reset_removes_the_table_and_the_files_its_metadata_names(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.load("monday", 3)
    writer.load("tuesday", 4)
    inside = f"{shop.seeded.prefix}/{SCHEMA}/orders/"
    stranger = f"{inside}data/somebody.parquet"
    shop.server.s3.put_object(Bucket=shop.seeded.bucket, Key=stranger, Body=b"x")
    before = shop.keys()
    planned = command("reset", "pipeline.yml", "orders")
    assert planned.code == 0
    assert "  would drop the table from the catalog: 7 rows in 2 snapshots" in planned.lines()
    assert shop.keys() == before
    done = command("reset", "pipeline.yml", "orders", "new", "--yes", "--output", "json")
    assert done.code == 0, done.err
    assert [table["dropped"] for table in done.document["tables"]] == [True, False]
    assert shop.keys(shop.seeded.prefix) == [stranger]
    assert not writer.catalog.table_exists((SCHEMA, "orders"))
    assert command("reset", "pipeline.yml", "orders").lines()[-1] == "  there is no such table"


def test_table_that_cannot_be_read_leaves_the_reset_of_the_others_alone(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.load("monday", 3)
    snapshot = writer.table().current_snapshot()
    assert snapshot is not None
    key = snapshot.manifest_list.removeprefix(f"s3://{shop.seeded.bucket}/")
    shop.server.s3.put_object(Bucket=shop.seeded.bucket, Key=key, Body=b"Obj")
    before = shop.keys()

    done = command("reset", "pipeline.yml", "orders", "new", "--yes", "--output", "json")

    orders, new = done.document["tables"]
    assert (done.code, orders["dropped"], new["error"]) == (1, False, None)
    assert f"reading `{snapshot.manifest_list}`: the Avro file" in orders["error"]["message"]
    assert shop.keys() == before


def test_maintain_with_steps_of_metadata_alone_starts_no_spark(
    writer: IcebergWriter, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object) -> None:
        raise AssertionError("Spark is started")

    monkeypatch.setattr("lakeload.commands.maintain._in_spark", started)
    writer.load("monday", 3)
    last = writer.load("tuesday", 2)
    left = writer.stage(datetime.now(UTC) - timedelta(hours=30))
    steps = ("--only", "branches,uploads,expire", "--older-than", "0", "--output", "json")

    planned = command("maintain", "pipeline.yml", *steps)
    assert left in writer.table().metadata.refs
    done = command("maintain", "pipeline.yml", *steps, "--apply")

    assert (planned.code, done.code) == (0, 0), done.err
    orders, new = done.document["tables"]
    said = {step["step"]: step["status"] for step in planned.document["tables"][0]["steps"]}
    did = {step["step"]: step["status"] for step in orders["steps"]}
    assert said == {"branches": "WOULD_DO", "uploads": "NOTHING_TO_DO", "expire": "WOULD_DO"}
    assert did == {"branches": "DONE", "uploads": "NOTHING_TO_DO", "expire": "DONE"}
    assert (new["target"].endswith(".new"), new["steps"]) == (True, [])
    assert done.document["log"] is None
    now = writer.table()
    assert left not in now.metadata.refs
    assert [one.snapshot_id for one in now.metadata.snapshots] == [last]
    assert now.scan().to_arrow().num_rows == 5


def test_reset_keeps_a_table_with_rows_of_other_pipelines(
    writer: IcebergWriter, command: Command, shop: Lake
) -> None:
    writer.load("monday", 3)
    writer.load("night", 4, pipeline="warehouse")
    before = shop.keys()
    ended = command("reset", "pipeline.yml", "orders", "--yes")
    assert (ended.code, "rows of pipeline `warehouse`" in ended.err) == (1, True)
    assert shop.keys() == before


def test_plan_shows_the_current_table(writer: IcebergWriter, command: Command) -> None:
    snapshot = writer.load("monday", 3)
    ended = command("plan", "pipeline.yml", "--no-schema", "--output", "json")
    assert ended.code == 0, ended.err
    orders, new = ended.document["tables"]
    assert (orders["action"], orders["first_run"], new["first_run"]) == ("LOAD", False, True)
    assert (orders["iceberg"]["snapshot_id"], orders["iceberg"]["rows"]) == (snapshot, 3)
    assert new["iceberg"]["exists"] is False
    assert new["iceberg"]["location"].endswith(f"/{SCHEMA}/new")


def test_iceberg_table_of_another_pipeline_or_rolled_back_is_rejected_before_spark(
    writer: IcebergWriter, command: Command
) -> None:
    writer.load("night", 4, pipeline="warehouse")
    ended = command("sync", "pipeline.yml", "--dry-run", "--no-schema", "--table", "orders")
    assert ended.code == 3
    assert "pipeline `warehouse` loads into it" in ended.err
    assert "table_handling: APPEND" in ended.err


def test_sync_of_a_committed_iceberg_job_needs_no_spark(
    writer: IcebergWriter, command: Command, tmp_path: Path
) -> None:
    document = load_pipeline(tmp_path / "pipeline.yml", os.environ)
    (orders, _) = table_specs(document)
    snapshot = writer.load("monday", 3, fingerprint=orders.fingerprint)
    words = ("sync", "pipeline.yml", "--table", "orders", "--job-id", "monday", "--output", "json")
    ended = command(*words)
    assert ended.code == 0, ended.err
    (table,) = ended.document["tables"]
    assert (table["status"], table["rows"], table["snapshot_id"]) == ("NO_OP", 3, snapshot)
    assert ended.document["log"] is None


@pytest.fixture
def allow(writer: IcebergWriter, shop: Lake, tmp_path: Path) -> Callable[[PolicyOptions], None]:
    """`allow(PolicyOptions())` lets the pipeline be loaded by a role with that policy."""
    endpoints = dict.fromkeys(("s3", "sts", "glue"), shop.server.endpoint)
    path = shop.write_destination(tmp_path, table_format="ICEBERG", endpoints=endpoints)
    destination = destination_spec(load_destination(path, os.environ))

    def put(options: PolicyOptions) -> None:
        documents = role_policies(destination, options)
        whole = merged("all", *documents)
        assert whole is not None
        policy = json.loads(json.dumps(whole.as_json()))
        # Where AWS checks a call on a database against that database, the emulator looks for a
        # table of its name.
        table = f"arn:aws:glue:{shop.seeded.region}:{ACCOUNT_ID}:table/{SCHEMA}"
        emulators = {"Effect": "Allow", "Action": "glue:GetDatabase", "Resource": table}
        policy["Statement"].append(emulators)
        shop.server.admin.put_role_policy(shop.seeded.role, policy)

    return put


def test_recover_by_a_role_that_may_not_delete_warns_of_the_files_that_stay(
    writer: IcebergWriter,
    command: Command,
    shop: Lake,
    allow: Callable[[PolicyOptions], None],
) -> None:
    writer.load("monday", 3)
    begun = datetime.now(UTC) - timedelta(hours=30)
    left = {writer.complete(begun), writer.complete(begun)}
    words = ("recover", "pipeline.yml", "--abort-older-than", "0")

    allow(PolicyOptions())
    shown = command(*words)
    told = command(*words, "--output", "json")
    there = files_of(writer, shop)
    allow(PolicyOptions(maintain=True))
    done = command(*words)

    assert (shown.code, "nothing to do" in shown.out) == (0, True), shown.err
    assert "(`s3:DeleteObject`)" in shown.err
    (table, _) = told.document["tables"]
    (warning,) = table["warnings"]
    assert (told.code, table["status"], table["files"]) == (0, "UP_TO_DATE", [])
    assert warning["message"].startswith("2 files of abandoned attempts could not be removed: ")
    assert sum(f"`{location}`" in warning["message"] for location in left) == 1
    assert "`lakeload maintain PIPELINE --only orphans --apply`" in warning["hint"]
    assert "`lakeload policy DESTINATION --with maintain`" in warning["hint"]
    assert left <= there
    assert f"{SCHEMA}.orders  RECOVERED   removed 2 files of abandoned attempts" in done.out
    assert files_of(writer, shop) == there - left


def test_files_of_loads_that_begin_or_publish_while_files_are_listed_are_not_left(
    writer: IcebergWriter, shop: Lake, tmp_path: Path
) -> None:
    writer.load("monday", 3)
    destination = destination_spec(load_pipeline(tmp_path / "pipeline.yml", os.environ).destination)
    session = AwsSession(destination)
    # Their age is not what keeps these files.
    later = datetime.now(UTC) + timedelta(hours=1)
    dead = writer.complete(later, str(uuid.uuid4()))
    begun: list[tuple[str, str]] = []

    def read() -> ReadTable:
        if not begun:
            opened = writer.read()
            for attempt in (ATTEMPT, YOUNG):
                branch = writer.stage(later, attempt)
                begun.append((branch, writer.complete(later, attempt)))
            return opened
        branch, location = begun[0]
        writer.table().add_files([location])
        writer.table().manage_snapshots().remove_branch(branch).commit()
        return writer.read()

    left = find_left_files(
        Objects(session, destination),
        destination.bucket,
        read,
        LakeFiles(session, destination),
        later,
        timedelta(0),
    )

    assert [f"s3://{destination.bucket}/{one.key}" for one in left] == [dead]


def test_the_policies_of_a_load_and_of_reset_are_enough(
    writer: IcebergWriter,
    command: Command,
    shop: Lake,
    allow: Callable[[PolicyOptions], None],
) -> None:
    writer.load("monday", 3)
    left = writer.stage(datetime.now(UTC) - timedelta(hours=30))
    allow(PolicyOptions())
    recovered = command("recover", "pipeline.yml")
    assert (recovered.code, left in writer.table().metadata.refs) == (0, False), recovered.err
    refused = command("reset", "pipeline.yml", "orders", "--yes")
    assert (refused.code, "glue:DeleteTable" in refused.err) == (3, True), refused.err
    assert writer.table().scan().to_arrow().num_rows == 3
    allow(PolicyOptions(reset=True))
    done = command("reset", "pipeline.yml", "orders", "--yes")
    assert done.code == 0, done.err
    assert shop.keys(f"{shop.seeded.prefix}/{SCHEMA}/orders/") == []


def test_inspection_before_spark_needs_two_requests_per_table(
    writer: IcebergWriter, shop: Lake, tmp_path: Path
) -> None:
    writer.load("monday", 3)
    document = load_pipeline(tmp_path / "pipeline.yml", os.environ)
    destination = destination_spec(document.destination)
    session = AwsSession(destination)
    calls: list[str] = []
    for client in (session.s3, session.glue):
        client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
    request = InspectionRequest(destination, "shop", new_attempt("tuesday"), NO_OPTIONS)
    seen = inspect(session, table_specs(document), request)
    assert [(table.idle, table.error) for table in seen] == [(False, None), (False, None)]
    assert sorted(calls) == ["GetObject", "GetTable", "GetTable"]


def test_sync_without_new_files_needs_no_spark_and_reset_removes_the_bookmark(
    writer: IcebergWriter, command: Command, shop: Lake, tmp_path: Path
) -> None:
    source = {"type": "FILES", "format": "CSV", "options": {"header": True}, "incremental": True}
    document = yaml.safe_load((tmp_path / "pipeline.yml").read_text())
    document |= {"source": source, "tables": document["tables"][:1]}
    (tmp_path / "pipeline.yml").write_text(yaml.safe_dump(document))
    pipeline = load_pipeline(tmp_path / "pipeline.yml", os.environ)
    destination = destination_spec(pipeline.destination)
    session = AwsSession(destination)
    request = InspectionRequest(destination, "shop", new_attempt("monday"), NO_OPTIONS)
    (seen,) = inspect(session, table_specs(pipeline), request)
    assert seen.report.listed is not None
    assert seen.report.files == seen.report.listed
    first = Bookmark(None, True, 1, lambda _: ())
    selection = choose_files(first, str(tmp_path), seen.report.listed)
    assert len(selection.files) == 1
    place = TableLocation(destination.prefix, SCHEMA, "orders")
    key = ledger_key(place, "shop", ATTEMPT)
    entry = LedgerEntry(1, None, "shop", "orders", "monday", selection.evidence.inputs)
    write_entry(Objects(session, destination), key, entry)
    writer.load("monday", 1, known=selection.state.after, ledger=key)

    ended = command("sync", "pipeline.yml", "--job-id", "tuesday", "--output", "json")
    assert ended.code == 0, ended.err
    (table,) = ended.document["tables"]
    assert (table["status"], table["notes"]) == ("NO_OP", ["no new files (1 known)"])
    assert ended.document["log"] is None
    (tmp_path / "orders.csv").write_text("id,name\n2,changed\n")
    plan = command("plan", "pipeline.yml", "--no-schema", "--output", "json").document
    assert plan["tables"][0]["incremental"]["new_files"] == 1
    done = command("reset", "pipeline.yml", "orders", "--yes", "--output", "json")
    assert done.code == 0, done.err
    assert done.document["tables"][0]["plan"]["ledger"] == [key]
    assert [key for key in shop.keys(shop.seeded.prefix) if "/job-history/" not in key] == []


def test_reset_removes_the_side_table_of_rejected_records(
    writer: IcebergWriter, command: Command
) -> None:
    writer.load("monday", 3)
    side = replace(writer, name="orders_rejected")
    side.create(writer.table().location() + "_rejected")
    side.load("monday", 2)
    planned = command("reset", "pipeline.yml", "orders")
    assert f"{SCHEMA}.orders_rejected" not in planned.lines()
    properties = {"lakeload.rejected-of": f"{SCHEMA}.orders"}
    side.table().transaction().set_properties(properties).commit_transaction()
    done = command("reset", "pipeline.yml", "orders", "--yes", "--output", "json")
    assert done.code == 0, done.err
    assert [(table["target"], table["dropped"]) for table in done.document["tables"]] == [
        (f"{SCHEMA}.orders", True),
        (f"{SCHEMA}.orders_rejected", True),
    ]
    assert not side.catalog.table_exists((SCHEMA, "orders_rejected"))
