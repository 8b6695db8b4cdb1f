"""Files that change, shrink or grow while they are read: nothing of them is committed."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.events import Stage
from lakeload_jobs.contract.spec import FileFormatName, FilesInput, TableSpec
from lakeload_jobs.jobs.scheduler import _TableReporter
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.files.spark import source
from lakeload_jobs.sources.paths.file_state import FileState
from tests.inputs import files_of
from tests.integration.formats.worlds import ParquetWorld, World

ROWS = [{"id": number, "text": f"row {number} " * 20} for number in range(3_000)]


def csv() -> bytes:
    lines = ["id,text", *(f"{row['id']},{row['text']}" for row in ROWS)]
    return "\n".join(lines).encode()


def ndjson() -> bytes:
    return "".join(f'{{"id": {row["id"]}, "text": "{row["text"]}"}}\n' for row in ROWS).encode()


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), sink, row_group_size=500, compression="none")
    return sink.getvalue()


def orc() -> bytes:
    sink = io.BytesIO()
    pyarrow.orc.write_table(pa.Table.from_pylist(ROWS), sink)
    return sink.getvalue()


def avro() -> bytes:
    fields = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
    sink = io.BytesIO()
    fastavro.writer(sink, schema, ROWS)
    return sink.getvalue()


CONTENTS: dict[str, Callable[[], bytes]] = {
    "CSV": csv,
    "CSV_GZ": lambda: gzip.compress(csv()),
    "NDJSON": ndjson,
    "JSON": lambda: json.dumps(ROWS, indent=1).encode(),
    "PARQUET": parquet,
    "ORC": orc,
    "AVRO": avro,
}
CHANGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "grown": lambda path: path.write_bytes(path.read_bytes() + path.read_bytes()[-100:]),
    "other": lambda path: path.write_bytes(path.read_bytes().replace(b"row 7 ", b"row 8 ")),
    "removed": lambda path: path.unlink(),
}


MOMENTS = ("listed", "count", "stage")
"""When a file changes: behind the listing, and when its rows begin to be counted or written."""


def test_a_file_that_changes_is_named_and_nothing_is_committed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(world.folder()).mkdir(exist_ok=True)
    tables: list[TableSpec] = []
    pending: dict[tuple[str, str], Callable[[], object]] = {}
    expected: dict[str, str] = {}
    # Readers notice it, whatever the table is: for one format each of them is asked.
    names = CONTENTS if isinstance(world, ParquetWorld) else ("CSV", "PARQUET")
    for name in names:
        for change, act in CHANGES.items():
            own = f"{name}_{change}".lower()
            path = Path(world.folder(), f"{own}.{name.lower()}")
            path.write_bytes(CONTENTS[name]())
            file_format = cast("FileFormatName", name.removesuffix("_GZ"))
            options = {"header": "true"} if file_format == "CSV" else {}
            given = FilesInput(file_format, (str(path),), options)
            moment = MOMENTS[len(tables) % len(MOMENTS)]
            pending[moment, str(path)] = partial(act, path)
            tables.append(replace(world.table(name=own), input=given, fingerprint=own))
            what = "was removed" if change == "removed" else "was written to"
            expected[own] = f"the source changed while it was read: `{path}` {what}"

    def at(moment: str, given: FilesInput) -> None:
        pending.pop((moment, given.paths[0]), lambda: None)()

    enter, listed = _TableReporter.on_stage, list_files

    def on_stage(self: _TableReporter, stage: Stage, *rest: Any, **named: Any) -> None:
        enter(self, stage, *rest, **named)
        at(stage, files_of(self.table))

    def and_then(given: FilesInput, *rest: Any, **named: Any) -> tuple[FileState, ...]:
        files = listed(given, *rest, **named)
        at("listed", given)
        return files

    monkeypatch.setattr(_TableReporter, "on_stage", on_stage)
    monkeypatch.setattr(source, "list_files", and_then)

    result = world.run(replace(world.spec(tables[0]), tables=tuple(tables), concurrency=4))

    assert pending == {}
    errors = {one.table: one.error for one in result.tables}
    assert {name: error and error.message for name, error in errors.items()} == expected
    assert all(error is not None and error.retryable for error in errors.values())
    if isinstance(world, ParquetWorld):
        assert (world.rows(), world.left()) == ([], [])
