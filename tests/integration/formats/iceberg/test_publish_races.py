"""Loads beside each other and beside others: what a publish sees, and what it must not overlook."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import FilesInput, Mode, RunOptions
from lakeload_jobs.formats.base import Reporter
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected
from lakeload_jobs.formats.iceberg.commits.metadata import assert_ref, remove_ref, set_properties
from lakeload_jobs.formats.iceberg.format import IcebergFormat
from lakeload_jobs.formats.iceberg.load import direct_write
from lakeload_jobs.formats.iceberg.load import publish as publish_module
from lakeload_jobs.formats.iceberg.load import write as write_module
from lakeload_jobs.formats.iceberg.load.branches import create_branch, drop_branch
from lakeload_jobs.formats.iceberg.load.tables import load, spark_name
from lakeload_jobs.formats.iceberg.rules.branches import parse_staging_branch, staging_branch
from lakeload_jobs.formats.load_table import TableLoad, load_table
from lakeload_jobs.sources.registry import Sources
from tests.integration.formats.iceberg.conftest import Loads
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import (
    Action,
    Forward,
    MakeProxy,
    Response,
    drop_answer,
    drop_request,
)


def before_publishing(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Do something once between the staging and the publish of the next load."""
    done = threading.Event()

    def publish(given: Any) -> Any:
        if not done.is_set():
            done.set()
            do()
        return publish_module.publish(given)

    monkeypatch.setattr(write_module, "publish", publish)


def foreign_append(loads: Loads, number: int) -> None:
    """Somebody else appends a row."""
    name = spark_name(loads.schema, "orders")
    frame = loads.spark.table(name).limit(1)
    frame.selectExpr(f"{number}L as id").writeTo(name).append()


@pytest.mark.parametrize("writer", ["direct", "spark"])
def test_append_to_a_moved_head_is_published_and_overwrite_is_repeated(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    own = {} if writer == "direct" else {"write.parquet.page-row-limit": "1000"}
    loads.loaded(loads.table(loads.file([{"id": 1}]), table_properties=own))
    before_publishing(monkeypatch, lambda: foreign_append(loads, 50))
    appended = loads.loaded(loads.table(loads.file([{"id": 2}])))
    summary = loads.read().snapshot_by_id(appended.snapshot_id).summary  # type: ignore[union-attr, arg-type]

    assert loads.rows() == [{"id": 1}, {"id": 2}, {"id": 50}]
    assert summary is not None
    # The snapshot that Spark has staged on the branch, whose files are in use.
    assert (summary["source-snapshot-id"] is None) == (writer == "direct")
    assert summary["source-snapshot-id"] != str(appended.snapshot_id)
    assert summary["lakeload.rows"] == "1"

    before_publishing(monkeypatch, lambda: foreign_append(loads, 51))
    loads.loaded(loads.table(loads.file([{"id": 3}]), mode="OVERWRITE"))

    assert loads.rows() == [{"id": 3}]
    assert list(loads.read().metadata.refs) == ["main"]


def test_two_attempts_at_one_job_commit_its_rows_once(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = loads.table(loads.file([{"id": 1}]))
    spec = loads.spec(table)
    other = replace(spec, attempt_id="11111111-1111-4111-8111-111111111111")
    others: list[Any] = []
    loads.loaded(loads.table(loads.file([{"id": 0}])))
    before_publishing(monkeypatch, lambda: others.append(loads.run(other).tables[0]))

    mine = loads.run(spec).tables[0]

    # The one that came in drops the branch of the other, or the other finds the job in.
    assert [others[0].status, mine.status] == ["LOADED", "NO_OP"]
    assert mine.snapshot_id == others[0].snapshot_id
    assert loads.rows() == [{"id": 0}, {"id": 1}]
    assert list(loads.read().metadata.refs) == ["main"]


def test_concurrent_loads_move_the_pipeline_state_once(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = str(loads.folder / "*.parquet")
    source = FilesInput("PARQUET", (pattern,), {}, incremental=True, folder=str(loads.folder))
    table = loads.table(input=source)
    loads.file([{"id": 1}])
    loads.loaded(table)
    loads.file([{"id": 2}])
    before_publishing(monkeypatch, lambda: loads.loaded(table))

    late = loads.load(table)

    assert late.status == "NO_OP"
    assert loads.rows() == [{"id": 1}, {"id": 2}]


def test_a_rollback_by_hand_stops_an_incremental_load_and_frees_the_job_id(loads: Loads) -> None:
    pattern = str(loads.folder / "*.parquet")
    source = FilesInput("PARQUET", (pattern,), {}, incremental=True, folder=str(loads.folder))
    table = loads.table(input=source)
    loads.file([{"id": 1}])
    first = loads.loaded(table)
    loads.file([{"id": 2}])
    loads.loaded(table)
    java_table = load(loads.spark, loads.schema, "orders")
    java_table.manageSnapshots().rollbackTo(first.snapshot_id).commit()  # type: ignore[union-attr]

    stopped = loads.load(table)

    assert stopped.error is not None
    assert "rolled back" in stopped.error.message
    assert loads.rows() == [{"id": 1}]


def test_create_branch_of_an_existing_branch_keeps_its_snapshot(loads: Loads) -> None:
    first = loads.loaded(loads.table(loads.file([{"id": 1}])))
    name = staging_branch(datetime.now(UTC), "33333333-3333-4333-8333-333333333333")
    assert create_branch(loads.tables, loads.schema, "orders", name, "main").at == first.snapshot_id
    foreign_append(loads, 50)

    assert create_branch(loads.tables, loads.schema, "orders", name, "main").at == first.snapshot_id
    assert drop_branch(loads.tables, loads.schema, "orders", name)


@pytest.mark.parametrize("step", [(direct_write, "write_added"), (publish_module, "added")])
@pytest.mark.parametrize("mode", ["APPEND", "OVERWRITE"])
def test_files_of_a_branch_that_a_clean_up_has_dropped_are_written_again(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, mode: Mode, step: tuple[Any, str]
) -> None:
    """Before the publish reads the table, and before it commits: the files may be gone as well."""
    loads.loaded(loads.table(loads.file([{"id": 1}])))
    act, dropped = getattr(*step), list[bool]()
    begun = list[tuple[str, datetime]]()

    def name_of(now: datetime, *given: Any) -> str:
        begun.append((staging_branch(now, *given), now))
        return begun[-1][0]

    monkeypatch.setattr(write_module, "staging_branch", name_of)

    def drop_after(*given: Any, **named: Any) -> Any:
        done = act(*given, **named)
        if not dropped:
            (name,) = set(loads.read().metadata.refs) - {"main"}
            dropped.append(drop_branch(loads.tables, loads.schema, "orders", name))
        return done

    monkeypatch.setattr(*step, drop_after)
    result = loads.loaded(loads.table(loads.file([{"id": 2}]), mode=mode))

    assert dropped == [True]
    assert result.rows == 1
    ids = [1, 2] if mode == "APPEND" else [2]
    assert [row["id"] for row in loads.rows()] == ids
    assert list(loads.read().metadata.refs) == ["main"]
    files = {one["file_path"] for one in loads.read().inspect.files().to_pylist()}
    assert len(files) == len(ids)
    # Each round has a branch of its own, which is older than its files.
    assert len({name for name, _ in begun}) == 2
    assert all(made[0] <= now for name, now in begun if (made := parse_staging_branch(name)))


@pytest.mark.parametrize("replaces", [False, True], ids=["merged", "replaced"])
def test_branch_that_spark_has_made_anew_is_not_published(
    loads: Loads, make_proxy: MakeProxy, *, replaces: bool
) -> None:
    """Iceberg makes a branch that is gone when a commit names it: the files may be gone as well."""
    key: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)}
    loads.loaded(loads.table(loads.file([{"id": 1}]), **key))
    proxy = make_proxy(loads.uri)
    dropped: list[bool] = []
    answers: list[int] = []

    def drop_first(request: Request, forward: Forward) -> Response:
        if b"add-snapshot" not in request.body:
            return forward(request)
        if not dropped:
            (name,) = set(loads.read().metadata.refs) - {"main"}
            dropped.append(drop_branch(loads.tables, loads.schema, "orders", name))
        response = forward(request)
        answers.append(response.status)
        return response

    proxy.on("*", drop_first)
    catalog = replace(loads.destination.iceberg.catalog, uri=proxy.endpoint)
    iceberg = replace(loads.destination.iceberg, catalog=catalog)
    loads.destination = replace(loads.destination, iceberg=iceberg)

    table = loads.table(loads.file([{"id": 2}]), **key)
    result = loads.load(table, options=RunOptions(full_refresh=replaces))

    assert (dropped, answers) == ([True], [409, 200])
    assert result.error is not None
    assert "it was dropped" in result.error.message
    assert loads.rows() == [{"id": 1}]
    assert list(loads.read().metadata.refs) == ["main"]


def test_dropped_branch_prevents_a_publish_on_rest(loads: Loads) -> None:
    """REST compares only what a commit asserts: without our own branch it would be published."""
    loads.loaded(loads.table(loads.file([{"id": 1}])))
    name = staging_branch(datetime.now(UTC), "22222222-2222-4222-8222-222222222222")
    begun = create_branch(loads.tables, loads.schema, "orders", name, "main")
    table = loads.tables.read(loads.schema, "orders")
    assert table is not None
    updates = [remove_ref(name), set_properties({"lakeload.seq": "77"})]

    assert drop_branch(loads.tables, loads.schema, "orders", name) is True
    assert drop_branch(loads.tables, loads.schema, "orders", name) is False
    with pytest.raises(CommitRejected):
        loads.tables.store.commit(table, [assert_ref(name, begun.at)], updates)

    assert loads.read().properties["lakeload.seq"] == "1"


def test_branches_of_abandoned_attempts_are_dropped_by_the_next_load(loads: Loads) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1}])))
    now = datetime.now(UTC)
    old = staging_branch(now - timedelta(hours=25), "33333333-3333-4333-8333-333333333333")
    young = staging_branch(now, "44444444-4444-4444-8444-444444444444")
    for name in (old, young):
        create_branch(loads.tables, loads.schema, "orders", name, "main")

    loads.loaded(loads.table(loads.file([{"id": 2}])))

    assert set(loads.read().metadata.refs) == {"main", young}


@pytest.mark.parametrize("lose", [drop_answer, drop_request])
def test_commit_without_a_response_is_verified_and_committed_once(
    loads: Loads, make_proxy: MakeProxy, lose: Action
) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1}])))
    proxy = make_proxy(loads.uri)
    lost: list[Request] = []

    def once(request: Request, forward: Forward) -> Response:
        if b"lakeload.jobs" not in request.body or request.method != "POST" or lost:
            return forward(request)
        lost.append(request)
        return lose(request, forward)

    proxy.on("*", once)
    catalog = replace(loads.destination.iceberg.catalog, uri=proxy.endpoint)
    iceberg = replace(loads.destination.iceberg, catalog=catalog)
    loads.destination = replace(loads.destination, iceberg=iceberg)

    result = loads.loaded(loads.table(loads.file([{"id": 2}])))

    assert len(lost) == 1
    assert (result.rows, loads.rows()) == (1, [{"id": 1}, {"id": 2}])
    assert loads.read().metadata.current_snapshot_id == result.snapshot_id
    assert list(loads.read().metadata.refs) == ["main"]


@pytest.mark.parametrize(("mode", "rows"), [("APPEND", [1, 2, 50]), ("OVERWRITE", [2])])
def test_commit_of_another_writer_after_the_last_read_is_noticed(
    loads: Loads, make_proxy: MakeProxy, mode: Mode, rows: list[int]
) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1}])))
    proxy = make_proxy(loads.uri)
    answers: list[int] = []

    def overtake(request: Request, forward: Forward) -> Response:
        if b"lakeload.jobs" not in request.body or request.method != "POST":
            return forward(request)
        if not answers:
            foreign_append(loads, 50)
        response = forward(request)
        answers.append(response.status)
        return response

    proxy.on("*", overtake)
    catalog = replace(loads.destination.iceberg.catalog, uri=proxy.endpoint)
    iceberg = replace(loads.destination.iceberg, catalog=catalog)
    loads.destination = replace(loads.destination, iceberg=iceberg)

    loads.loaded(loads.table(loads.file([{"id": 2}]), mode=mode))

    assert answers == [409, 200]
    assert loads.rows() == [{"id": number} for number in rows]
    assert list(loads.read().metadata.refs) == ["main"]


def test_rejected_commit_leaves_no_files(loads: Loads, make_proxy: MakeProxy) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1}])))
    proxy = make_proxy(loads.uri)

    def refuse(request: Request, forward: Forward) -> Response:
        if b"lakeload.jobs" not in request.body or request.method != "POST":
            return forward(request)
        body = b'{"error": {"message": "no", "type": "ForbiddenException", "code": 403}}'
        return Response(403, (("Content-Type", "application/json"),), body)

    proxy.on("*", refuse)
    catalog = replace(loads.destination.iceberg.catalog, uri=proxy.endpoint)
    iceberg = replace(loads.destination.iceberg, catalog=catalog)
    loads.destination = replace(loads.destination, iceberg=iceberg)

    result = loads.load(loads.table(loads.file([{"id": 2}])))

    assert result.error is not None
    assert "rejects" in result.error.message
    assert loads.rows() == [{"id": 1}]
    assert list(loads.read().metadata.refs) == ["main"]


def test_table_creation_with_an_invalid_response_checks_for_the_table(
    loads: Loads, make_proxy: MakeProxy
) -> None:
    proxy = make_proxy(loads.uri)
    told: list[str] = []

    def refuse(request: Request, forward: Forward) -> Response:
        what = request.target.rpartition("/")[2]
        if request.method != "POST" or what not in ("tables", "namespaces"):
            return forward(request)
        # It is there, as if somebody else's came first, and the answer does not say so.
        forward(request)
        told.append(what)
        body = b'{"error": {"message": "no", "type": "BadRequestException", "code": 400}}'
        return Response(400, (("Content-Type", "application/json"),), body)

    proxy.on("*", refuse)
    catalog = replace(loads.destination.iceberg.catalog, uri=proxy.endpoint)
    iceberg = replace(loads.destination.iceberg, catalog=catalog)
    loads.destination = replace(loads.destination, iceberg=iceberg)

    loads.loaded(loads.table(loads.file([{"id": 1}])))

    assert (told, loads.rows()) == (["namespaces", "tables"], [{"id": 1}])


def test_concurrent_loads_are_all_committed(loads: Loads) -> None:
    loads.loaded(loads.table(loads.file([{"id": 0}])))
    specs = [loads.spec(loads.table(loads.file([{"id": n}]))) for n in range(1, 7)]

    with ThreadPoolExecutor(3) as pool:
        results = [pool.submit(loads_one, loads, spec) for spec in specs]
        statuses = [result.result().status for result in results]

    assert statuses == ["LOADED"] * 6
    assert loads.rows() == [{"id": n} for n in range(7)]
    catalog = load_catalog("reader", type="rest", uri=loads.uri, **loads.store)
    assert catalog.load_table((loads.schema, "orders")).properties["lakeload.seq"] == "7"


def loads_one(loads: Loads, spec: Any) -> Any:
    """Load the one table of a spec."""
    aws = AwsSession(spec.destination)
    session, (table,) = IcebergFormat().connect(loads.spark, spec, aws), spec.tables
    return load_table(TableLoad(session, spec, table, Sources(spec, aws).of(table), Reporter()))
