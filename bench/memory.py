"""`python -m bench.memory`: the peak memory of one task, for tables of different widths.

A process does what a Python worker does in a load: it reads a Parquet or CSV file, adds tracking
columns, encodes, and gives parts to uploads that take a while. Nothing is uploaded. Files of your
own: `python -m bench.memory FILE…` (Parquet, ORC, Avro, CSV with a header, NDJSON).
docs/performance.md has the figures.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.data import SHAPES, data_set
from bench.measure import Limits, measure
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.data_files.encode import PartWriter, UploadPool, encode_file, part_bytes
from lakeload_jobs.rows.tracking import add_tracking
from lakeload_jobs.sources.files.formats.registry import (
    TEXT_FORMATS,
    TYPED_FORMATS,
    named_format,
)
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.files.text.table import TextFiles
from lakeload_jobs.sources.files.typed.columns import settled, unite
from lakeload_jobs.sources.files.typed.rows import ReadTyped, split_files
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.storage.objects import Part

PARALLELISM = 5
PART_SECONDS = 0.5
TARGET_SIZE = 1 << 30
TRACKING = ("_supa_synced", "_supa_index", "_supa_id")


class SlowObjects:
    """Takes parts, each in `PART_SECONDS`, and keeps none."""

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes) -> Part:
        """Hold the part for a while."""
        time.sleep(PART_SECONDS)
        return Part(number, "", "")


def batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file as a load reads them. Raises `LoadFailed`."""
    file = FileState(str(path), path.stat().st_size, 0)
    name = named_format(path.name) or ""
    if name in TEXT_FORMATS:
        options = {"header": "true"} if TEXT_FORMATS[name].usual_options else {}
        splits = TextFiles((file,), TEXT_FORMATS[name].reading(options)).split(_scan).splits
    else:
        given, opener = TYPED_FORMATS[name], FileBytes()
        schemas = given.schemas([file], opener)
        columns = unite(schemas, [column.name for column in schemas[0].columns])
        schema = pa.schema([(column.name, settled(column.kind)) for column in columns])
        read = ReadTyped(schema, given.reader(opener))
        splits = split_files(schemas, read, base=None, parallelism=1)
    for part in splits.parts:
        yield from splits.read(part)


def _scan(scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
    return [scan(part) for part in parts]


def task(path: Path) -> int:
    """Do what a task does with a file, and return how many rows it has. Raises `LoadFailed`."""
    objects: Any = SlowObjects()
    pool, rows = UploadPool(PARALLELISM), 0
    tracked = (
        add_tracking(
            batch, first_index=1, synced=datetime.now(UTC), job_id="bench", key_columns=(),
            columns=TRACKING,
        )
        for batch in batches(path)
    )  # fmt: skip
    try:
        while (first := next(tracked, None)) is not None:
            size_of_part = part_bytes(TARGET_SIZE)
            sink = PartWriter(objects, pool, "key", "upload", size_of_part=size_of_part)
            rows += encode_file(first, tracked, sink, target_size=TARGET_SIZE)
            sink.finish()
    finally:
        pool.close()
    return rows


def peak(path: Path) -> tuple[int, float, str]:
    """Return the peak memory (PSS) of a task in bytes, its CPU seconds and what it printed."""
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log"
        command = [sys.executable, "-m", "bench.memory", "--task", str(path.resolve())]
        limits = Limits(seconds=600, memory=8 << 30)
        found = measure(command, environment=os.environ, folder=Path.cwd(), log=log, limits=limits)
        printed = log.read_text().strip()
    return found.peak, found.cpu, found.stopped or printed


def main() -> None:
    """Print a table of tasks and their peaks."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files of your own")
    parser.add_argument("--rows", type=int, default=300_000, help="rows of a generated table")
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--task", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task is not None:
        try:
            print(f"{task(given.task):,} rows")
        except LoadFailed as error:
            print(f"{error}; hint: {error.hint}")
        return
    files = [(path.name, path) for path in given.files]
    if not files:
        for name in given.shapes:
            # About as many values in each table.
            rows = given.rows * 13 // max(13, len(SHAPES[name].schema))
            made = data_set(rows, name)
            files += [(f"{name}, {form}", made.files(form)[0]) for form in made.shape.forms]
    print(f"{'file':24} {'MiB':>7} {'peak MiB':>9} {'CPU s':>6}  result")
    for name, path in files:
        memory, cpu, printed = peak(path)
        size = path.stat().st_size / 2**20
        print(f"{name:24} {size:7.1f} {memory / 2**20:9.0f} {cpu:6.1f}  {printed}", flush=True)


if __name__ == "__main__":
    main()
