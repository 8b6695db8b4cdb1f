"""Loads of files without a row, in every mode and format: nothing fails, and nothing is added."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, get_args

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.spec import FileFormatName, FilesInput, Mode, RunOptions, TableSpec
from tests.integration.formats.worlds import IcebergWorld, World, load

ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
Rows = list[dict[str, Any]]


def _table(rows: Rows) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([row["id"] for row in rows], pa.int64()),
            "name": pa.array([row["name"] for row in rows], pa.string()),
        }
    )


def _bytes(write: Callable[[Any], object]) -> bytes:
    stream = BytesIO()
    write(stream)
    return stream.getvalue()


FILES: dict[FileFormatName, Callable[[Rows], bytes]] = {
    "CSV": lambda rows: "".join(
        f"{line}\n" for line in ("id,name", *(f"{row['id']},{row['name']}" for row in rows))
    ).encode(),
    "NDJSON": lambda rows: "".join(f"{json.dumps(row)}\n" for row in rows).encode(),
    "PARQUET": lambda rows: _bytes(lambda stream: pq.write_table(_table(rows), stream)),
    "ORC": lambda rows: _bytes(lambda stream: orc.write_table(_table(rows), stream)),
    "AVRO": lambda rows: _bytes(lambda stream: fastavro.writer(stream, AVRO, rows)),
}
UNTYPED = ("CSV", "NDJSON")
"""Types come from values."""


def data(world: World) -> list[tuple[Any, Any]]:
    return sorted((row["id"], row["name"]) for row in world.rows())


def cases() -> Iterator[Any]:
    # Rows of Parquet tables are appended.
    worlds = [("parquet", "APPEND"), *(("iceberg", mode) for mode in get_args(Mode))]
    for (world, mode), file_format in itertools.product(worlds, FILES):
        few = (file_format, mode) in {("CSV", "OVERWRITE"), ("CSV", "APPEND")}
        marks = () if few else (pytest.mark.exhaustive,)
        name = f"{world}: {file_format}: {mode}"
        yield pytest.param(world, file_format, mode, id=name, marks=marks)


@pytest.mark.parametrize(("world", "file_format", "mode"), list(cases()), indirect=["world"])
def test_load_without_rows_adds_none(world: World, file_format: FileFormatName, mode: Mode) -> None:
    key = ("id",) if mode == "UPSERT" else ()

    def table(rows: Rows, name: str) -> TableSpec:
        path = Path(world.file(name, ROWS))
        path.write_bytes(FILES[file_format](rows))
        options = {"header": "true"} if file_format == "CSV" else {}
        spec = world.table(str(path), mode=mode, primary_key=key)
        return replace(spec, input=FilesInput(file_format, (str(path),), options))

    first = load(world, table([], "1"))
    loaded = load(world, table(ROWS, "2"))
    assert (first.error, first.rows, loaded.error, loaded.rows) == (None, 0, None, 2)
    if isinstance(world, IcebergWorld):
        assert first.status == ("NO_OP" if file_format in UNTYPED else "LOADED")
    assert data(world) == [(1, "a"), (2, "b")]

    for options in (RunOptions(), RunOptions(full_refresh=True)):
        if options.full_refresh and mode != "UPSERT":
            continue
        empty = load(world, table([], "3"), options=options)
        assert (empty.error, empty.status, empty.rows) == (None, "LOADED", 0)
        empties = mode == "OVERWRITE" or options.full_refresh
        assert data(world) == ([] if empties else [(1, "a"), (2, "b")])
    again = load(world, table(ROWS, "4"), schema_changes="FAIL")
    assert (again.error, again.rows) == (None, 2)
    assert len(data(world)) == (4 if mode == "APPEND" else 2)
    assert world.left() == []


def test_header_alone_adds_no_column_of_text(world: World) -> None:
    def table(text: str) -> TableSpec:
        path = Path(world.file("a.csv", ROWS))
        path.write_text(text)
        spec = world.table(str(path))
        return replace(spec, input=FilesInput("CSV", (str(path),), {"header": "true"}))

    results = [
        load(world, table(text))
        for text in ("id,name\n1,a\n", "id,name,amount\n", "id,name,amount\n2,b,3\n")
    ]

    assert [result.error for result in results] == [None] * 3
    found = {row["id"]: row.get("amount") for row in world.rows()}
    assert found == {1: None, 2: 3}
