"""`--retry-rejected`: what a job has rejected is read again under other settings, once."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    FileFormatName,
    FilesInput,
    RejectedInput,
    RejectLimit,
    RunOptions,
    TableSpec,
)
from tests.hints import follow, follows
from tests.integration.formats.worlds import World, load

PRICES = ColumnsSpec(types={"price": "decimal(9,2)"})
APPEND = RunOptions(table_handling="APPEND")
ANY = RejectLimit(percent=100)


def table(world: World, name: str, text: str, **changes: Any) -> TableSpec:
    """Return a table of one file whose name says its format."""
    folder = Path(world.folder())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    kind: dict[str, FileFormatName] = {"csv": "CSV", "ndjson": "NDJSON", "json": "JSON"}
    options = {"header": "true"} if name.endswith("csv") else {}
    given = FilesInput(kind[name.rpartition(".")[2]], (str(folder / name),), options)
    spec = world.table(**changes)
    return replace(spec, input=given, columns=changes.get("columns", PRICES))


def quarantined(world: World, table: TableSpec, job: str, **changes: Any) -> TableResult:
    given = {"on_bad_value": "QUARANTINE", "options": APPEND, "max_rejected": ANY, **changes}
    return load(world, table, job_id=job, **given)


def again(table: TableSpec, job: str, **options: str) -> TableSpec:
    """Return the table as `--retry-rejected` has it, with other reader options."""
    given = table.input
    assert isinstance(given, FilesInput)
    given = replace(given, options={**given.options, **options})
    mark = hashlib.sha256(f"{table.fingerprint} {job}".encode()).hexdigest()
    return replace(table, input=RejectedInput(job, given), fingerprint=mark)


def prices(world: World) -> list[tuple[int, str | None]]:
    rows = sorted(world.rows(), key=lambda row: row["id"])
    return [(row["id"], None if row["price"] is None else str(row["price"])) for row in rows]


def rejected(world: World) -> list[tuple[str, int, str, int]]:
    """Return the records of the side table: job, index, text and line."""
    names = ("_supa_job_id", "_supa_index", "raw_record", "source_line")
    return sorted(tuple(row[name] for name in names) for row in world.rows("orders_rejected"))


COMMAS = 'id,price\n1,10.5\n2,"3,5"\n3,4.0\n4\n5,"7,25"\n'


def test_retry_rejected_reads_records_once_with_current_settings(world: World) -> None:
    orders = table(world, "a.csv", COMMAS)
    first = quarantined(world, orders, "first")
    Path(world.folder(), "a.csv").unlink()

    second = quarantined(world, again(orders, "first", decimal_mark=","), "second")
    third = quarantined(world, again(orders, "first", decimal_mark=","), "third")
    fourth = quarantined(world, again(orders, "second"), "fourth")

    assert (first.rows, first.rejected) == (2, 3)
    assert (second.status, second.rows, second.rejected) == ("LOADED", 2, 1)
    assert second.notes[0] == "3 records read again: the rejected records of job `first`"
    assert third.status == "NO_OP"
    assert third.notes == ("job `second` has read the rejected records of job `first` already",)
    assert (fourth.rows, fourth.rejected) == (0, 1)
    assert prices(world) == [(1, "10.50"), (2, "3.50"), (3, "4.00"), (5, "7.25")]
    assert rejected(world) == [
        ("first", 2, '2,"3,5"', 3),
        ("first", 4, "4", 5),
        ("first", 5, '5,"7,25"', 6),
        ("fourth", 1, "4", 5),
        ("second", 2, "4", 5),
    ]
    assert world.left() == []


def test_one_table_sets_aside_what_fails_another_of_the_same_run(world: World) -> None:
    orders = table(world, "a.csv", COMMAS, max_rejected=ANY)
    rates = table(world, "b.csv", COMMAS, on_bad_value="FAIL")
    rates = replace(rates, source="rates", table="rates")
    quarantine = {"on_bad_value": "QUARANTINE", "max_rejected": RejectLimit(rows=0)}
    spec = world.spec(orders, job_id="first", options=APPEND, **quarantine)
    first, failed = world.run(replace(spec, tables=(orders, rates))).tables

    assert (first.status, first.rows, first.rejected) == ("LOADED", 2, 3)
    assert (failed.status, failed.rejected) == ("FAILED", 0)
    assert failed.error is not None
    assert "b.csv" in failed.error.message

    retried = again(replace(orders, on_bad_value="QUARANTINE"), "first", decimal_mark=",")
    rates = again(rates, "first", decimal_mark=",")
    spec = world.spec(retried, job_id="second", options=APPEND)
    second, nothing = world.run(replace(spec, tables=(retried, rates))).tables

    assert (second.status, second.rows, second.rejected) == ("LOADED", 2, 1)
    assert nothing.notes == ("job `first` has not loaded this table",)
    assert prices(world) == [(1, "10.50"), (2, "3.50"), (3, "4.00"), (5, "7.25")]
    assert [row[:2] for row in rejected(world)] == [
        ("first", 2), ("first", 4), ("first", 5), ("second", 2)
    ]  # fmt: skip
    assert world.left() == []


def test_retry_rejected_of_a_job_without_rejects_or_unknown_loads_nothing(
    world: World,
) -> None:
    orders = table(world, "a.csv", "id,price\n1,10.5\n")
    quarantined(world, orders, "first")

    none = quarantined(world, again(orders, "first"), "second")
    unknown = quarantined(world, again(orders, "zero"), "third")

    assert (none.status, none.notes) == (
        "NO_OP",
        ("job `first` has rejected no record of this table",),
    )
    assert (unknown.status, unknown.notes) == ("NO_OP", ("job `zero` has not loaded this table",))


def test_two_concurrent_retries_load_rejected_records_once(world: World) -> None:
    orders = table(world, "a.csv", COMMAS)
    quarantined(world, orders, "first")
    right = again(orders, "first", decimal_mark=",")
    other: list[TableResult] = []
    world.before_commit(lambda: other.append(quarantined(world, right, "fast")))

    slow = quarantined(world, right, "slow")

    assert (other[0].status, other[0].rows) == ("LOADED", 2)
    assert slow.status in ("NO_OP", "FAILED")
    assert [price[0] for price in prices(world)] == [1, 2, 3, 5]
    assert {job for job, *_ in rejected(world)} == {"first", "fast"}
    assert world.left() == []


def test_killed_retry_leaves_the_rejected_records(world: World) -> None:
    orders = table(world, "a.csv", COMMAS)
    quarantined(world, orders, "first")
    right = again(orders, "first", decimal_mark=",")

    def die() -> None:
        raise KeyboardInterrupt

    world.before_commit(die)
    with pytest.raises(KeyboardInterrupt):
        quarantined(world, right, "second")

    assert quarantined(world, right, "third").rows == 2
    assert [price[0] for price in prices(world)] == [1, 2, 3, 5]


def test_retry_rejected_value_still_bad_fails_or_is_null_by_setting(world: World) -> None:
    orders = table(world, "a.csv", 'id,price\n1,10.5\n2,"3,5"\n')
    quarantined(world, orders, "first")

    failed = load(world, again(orders, "first"), job_id="fails", options=APPEND)
    null = load(world, again(orders, "first"), job_id="nulls", options=APPEND, on_bad_value="NULL")

    assert failed.error is not None
    assert "a.csv`: line 3, column `price`: `3,5`" in failed.error.message
    assert (null.status, null.rows) == ("LOADED", 1)
    assert prices(world) == [(1, "10.50"), (2, None)]


def test_records_of_json_are_read_as_they_were_written(world: World) -> None:
    text = (
        '[{"id": 1, "day": "2026-01-02"},\n{"id": 2,\n "day": "03.01.2026", "note": {"a":  1.10}},'
        '\n{"id": 3, "id": 4}]'
    )
    orders = table(world, "a.json", text, columns=ColumnsSpec(types={"day": "date"}))
    quarantined(world, orders, "first", nested="JSON")

    right = again(orders, "first", date_format="dd.MM.yyyy")
    result = quarantined(world, right, "second", nested="JSON")

    assert (result.status, result.rows, result.rejected) == ("LOADED", 1, 1)
    (row,) = (row for row in world.rows() if row["id"] == 2)
    assert (row["day"], row["note"]) == (date(2026, 1, 3), '{"a":  1.10}')
    assert rejected(world)[-1][2:] == ('{"id": 3, "id": 4}', 4)


def test_retry_rejected_leaves_the_bookmark_of_files(world: World) -> None:
    orders = table(world, "a.csv", COMMAS)
    given = orders.input
    assert isinstance(given, FilesInput)
    files = replace(given, paths=(f"{world.folder()}/*.csv",), incremental=True)
    orders = replace(orders, input=files)
    quarantined(world, orders, "first")
    state = world.state()

    assert quarantined(world, again(orders, "first", decimal_mark=","), "second").rows == 2
    assert world.state() == state
    assert quarantined(world, orders, "third").status == "NO_OP"
    Path(world.folder(), "b.csv").write_text("id,price\n9,9.5\n")
    assert quarantined(world, orders, "fourth").rows == 1


# Tables of Parquet files have no UPSERT.
@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_retry_rejected_upsert_without_cursor_rejects_existing_keys(world: World) -> None:
    merged: dict[str, Any] = {"mode": "UPSERT", "primary_key": ("id",)}
    orders = table(world, "a.csv", 'id,price\n1,10.5\n2,"3,5"\n', **merged)
    quarantined(world, orders, "first")
    right = again(orders, "first", decimal_mark=",")
    newer = table(world, "b.csv", "id,price\n2,99\n", **merged)
    quarantined(world, newer, "second")

    refused = quarantined(world, right, "third")

    assert refused.error is not None
    assert "such as `id` = 2, and without `cursor`" in refused.error.message
    assert prices(world) == [(1, "10.50"), (2, "99.00")]
    hint = refused.error.hint or ""
    follows(__file__, "rejected records of keys that are loaded", hint)
    document = {"source": {"type": "FILES"}, "tables": [{"table": "orders"}]}
    clause = hint.partition(", or")[0]
    changed = follow(document, clause, "tables[0].table", cursor="price")
    ordered = replace(right, cursor=changed["tables"][0]["cursor"])
    assert quarantined(world, ordered, "ordered").error is None
    assert prices(world) == [(1, "10.50"), (2, "99.00")]
    free = table(world, "c.csv", 'id,price\n7,"7,5"\n', **merged)
    quarantined(world, free, "fourth")
    assert quarantined(world, again(free, "fourth", decimal_mark=","), "fifth").rows == 1
    assert prices(world)[-1] == (7, "7.50")
