"""Loads that change columns or partitions: with the rows, in one commit, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from pyiceberg.table import Table

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import Mode, PartitionField, RunOptions, TableSpec
from lakeload_jobs.formats.iceberg.load import write
from lakeload_jobs.formats.iceberg.load.branches import drop_branch
from lakeload_jobs.formats.iceberg.load.publish import Publish, Staged, publish
from lakeload_jobs.formats.iceberg.load.stage import Stage, stage
from tests.integration.formats.iceberg.conftest import Loads, Row
from tests.integration.formats.iceberg.test_publish_races import before_publishing, foreign_append
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import (
    Action,
    Forward,
    MakeProxy,
    Response,
    drop_answer,
    drop_request,
)


def refused(given: Publish) -> None:
    """Let a load fail at its publish."""
    drop_branch(given.tables, given.schema, given.table, given.staged.branch)
    raise LoadFailed("it may not be published")


def defined(table: Table) -> object:
    """Return all that a table is, but for the log of its metadata files."""
    return table.metadata.model_dump(
        exclude={"metadata_log", "snapshot_log", "last_updated_ms", "last_sequence_number"}
    )


def sql_rows(loads: Loads) -> list[Row]:
    """Return the rows as Spark reads them."""
    rows = loads.spark.sql(f"SELECT * FROM lake.`{loads.schema}`.orders ORDER BY id").collect()
    data = [row.asDict() for row in rows]
    return [{k: v for k, v in row.items() if not k.startswith("_supa_")} for row in data]


def check_once(
    loads: Loads,
    monkeypatch: pytest.MonkeyPatch,
    first: TableSpec,
    table: TableSpec,
    writer: str = "spark",
    **options: Any,
) -> Table:
    """Load twice; the second load changes the table. One that fails at its publish changes nothing,
    and one that succeeds changes it in the commit with its rows."""
    loads.loaded(first)
    before = defined(loads.read())
    with monkeypatch.context() as patch:
        patch.setattr(write, "publish", refused)
        failed = loads.load(table, **options)
    assert failed.error is not None
    assert "may not be published" in failed.error.message
    assert defined(loads.read()) == before

    result = loads.loaded(table, **options)

    assert result.writer == writer
    found = loads.read()
    snapshot = found.current_snapshot()
    assert snapshot is not None
    assert snapshot.snapshot_id == result.snapshot_id
    assert snapshot.schema_id == found.metadata.current_schema_id
    assert list(found.metadata.refs) == ["main"]
    return found


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("merges", ["merge-on-read", "copy-on-write"])
def test_merge_that_adds_and_widens_columns(
    loads: Loads,
    monkeypatch: pytest.MonkeyPatch,
    merges: str,
    version: Literal[2, 3],
) -> None:
    iceberg = replace(loads.destination.iceberg, format_version=version)
    loads.destination = replace(loads.destination, iceberg=iceberg)

    def table(rows: list[Row]) -> TableSpec:
        upsert: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)}
        return loads.table(
            loads.file(rows), **upsert, table_properties={"write.merge.mode": merges}
        )

    first = [{"id": number, "old": number} for number in range(4)]
    found = check_once(
        loads,
        monkeypatch,
        table(first),
        table([{"id": 1, "old": 10, "new": "x"}, {"id": 9, "old": 90, "new": "y"}]),
    )

    merged: list[Row] = [row | {"new": None} for row in first]
    merged[1] = {"id": 1, "old": 10, "new": "x"}
    merged.append({"id": 9, "old": 90, "new": "y"})
    assert loads.rows() == sql_rows(loads) == merged
    summary = found.current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert summary["lakeload.mode"] == "UPSERT"
    assert summary["spark.merge-into.num-target-rows-updated"] == "1"

    # The rows of this MERGE, and their deletes, are like any other's.
    again = loads.loaded(table([{"id": 1, "old": 11, "new": "z"}, {"id": 2, "old": 2, "new": "w"}]))

    assert again.changes is not None
    assert (again.changes.inserted, again.changes.updated) == (0, 2)
    merged[1] = {"id": 1, "old": 11, "new": "z"}
    merged[2] = {"id": 2, "old": 2, "new": "w"}
    assert loads.rows() == sql_rows(loads) == merged
    if version == 3:
        of_rows = f"SELECT count(DISTINCT _row_id) FROM lake.`{loads.schema}`.orders"
        assert loads.spark.sql(of_rows).collect()[0][0] == len(merged)


REGION = PartitionField("identity", "region")
BUCKET = PartitionField("bucket", "id", 4)
BY_SPARK = {"write.parquet.page-row-limit": "1000"}
"""Spark writes such a table."""


@pytest.mark.parametrize("writer", ["direct", "spark"])
@pytest.mark.parametrize("mode", ["APPEND", "OVERWRITE"])
def test_partitions_and_columns_change_with_the_rows(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, mode: Mode, writer: str
) -> None:
    properties = BY_SPARK if writer == "spark" else {}

    def table(rows: list[Row], **changes: Any) -> TableSpec:
        return loads.table(loads.file(rows), mode=mode, table_properties=properties, **changes)

    first = [{"id": number, "region": "eu", "old": 1} for number in range(3)]
    second = [{"id": number, "region": "us", "new": "x"} for number in range(3, 6)]
    found = check_once(
        loads,
        monkeypatch,
        table(first, partition_by=(REGION,)),
        table(second, partition_by=(BUCKET, REGION)),
        writer,
    )

    kept = [row | {"new": None} for row in first] if mode == "APPEND" else []
    expected = [*kept, *(row | {"old": None} for row in second)]
    assert loads.rows() == sql_rows(loads) == expected
    specs = {task.file.spec_id for task in found.scan().plan_files()}
    assert found.spec().spec_id in specs
    assert len(specs) == (2 if mode == "APPEND" else 1)


def test_replaced_columns_are_never_null_for_readers(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def table(rows: list[Row], mode: Mode) -> TableSpec:
        return loads.table(loads.file(rows), mode=mode, primary_key=("id",))

    for second, mode in (([{"id": 1, "n": "x"}], "OVERWRITE"), ([{"id": 2, "n": 1.5}], "UPSERT")):
        check_once(
            loads,
            monkeypatch,
            table([{"id": 1, "n": 7}], "UPSERT"),
            table(second, mode),  # type: ignore[arg-type]
            "direct" if mode == "OVERWRITE" else "spark",
            options=RunOptions(full_refresh=True),
        )
        assert loads.rows() == sql_rows(loads) == second
        loads.spark.sql(f"DROP TABLE lake.`{loads.schema}`.orders")


def test_load_that_dies_before_its_publish_leaves_a_branch_alone(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)}
    loads.loaded(loads.table(loads.file([{"id": 1}]), **upsert))
    before = loads.read().metadata
    dead: list[Publish] = []

    def die(given: Publish) -> None:
        dead.append(given)
        raise LoadFailed("killed")

    with monkeypatch.context() as patch:
        patch.setattr(write, "publish", die)
        loads.load(loads.table(loads.file([{"id": 1, "other": 1}]), **upsert))
    killed, left = loads.last, loads.read().metadata
    assert killed is not None
    assert left.refs.keys() - before.refs.keys() == {dead[0].staged.branch}
    assert {ref.snapshot_id for ref in left.refs.values()} == {before.current_snapshot_id}
    assert (left.schemas, left.snapshots) == (before.schemas, before.snapshots)

    loads.loaded(
        loads.table(loads.file([{"id": 2, "new": "x"}]), **upsert),
        dead_attempts=(killed.attempt_id,),
    )
    late = publish(dead[0])

    assert late.outcome == "AGAIN"
    assert list(loads.read().metadata.refs) == ["main"]
    assert loads.rows() == sql_rows(loads) == [{"id": 1, "new": None}, {"id": 2, "new": "x"}]


@pytest.mark.parametrize("kind", ["merge", "append"])
def test_another_writer_commits_between_staging_and_publish(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A MERGE has not seen these rows and begins again; an append is added to them."""
    upsert: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)} if kind == "merge" else {}
    loads.loaded(loads.table(loads.file([{"id": 1}]), **upsert, table_properties=BY_SPARK))
    rounds: list[int] = []
    before_publishing(monkeypatch, lambda: foreign_append(loads, 50))
    count_rounds(monkeypatch, rounds)

    result = loads.loaded(loads.table(loads.file([{"id": 2, "new": "x"}]), **upsert))

    assert result.writer == "spark"
    expected = [{"id": 1, "new": None}, {"id": 2, "new": "x"}, {"id": 50, "new": None}]
    assert loads.rows() == sql_rows(loads) == expected
    assert len(rounds) == (2 if kind == "merge" else 1)


@pytest.mark.parametrize("kind", ["merge", "append"])
@pytest.mark.parametrize("change", ["ADD COLUMN other int", "ADD COLUMN new string", "partition"])
def test_another_writer_changes_the_table_between_staging_and_publish(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, kind: str, change: str
) -> None:
    upsert: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)} if kind == "merge" else {}
    loads.loaded(loads.table(loads.file([{"id": 1}]), **upsert, table_properties=BY_SPARK))
    change = "ADD PARTITION FIELD bucket(2, id)" if change == "partition" else change
    rounds: list[int] = []

    def alter() -> None:
        loads.spark.sql(f"ALTER TABLE lake.`{loads.schema}`.orders {change}")

    before_publishing(monkeypatch, alter)
    count_rounds(monkeypatch, rounds)

    result = loads.loaded(loads.table(loads.file([{"id": 2, "new": "x"}]), **upsert))

    assert result.writer == "spark"
    more = {"other": None} if "other" in change else {}
    assert loads.rows() == [{"id": 1, "new": None, **more}, {"id": 2, "new": "x", **more}]
    assert len(rounds) == 2
    assert list(loads.read().metadata.refs) == ["main"]


@pytest.mark.parametrize("lose", [drop_answer, drop_request])
def test_publish_of_a_changed_table_without_a_response_is_verified(
    loads: Loads, make_proxy: MakeProxy, lose: Action
) -> None:
    upsert: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)}
    loads.loaded(loads.table(loads.file([{"id": 1}, {"id": 2}]), **upsert))
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

    result = loads.loaded(loads.table(loads.file([{"id": 2, "new": "x"}]), **upsert))

    assert len(lost) == 1
    assert loads.read().metadata.current_snapshot_id == result.snapshot_id
    assert loads.rows() == sql_rows(loads) == [{"id": 1, "new": None}, {"id": 2, "new": "x"}]


def count_rounds(monkeypatch: pytest.MonkeyPatch, rounds: list[int]) -> None:
    """Note each time that a load stages its rows."""

    def counted(given: Stage) -> Staged:
        rounds.append(len(rounds))
        return stage(given)

    monkeypatch.setattr(write, "stage", counted)
