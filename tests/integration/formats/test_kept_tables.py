"""Tables that an earlier commit wrote: their second day, their no-op and their upsert."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.result import RowChanges, TableResult
from lakeload_jobs.contract.spec import FilesInput, RunOptions, TableSpec
from tests.integration.formats import kept_tables as kept
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.worlds import IcebergWorld, ParquetWorld, World
from tests.integration.jobs.conftest import Job

TABLES = Path(__file__).parents[2] / "cases" / "tables" / "a213f45"
TUESDAY = kept.WRITTEN + 86_400 * 10**9
TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)


class KeptParquet(ParquetWorld):
    """The tables of Parquet files."""

    upserts = False

    def restore(self) -> None:
        kept.restore_parquet(self._job, TABLES / "parquet.tar.gz")

    def types(self, table: str) -> dict[str, str]:
        lake = self._job.lake
        keys = [key for key in lake.data_keys() if f"/{table}/" in key]
        found = {pq.read_schema(pa.BufferReader(lake.read(key))) for key in keys}
        assert len(found) == 1, found
        return {field.name: str(field.type) for field in found.pop()}

    def rows_of(self, table: str) -> list[dict[str, Any]]:
        lake = self._job.lake
        keys = [key for key in lake.data_keys() if f"/{table}/" in key]
        return [
            row
            for key in keys
            for row in pq.read_table(pa.BufferReader(lake.read(key))).to_pylist()
        ]


class KeptIceberg(IcebergWorld):
    """The tables of Iceberg."""

    upserts = True

    def restore(self) -> None:
        kept.restore_iceberg(self._loads, TABLES / "iceberg.tar.gz")

    def types(self, table: str) -> dict[str, str]:
        return {one.name: str(one.field_type) for one in self._loads.read(table).schema().fields}

    def rows_of(self, table: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._loads.read(table).scan().to_arrow().to_pylist()
        return found


Kept = KeptParquet | KeptIceberg


@pytest.fixture(params=["parquet", "iceberg"])
def kept_world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """The tables as the earlier commit has left them."""
    world: Kept
    if request.param == "parquet":
        job: Job = request.getfixturevalue("job")
        world = KeptParquet(job, monkeypatch.setattr)
    else:
        loads: Loads = request.getfixturevalue("loads")
        loads.schema = kept.NAMESPACE
        world = KeptIceberg(loads, monkeypatch.setattr)
    Path(world.folder()).mkdir(exist_ok=True)
    world.restore()
    return world


def run(world: World, *tables: TableSpec, **changes: Any) -> dict[str, TableResult]:
    spec = replace(world.spec(tables[0]), tables=tables, nested="JSON", **changes)
    result = world.run(spec)
    assert result.error is None, result.error
    return {one.table: one for one in result.tables}


def rows(world: Kept, table: str) -> dict[int, dict[str, Any]]:
    """Return the rows by their id, without tracking columns."""
    found = world.rows_of(table)
    plain = [{k: v for k, v in row.items() if not k.startswith("_supa_")} for row in found]
    assert len({row["id"] for row in plain}) == len(plain)
    return {row["id"]: row for row in plain}


def test_kept_tables_of_earlier_versions_take_a_second_load(kept_world: Kept) -> None:
    world = kept_world
    tables = kept.first_day(world, upserts=world.upserts)
    before = {name: world.types(name) for name in tables}

    again = run(world, *tables.values(), job_id="monday")
    incremental = [table for name, table in tables.items() if name != "plain"]
    idle = run(world, *incremental)
    assert [one.error for one in (*again.values(), *idle.values())] == [None] * (
        2 * len(tables) - 1
    )
    assert {one.status for one in (*again.values(), *idle.values())} == {"NO_OP"}

    header = kept.ORDERS.splitlines()[0]
    second = "3,00042,7,99,2024-03-01T10:00,2024-03-02,TRUE,123,5"
    kept.write(world, "orders", "2.csv", f"{header}\n{second}\n", TUESDAY)
    kept.write(world, "plain", "1.csv", f"{header}\n{second}\n", TUESDAY)
    line = '{"id": 3, "user": {"name": "b", "n": 2}, "at": "2024-03-01 10:00:00", "score": 3}\n'
    kept.write(world, "events", "2.ndjson", line, TUESDAY)
    kept.write(world, "numbers", "2.parquet", kept.NUMBERS.slice(0, 1), TUESDAY)
    late = (
        kept.CUSTOMERS.splitlines()[0]
        + "\n"
        + (
            "1,2,A,false,2024-03-01 10:00:00\n"
            "2,4,late,false,2024-03-01 10:00:00\n"
            "003,6,c,true,2024-03-01 10:00:00\n"
            "4,1,d,false,2024-03-01 10:00:00\n"
        )
    )
    if world.upserts:
        kept.write(world, "customers", "2.csv", late, TUESDAY)
    done = run(world, *tables.values())

    assert {name: one.error for name, one in done.items()} == dict.fromkeys(tables)
    assert {one.status for one in done.values()} == {"LOADED"}
    assert {name: world.types(name) for name in tables} == before
    order = {
        "id": 3,
        "code": 42,
        "Amount_": 7.0,
        "big": 99,
        "at": TEN,
        "day": date(2024, 3, 2),
        "ok": True,
        "note": "123",
        "empty": "5",
    }
    assert rows(world, "orders")[3] == order
    assert rows(world, "plain")[3] == order
    event = rows(world, "events")[3]
    assert json.loads(event.pop("user")) == {"name": "b", "n": 2}
    assert event == {"id": 3, "at": TEN, "score": 3.0}
    if world.upserts:
        assert done["customers"].changes == RowChanges(1, 2, 0, unchanged=0, ignored=1)
        names = {key: row["name"] for key, row in rows(world, "customers").items()}
        assert names == {1: "A", 2: "b", 3: "c", 4: "d"}
    assert {one.status for one in run(world, *incremental).values()} == {"NO_OP"}


def test_other_formats_and_other_pipelines_keep_the_types_of_a_kept_table(
    kept_world: Kept,
) -> None:
    world = kept_world
    kept.first_day(world, upserts=False)
    before = {name: world.types(name) for name in ("numbers", "plain")}
    text = "id,n,at,local,price\n3,08,2024-03-01 10:00:00,2024-03-01T10:00,2\n"
    numbers = kept.numbers(world)
    csv = FilesInput("CSV", (str(kept.write(world, "numbers", "3.csv", text)),), {"header": "true"})
    line = (
        '{"id": 4, "n": 9, "at": "2024-03-01T10:00:00Z", "local": "2024-03-01T10:00:00", '
        '"price": 3}'
    )
    lines = FilesInput("NDJSON", (str(kept.write(world, "numbers", "4.ndjson", line)),), {})
    kept.write(world, "plain", "1.csv", kept.ORDERS.replace("\n1,", "\n5,").replace("\n2,", "\n6,"))

    by_csv = run(world, replace(numbers, input=csv, fingerprint="csv"))["numbers"]
    by_json = run(world, replace(numbers, input=lines, fingerprint="json"))["numbers"]
    options = RunOptions(table_handling="APPEND")
    others = run(world, kept.plain(world), pipeline="other", options=options)["plain"]

    assert [by_csv.error, by_json.error, others.error] == [None] * 3
    assert {name: world.types(name) for name in before} == before
    local = TEN.replace(tzinfo=None)
    found = rows(world, "numbers")
    assert found[4] == {"id": 4, "n": 9, "at": TEN, "local": local, "price": 3.0}
    assert found[3] == {"id": 3, "n": 8, "at": TEN, "local": local, "price": 2.0}
    assert [rows(world, "plain")[key]["code"] for key in (5, 6)] == [7, 42]
