"""What a load of any format does: the contract tests of `TableFormat`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import duckdb
import pyarrow as pa
import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import Interrupted
from lakeload_jobs.contract.plan import TableColumns
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    FileFormatName,
    FilesInput,
    OnChangedFile,
    ReaderChoice,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.formats.data_files import encode, parts
from lakeload_jobs.formats.registry import FORMATS
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.plan import look
from lakeload_jobs.sources.files.content import content_hashes
from lakeload_jobs.sources.files.spark import source as file_source
from lakeload_jobs.sources.registry import Sources
from tests.inputs import files_of
from tests.integration.formats.worlds import IcebergWorld, World, incremental, load


def ids(world: World) -> list[int]:
    return sorted(row["id"] for row in world.rows())


def link_to(path: str) -> tuple[str, str]:
    """Make a link to a file beside it; return its path, and what a load says of it."""
    link = Path(path).with_name("link.parquet")
    link.symlink_to(path)
    return str(link), f"`{link}` leads to `{path}` by a link: its rows are loaded once"


def test_committed_job_is_reported_and_not_loaded_again(world: World) -> None:
    path = world.file("a.parquet", [{"id": 1}, {"id": 2}])
    link, said = link_to(path)
    spec = world.spec(world.table(path, link))
    first = world.run(spec).tables[0]

    again = world.run(replace(spec, attempt_id=str(uuid.uuid4()))).tables[0]

    assert (first.status, first.rows, first.index) == ("LOADED", 2, "dense")
    assert (first.reader, first.warnings) == ("direct", (said,))
    assert (again.status, again.rows, again.snapshot_id) == ("NO_OP", 2, first.snapshot_id)
    assert ids(world) == [1, 2]
    assert sorted(row["_supa_index"] for row in world.rows()) == [1, 2]
    assert world.left() == []


def test_each_file_is_loaded_once_and_all_of_them_by_a_reload(world: World) -> None:
    _, said = link_to(world.file("a.parquet", [{"id": 1}]))
    table = incremental(world)
    first = load(world, table)
    idle = load(world, table)
    world.file("b.parquet", [{"id": 2}])
    second = load(world, table)
    state = world.state()

    assert (first.status, first.notes) == ("LOADED", ("1 new file (0 known)",))
    assert (first.warnings, idle.warnings, second.warnings) == ((said,), (), ())
    assert (idle.status, idle.rows, idle.notes) == ("NO_OP", 0, ("no new files (1 known)",))
    assert (second.status, second.rows) == ("LOADED", 1)
    assert (state["kind"], state["loaded"]) == ("FILES", 2)

    reload = RunOptions(reload=True, table_handling="APPEND")
    again = load(world, table, options=reload)
    assert (again.status, again.rows) == ("LOADED", 2)
    assert any("--reload" in warning for warning in again.warnings)
    assert ids(world) == [1, 1, 2, 2]
    assert load(world, table).status == "NO_OP"


def test_changed_file_is_loaded_rejected_or_skipped_by_setting(world: World) -> None:
    world.file("a.parquet", [{"id": 1}])
    table = incremental(world)
    fails, skips = (
        replace(table, input=replace(files_of(table), on_changed_file=policy))
        for policy in get_args(OnChangedFile)
        if policy != "LOAD"
    )
    load(world, table)
    path = world.file("a.parquet", [{"id": 1}, {"id": 2}])

    refused = load(world, fails)
    skipped = load(world, skips)
    idle = [load(world, one) for one in (skips, fails, table)]

    assert refused.error is not None
    assert f"`{path}` has changed since it was loaded" in refused.error.message
    assert (skipped.status, skipped.rows, skipped.error) == ("NO_OP", 0, None)
    assert skipped.notes == ("no new files (1 known)",)
    assert "(`on_changed_file: SKIP`)" in skipped.warnings[0]
    assert path in skipped.warnings[0]
    assert [(one.status, one.warnings) for one in idle] == [("NO_OP", ())] * 3
    assert ids(world) == [1]

    world.file("a.parquet", [{"id": 1}, {"id": 2}, {"id": 3}])
    world.file("b.parquet", [{"id": 4}])
    beside = load(world, skips)
    assert (beside.status, beside.rows) == ("LOADED", 1)
    assert "(`on_changed_file: SKIP`)" in beside.warnings[0]
    world.file("a.parquet", [{"id": 1}])
    assert load(world, table).rows == 1
    assert ids(world) == [1, 1, 4]
    assert world.left() == []


def test_changed_file_with_a_kept_content_hash_is_known_by_its_content(world: World) -> None:
    path = Path(world.file("a.parquet", [{"id": 1}]))
    plain = incremental(world)
    table = replace(plain, input=replace(files_of(plain), content_hash=True))
    fails = replace(table, input=replace(files_of(table), on_changed_file="FAIL"))
    load(world, table)
    first = path.stat().st_mtime_ns
    os.utime(path, ns=(first + 10**9, first + 10**9))

    same = load(world, fails)
    idle = load(world, fails)
    world.file("b.parquet", [{"id": 2}])
    os.utime(path, ns=(first + 2 * 10**9, first + 2 * 10**9))
    beside = load(world, fails)
    os.utime(path, ns=(first + 3 * 10**9, first + 3 * 10**9))
    without = load(world, plain)
    world.file("a.parquet", [{"id": 3}])
    other = world.run(world.spec(fails)).tables[0]

    noted = "no new files (1 known, 1 of them rewritten with the same content)"
    assert (same.error, same.status, same.notes, same.warnings) == (None, "NO_OP", (noted,), ())
    assert (idle.status, idle.notes) == ("NO_OP", ("no new files (1 known)",))
    assert (beside.error, beside.status, beside.rows) == (None, "LOADED", 1)
    assert (without.status, without.rows) == ("LOADED", 1)
    assert other.error is not None
    assert f"`{path}` has changed since it was loaded" in other.error.message
    assert ids(world) == [1, 1, 2]
    assert world.left() == []


def test_content_hash_of_a_file_that_changes_meanwhile_is_not_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(world.file("a.parquet", [{"id": 1}]))
    plain = incremental(world)
    table = replace(plain, input=replace(files_of(plain), content_hash=True))

    def hash_another_version(*arguments: Any) -> tuple[str, ...]:
        world.file(path.name, [{"id": 2}])
        return content_hashes(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(file_source, "content_hashes", hash_another_version)
        failed = load(world, table)

    assert failed.error is not None
    assert "the source changed while it was read" in failed.error.message
    assert load(world, table).rows == 1
    assert ids(world) == [2]


def test_a_new_column_is_added_and_a_lost_one_is_null(world: World) -> None:
    assert load(world, world.table(world.file("a.parquet", [{"id": 1, "old": 1}]))).error is None

    changed = load(world, world.table(world.file("b.parquet", [{"id": 2, "new": "x"}])))

    assert changed.status == "LOADED"
    assert any("`old` is no longer in the source" in warning for warning in changed.warnings)
    assert "column `new` is new: it is null in the rows of earlier loads" in changed.notes
    found = {row["id"]: (row.get("old"), row.get("new")) for row in world.rows()}
    assert found == {1: (1, None), 2: (None, "x")}


def test_column_in_another_spelling_continues_and_duplicates_are_numbered(world: World) -> None:
    load(world, world.table(world.file("a.parquet", [{"Order ID": 1, "id": 10}])))

    path = world.file("b.parquet", [{"order_id": 2, "ID": 20}])
    spelled = load(world, world.table(path))
    (planned,) = _plan(world, world.table(path))
    twins = world.file("c.parquet", [{"order-id": 3, "id": 30, "Order.ID": 4}])
    numbered = load(world, world.table(twins))
    again = load(world, world.table(world.file("d.parquet", [{"ORDER ID": 5, "ID": 50}])))

    assert (spelled.error, spelled.warnings) == (None, ())
    assert any(
        "`order_id` is loaded into `Order_ID`, as `Order ID` was" in n for n in spelled.notes
    )
    assert list(planned.columns)[:2] == ["Order_ID", "id"]
    assert numbered.warnings == (
        "column `Order.ID` is loaded as `Order_ID_1`: `Order_ID` is column `order-id`",
    )
    found = {row["id"]: (row["Order_ID"], row.get("Order_ID_1")) for row in world.rows()}
    assert found == {10: (1, None), 20: (2, None), 30: (3, 4)}
    # Spelled like two columns of the table, it could be either.
    assert again.error is not None
    assert "`ORDER ID` is another spelling of more than one column" in again.error.message


def test_files_of_one_load_unite_by_spelling_and_one_of_another_table_is_refused(
    world: World,
) -> None:
    paths = [
        world.file("a.parquet", [{"Order ID": 1, "v": "x"}]),
        world.file("b.parquet", [{"order_id": 2, "V": "y"}]),
    ]
    other = world.file("c.parquet", [{"key": 3}])

    first = load(world, world.table(*paths))
    refused = [load(world, world.table(*some)) for some in ([other], [*paths, other])]
    again = load(world, world.table(world.file("d.parquet", [{"order_id": 4, "v": "z"}])))

    assert (first.error, again.error) == (None, None)
    assert "column `V` is loaded into `v`, as `v` is: another spelling of it" in first.notes
    for result in refused:
        assert result.error is not None
        assert f"`{other}` has no column in common with the table" in result.error.message
    rows = [{n: v for n, v in row.items() if not n.startswith("_supa")} for row in world.rows()]
    assert sorted(rows, key=lambda row: row["Order_ID"]) == [
        {"Order_ID": 1, "v": "x"},
        {"Order_ID": 2, "v": "y"},
        {"Order_ID": 4, "v": "z"},
    ]
    assert world.left() == []


@pytest.mark.parametrize(("file_format", "keeps"), [("NDJSON", False), ("CSV", True)])
def test_file_without_records_loads_no_row_with_declared_types(
    world: World, file_format: FileFormatName, keeps: bool
) -> None:
    path = Path(world.file("a.parquet", [{"id": 1, "v": "x"}])).with_name("empty")
    path.write_bytes(b"")
    plain = incremental(world) if keeps else world.table(f"{world.folder()}/a.parquet")
    given = replace(files_of(plain), format=file_format, paths=(str(path),))
    empty = replace(plain, input=given, columns=ColumnsSpec(types={"id": "bigint"}))

    first, later = load(world, plain), load(world, empty)

    assert (first.error, later.error, later.rows) == (None, None, 0)
    assert later.status in ("LOADED", "NO_OP")
    assert ids(world) == [1]
    if isinstance(world, IcebergWorld) and not keeps:
        replaced = load(world, replace(empty, mode="OVERWRITE"))
        assert (replaced.error, replaced.status, replaced.rows) == (None, "LOADED", 0)
        assert ids(world) == []


@pytest.mark.parametrize("reader", ["AUTO", "JVM"])
def test_column_without_a_type_is_added_when_it_has_one(world: World, reader: ReaderChoice) -> None:
    rows: list[list[dict[str, Any]]] = [
        [{"id": 1, "v": None, "n": [None]}],
        [{"id": 2, "v": "x", "n": ["y"]}],
        [{"id": 3, "v": None, "n": []}],
    ]
    paths = [world.file(f"{number}.parquet", own) for number, own in enumerate(rows)]

    results = [load(world, world.table(path), reader=reader) for path in paths]

    assert [result.error for result in results] == [None] * 3
    assert "column `v` has no type and no value yet: it is not loaded" in results[0].notes
    assert "column `v` is new: it is null in the rows of earlier loads" in results[1].notes
    found = {row["id"]: row.get("v") for row in world.rows()}
    assert found == {1: None, 2: "x", 3: None}


def test_values_of_another_type_are_loaded_into_a_column_of_their_own_and_back(
    world: World,
) -> None:
    def table(name: str, number: int, amount: object, **more: Any) -> TableSpec:
        path = world.file(name, [{"id": number, "Amount": amount}])
        return world.table(path, on_type_conflict="NEW_COLUMN", **more)

    assert load(world, table("1.parquet", 1, 10)).error is None
    text = table("2.parquet", 2, "n/a")
    (planned,) = _plan(world, text)
    first = load(world, text)
    back = load(world, table("3.parquet", 3, 30))
    fraction = load(world, table("4.parquet", 4, 10.5))
    again = load(world, table("5.parquet", 5, "7 or 8"))
    other = world.file("6.parquet", [{"id": 6, "AMOUNT": "as text"}])
    spelled = load(world, world.table(other, on_type_conflict="NEW_COLUMN"))

    assert [one.error for one in (first, back, fraction, again, spelled)] == [None] * 5
    assert "Amount_string" in planned.columns
    assert "Amount" not in planned.columns
    (said,) = first.warnings
    assert "its values are loaded into `Amount_string` (`on_type_conflict`)" in said
    assert said in planned.warnings
    assert back.warnings == ()
    assert [len(one.warnings) for one in (fraction, again, spelled)] == [1, 1, 1]
    names = ("Amount", "Amount_string", "Amount_double")
    assert {row["id"]: tuple(row.get(name) for name in names) for row in world.rows()} == {
        1: (10, None, None),
        2: (None, "n/a", None),
        3: (30, None, None),
        4: (None, None, 10.5),
        5: (None, "7 or 8", None),
        6: (None, "as text", None),
    }

    key = world.file("7.parquet", [{"id": "x"}])
    keyed = world.table(key, on_type_conflict="NEW_COLUMN", primary_key=("id",))
    refused = load(world, keyed)
    assert refused.error is not None
    assert "cannot move a column of `primary_key`" in refused.error.message
    assert "set `columns.types: {id: bigint}`, or load everything into" in (
        refused.error.hint or ""
    )
    closed = load(world, table("8.parquet", 8, True), schema_changes="FAIL")
    assert closed.error is not None
    assert "Amount_boolean" in closed.error.message
    assert world.left() == []


def test_values_of_another_type_are_loaded_as_text_with_text_policy(world: World) -> None:
    def table(name: str, rows: list[dict[str, Any]]) -> TableSpec:
        return world.table(world.file(name, rows), on_type_conflict="TEXT")

    assert load(world, table("1.parquet", [{"id": 1, "v": 10}])).error is None
    fraction = load(world, table("2.parquet", [{"id": 2, "v": 10.5}]))
    nested = load(world, table("3.parquet", [{"id": 3, "v": {"a": [1, None]}}]))
    back = load(world, table("4.parquet", [{"id": 4, "v": 40}]))

    assert [one.error for one in (fraction, nested, back)] == [None] * 3
    assert "its values are loaded into `v_string` (`on_type_conflict`)" in fraction.warnings[0]
    assert {row["id"]: (row.get("v"), row.get("v_string")) for row in world.rows()} == {
        1: (10, None),
        2: (None, "10.5"),
        3: (None, '{"a":[1,null]}'),
        4: (40, None),
    }


def test_bad_value_error_names_settings_that_fix_it(world: World) -> None:
    load(world, world.table(world.file("a.parquet", [{"id": 1, "n": 10, "t": "x"}])))
    path = world.file("b.parquet", [{"id": 2, "n": "20", "t": "x"}, {"id": 3, "n": "n/a"}])
    refused = load(world, world.table(path))
    assert refused.error is not None
    place = f"reading `{path}`, row group 1, row 2: column `n`: the value `n/a` is no bigint"
    assert f"the first value that does not fit: {place}" in refused.error.message
    assert ids(world) == [1]
    assert world.left() == []
    hint = refused.error.hint or ""
    assert "`on_type_conflict: NEW_COLUMN`" in hint
    assert "`columns.exclude`" in hint
    assert load(world, world.table(path, on_type_conflict="NEW_COLUMN")).error is None
    columns = ColumnsSpec(exclude=("n",))
    assert load(world, world.table(path, columns=columns)).error is None

    path = world.file("c.parquet", [{"id": 4, "n": "30", "t": "x"}])
    fitting = load(world, world.table(path))
    assert fitting.error is not None
    assert "every value of this load fits the table's type" in fitting.error.message
    assert "`columns.types: {n: bigint}`" in (fitting.error.hint or "")
    columns = ColumnsSpec(types={"n": "bigint"})
    assert load(world, world.table(path, columns=columns)).error is None
    assert {row["id"]: row.get("n") for row in world.rows()} == {1: 10, 2: None, 3: None, 4: 30}


def test_hints_of_type_conflicts_are_followed_and_load(world: World) -> None:
    def table(name: str, row: dict[str, Any]) -> TableSpec:
        return world.table(world.file(name, [row]))

    def refused(table: TableSpec) -> tuple[str, str]:
        result = load(world, table, nested="NATIVE")
        assert result.error is not None
        return result.error.message, result.error.hint or ""

    at = datetime(2024, 2, 29, 12, 0, 1)
    first = table("1.parquet", {"id": 1, "When": at, "flag": True, "a": {"x": 1, "l": [1]}})
    assert load(world, first, nested="NATIVE").error is None

    zoned = table("2.parquet", {"id": 2, "When": at.replace(tzinfo=UTC)})
    message, hint = refused(zoned)
    assert "every value of this load fits the table's type" in message
    assert "set `columns.types: {When: timestamp_ntz}`, the type in the table" in hint
    types = ColumnsSpec(types={"When": "timestamp_ntz"})
    assert load(world, replace(zoned, columns=types), nested="NATIVE").error is None

    path = Path(world.file("3.csv", [{"id": 3}]))
    path.write_text("id,flag\n3,1\n")
    text = replace(
        world.table(str(path)), input=FilesInput("CSV", (str(path),), {"header": "true"})
    )
    message, hint = refused(text)
    assert f"reading `{path}`: line 2, column `flag`: `1` is not `true` or `false`" in message
    assert "columns.types" not in hint
    assert "`on_type_conflict: NEW_COLUMN`" in hint
    moved = replace(text, on_type_conflict="NEW_COLUMN")
    assert load(world, moved, nested="NATIVE").error is None

    nested = table("4.parquet", {"id": 4, "a": {"x": "t", "l": [1]}})
    message, hint = refused(nested)
    place = f"reading `{nested.input.paths[0]}`, row group 1, row 1"  # type: ignore[union-attr]
    assert f"the first value that does not fit is `t` in `a.x`, {place}" in message
    assert "{t" not in message
    moved = replace(nested, on_type_conflict="NEW_COLUMN")
    assert load(world, moved, nested="NATIVE").error is None
    assert ids(world) == [1, 2, 3, 4]


def test_a_nested_field_that_is_absent_is_null(world: World) -> None:
    native = {"nested": "NATIVE"}
    one = [{"id": 1, "a": {"s": "x", "t": 1}, "l": [{"u": 1, "v": "b"}]}]
    two: list[dict[str, Any]] = [
        {"id": 2, "a": {"t": 2}, "l": [{"v": "c"}, None]},
        {"id": 3, "a": None, "l": []},
    ]
    assert load(world, world.table(world.file("a.parquet", one)), **native).error is None

    absent = load(world, world.table(world.file("b.parquet", two)), **native)

    assert absent.error is None
    assert {row["id"]: (row["a"], row["l"]) for row in world.rows()} == {
        1: ({"s": "x", "t": 1}, [{"u": 1, "v": "b"}]),
        2: ({"s": None, "t": 2}, [{"u": None, "v": "c"}, None]),
        3: (None, []),
    }
    more = [{"id": 4, "a": {"s": "y", "t": 4, "w": 1.5}}]
    path = world.file("c.parquet", more)
    new = load(world, world.table(path), **native)
    assert "column `a.w` is new: it is null in the rows of earlier loads" in new.notes
    assert [row["a"] for row in world.rows() if row["id"] == 4] == [more[0]["a"]]


def _plan(world: World, table: TableSpec) -> tuple[TableColumns, ...]:
    spec = world.spec(table)
    aws = AwsSession(spec.destination)
    with (
        closing(FORMATS[spec.destination.table_format].connect(world.spark, spec, aws)) as session,
        EventLog(spec.events_path) as events,
    ):
        return look(session, Sources(spec, aws), spec, events)


def test_forbidden_schema_change_fails_before_a_row_is_written(world: World) -> None:
    load(world, world.table(world.file("a.parquet", [{"id": 1}])))

    path = world.file("b.parquet", [{"id": 2, "new": "x"}])
    refused = load(world, world.table(path), schema_changes="FAIL")

    assert refused.status == "FAILED"
    assert refused.error is not None
    assert "`new`" in refused.error.message
    assert ids(world) == [1]
    assert world.left() == []

    own = world.table(path, schema_changes="ADD_COLUMNS")
    assert load(world, own, schema_changes="FAIL").status == "LOADED"


def test_bad_values_become_null_and_are_counted_or_stop_the_load(world: World) -> None:
    path = world.file("a.parquet", [{"id": 1, "n": "7"}, {"id": 2, "n": "x"}])
    table = world.table(path, columns=ColumnsSpec(types={"n": "int"}))

    stopped = load(world, table)
    assert stopped.error is not None
    assert "`x` is no int" in stopped.error.message
    assert world.left() == []

    loaded = load(world, table, on_bad_value="NULL")
    assert loaded.status == "LOADED"
    assert any("1 values or records" in warning for warning in loaded.warnings)
    assert {row["id"]: row["n"] for row in world.rows()} == {1: 7, 2: None}


def test_an_interruption_before_the_commit_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, world.table(world.file("a.parquet", [{"id": 1}])))

    def stop(*_: object, **__: object) -> None:
        raise Interrupted("stopped")

    path = world.file("b.parquet", [{"id": 2}])
    with monkeypatch.context() as patch:
        patch.setattr("lakeload_jobs.sources.files.spark.reader.check_unchanged", stop)
        stopped = load(world, world.table(path))

    assert stopped.error is not None
    assert stopped.error.type == "Interrupted"
    assert ids(world) == [1]
    assert world.left() == []
    assert load(world, world.table(path)).status == "LOADED"


def test_a_limit_loads_so_many_rows_in_the_order_of_the_source(world: World) -> None:
    rows = [{"id": number} for number in range(20)]
    table = world.table(world.file("a.parquet", rows), where="id >= 3")

    result = load(world, table, options=RunOptions(limit=4, table_handling="APPEND"))

    assert (result.status, result.rows) == ("LOADED", 4)
    assert ids(world) == [3, 4, 5, 6]


def test_missing_source_fails_only_its_table(world: World) -> None:
    fine = world.table(world.file("a.parquet", [{"id": 1}]))
    gone = FilesInput("PARQUET", (f"{world.folder()}/none.parquet",), {})
    missing = replace(fine, source="missing", table="missing", input=gone)

    result = world.run(replace(world.spec(fine), tables=(missing, fine)))

    assert [table.status for table in result.tables] == ["FAILED", "LOADED"]
    assert ids(world) == [1]


def test_bloom_filters_are_in_files_from_the_load_that_asks_for_them(
    world: World, tmp_path: Path
) -> None:
    plain = world.table(world.file("a.parquet", [{"Id": 1, "flag": True, "other": 1}]))
    asked = replace(
        world.table(world.file("b.parquet", [{"Id": 2, "flag": True, "other": 2}])),
        bloom_filters=("Id",),
    )
    without = load(world, plain)
    (planned,) = _plan(world, asked)
    loaded = load(world, asked)
    rejected = load(world, replace(asked, bloom_filters=("flag",)))

    found = {}
    connection = duckdb.connect()
    for number, body in enumerate(world.files()):
        path = tmp_path / f"{number}.parquet"
        path.write_bytes(body)
        filters = connection.execute(
            f"SELECT path_in_schema, bloom_filter_length FROM parquet_metadata('{path}')"
        ).fetchall()
        ((first,),) = connection.execute(f"SELECT min(id) FROM '{path}'").fetchall()
        found[first] = [name for name, length in filters if length]
        assert all((length or 0) < 100_000 for _, length in filters)
        for value in (2, 3) if found[first] else ():
            probe = f"FROM parquet_bloom_probe('{path}', 'Id', {value})"
            ((*_, excluded),) = connection.execute(probe).fetchall()
            assert excluded is (value != first)

    assert found == {1: [], 2: ["Id"]}
    assert without.writer == "direct"
    assert (planned.writer or "direct") == "direct"
    assert loaded.writer == "direct"
    assert rejected.error is not None
    assert "`flag`, a boolean" in rejected.error.message


def test_a_row_that_is_lost_on_its_way_fails_the_load_with_the_numbers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = encode._encode_with_arro3

    def without_the_last(feed: Any, encoding: encode.Encoding) -> None:
        feed.first = feed.first.slice(0, feed.first.num_rows - 1)
        whole(feed, encoding)
        # As an encoder that loses a row on the way to the file.
        feed.rows += 1

    path = world.file("a.parquet", [{"id": number} for number in range(3)])
    monkeypatch.setattr(encode, "_encode_with_arro3", without_the_last)
    lost = load(world, world.table(path))
    monkeypatch.undo()
    assert lost.error is not None
    assert "do not add up: 3 read, 2 written; nothing was committed" in lost.error.message
    assert lost.error.retryable
    again = load(world, world.table(path))

    assert (again.status, again.rows) == ("LOADED", 3)
    assert ids(world) == [0, 1, 2]
    assert world.left() == []


def test_a_row_that_is_lost_before_the_condition_fails_the_load_with_the_numbers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = parts._rows

    def without_the_last(read: Any, part: parts.SplitPart) -> Iterator[pa.RecordBatch]:
        return (batch.slice(0, batch.num_rows - 1) for batch in whole(read, part))

    path = world.file("a.parquet", [{"id": number} for number in range(5)])
    table = replace(world.table(path), where="id > 1")
    monkeypatch.setattr(parts, "_rows", without_the_last)
    lost = load(world, table)
    monkeypatch.undo()
    assert lost.error is not None
    assert "add up: 5 read, 2 written, 2 dropped by `where`; nothing was" in lost.error.message
    again = load(world, table)

    assert (again.status, again.rows) == ("LOADED", 3)
    assert ids(world) == [2, 3, 4]
    assert world.left() == []
