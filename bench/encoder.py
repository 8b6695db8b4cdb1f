"""`python -m bench.encoder`: what the encoder's settings cost, on six differently shaped tables.

Batches in memory, one thread, the best of some rounds: levels of gzip and zstd, dictionaries,
sizes of row groups and pages. Nothing is uploaded. docs/decisions/0020-the-parquet-encoder.md
names the settings that were chosen from this.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from arro3.io import write_parquet

from bench.data import SHAPES, Shape
from lakeload_jobs.formats.data_files.encode import (
    ARRO3_LEVEL,
    PYARROW_LEVEL,
    ROW_GROUP_BYTES,
    ZSTD_LEVEL,
    Encoding,
    dictionary_columns,
    encode_file,
    row_group_rows,
)

BATCH_ROWS = 65_536
PAGE_BYTES = 1 << 20
"""arro3's default."""


@dataclass(frozen=True)
class Setting:
    """Settings of the encoder. `dictionaries` None: decided by a sample, as loads do."""

    name: str
    codec: str = f"gzip({ARRO3_LEVEL})"
    dictionaries: bool | None = None
    group_bytes: int = ROW_GROUP_BYTES
    page_bytes: int = PAGE_BYTES


CHOSEN = Setting("as loads do")
SETTINGS = (
    CHOSEN,
    *(Setting(f"gzip {level}", f"gzip({level})") for level in (1, 4, 6)),
    *(Setting(f"zstd {level}", f"zstd({level})") for level in (1, ZSTD_LEVEL, 6)),
    Setting("all dictionaries", dictionaries=True),
    Setting("no dictionaries", dictionaries=False),
    *(Setting(f"row groups {size} MiB", group_bytes=size << 20) for size in (16, 128)),
    *(Setting(f"pages {size} KiB", page_bytes=size << 10) for size in (128, 4096)),
)


class Bytes(io.BytesIO):
    """A file in memory that knows its size, as the encoder asks for."""

    @property
    def size(self) -> int:
        """Bytes written."""
        return self.tell()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each shape."""
    parser = argparse.ArgumentParser(prog="python -m bench.encoder", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=96, help="Arrow data of each table")
    parser.add_argument("--runs", type=int, default=3, help="rounds; the best is shown")
    parser.add_argument("--shape", choices=SHAPES, nargs="*", default=list(SHAPES))
    given = parser.parse_args(arguments)
    for name in given.shape:
        batches = _batches(SHAPES[name], given.megabytes << 20)
        print("\n".join(_table(name, batches, given.runs)), flush=True)
    return 0


def _batches(shape: Shape, size: int) -> list[pa.RecordBatch]:
    step = BATCH_ROWS * 13 // max(13, len(shape.schema))
    batches = [shape.batch(0, step)]
    while sum(batch.nbytes for batch in batches) < size:
        batches.append(shape.batch(len(batches) * step, step))
    return batches


def _table(name: str, batches: list[pa.RecordBatch], runs: int) -> list[str]:
    size, rows = sum(batch.nbytes for batch in batches), sum(batch.num_rows for batch in batches)
    best: dict[str, tuple[float, int]] = {}
    for _ in range(runs):
        for label, encode in _ways(batches):
            before = time.process_time()
            written = encode()
            seconds = time.process_time() - before
            best[label] = min(best.get(label, (seconds, written)), (seconds, written))
    own_seconds, own_size = best[CHOSEN.name]
    lines = [
        f"## {name}: {len(batches[0].schema)} columns, {rows:,} rows, {size / 2**20:,.0f} MiB",
        "",
        "| setting | CPU s | MB | CPU × | size × |",
        "|---|---|---|---|---|",
    ]
    for label, (seconds, written) in best.items():
        ratios = f"{seconds / own_seconds:.2f} | {written / own_size:.2f}"
        lines.append(f"| {label} | {seconds:.2f} | {written / 1e6:.1f} | {ratios} |")
    return [*lines, ""]


def _ways(batches: list[pa.RecordBatch]) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield each way to encode the batches, which gives the bytes written."""
    for setting in SETTINGS:
        # Bound here, because the loop goes on before the function runs.
        yield setting.name, lambda setting=setting: _with_arro3(batches, setting)
    yield f"pyarrow, gzip {PYARROW_LEVEL}", lambda: _with_pyarrow(batches)


def _with_arro3(batches: list[pa.RecordBatch], setting: Setting) -> int:
    sink = Bytes()
    if setting is CHOSEN:
        rows = 0
        rest = iter(batches)
        for first in rest:
            rows += encode_file(first, rest, sink, target_size=1 << 40, encoding=Encoding())
        return sink.size
    chosen = dictionary_columns(batches[0])
    enabled = chosen if setting.dictionaries is None else dict.fromkeys(chosen, False)
    write_parquet(
        pa.RecordBatchReader.from_batches(batches[0].schema, batches),
        sink,
        compression=setting.codec,
        column_dictionary_enabled=None if setting.dictionaries else dict(enabled.items()),
        max_row_group_size=row_group_rows(batches[0], setting.group_bytes),
        data_page_size_limit=setting.page_bytes,
        skip_arrow_metadata=True,
    )
    return sink.size


def _with_pyarrow(batches: list[pa.RecordBatch]) -> int:
    sink = Bytes()
    paths = [".".join(path) for path, enabled in dictionary_columns(batches[0]).items() if enabled]
    pq.write_table(
        pa.Table.from_batches(batches),
        sink,
        compression="gzip",
        compression_level=PYARROW_LEVEL,
        use_dictionary=paths,
        row_group_size=row_group_rows(batches[0], ROW_GROUP_BYTES),
        store_schema=False,
        store_decimal_as_integer=True,
    )
    return sink.size


if __name__ == "__main__":
    sys.exit(main())
