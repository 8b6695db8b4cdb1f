"""The lake with gigabytes in it, killed while it is written to: what it keeps, and its memory."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from lakeload.lake.server import Lake
from lakeload.lake.tables import ask
from tests.integration.lake.tables import write_iceberg, write_parquet

FILE = pa.table({"id": np.arange(8_000_000), "x": np.random.default_rng(7).random(8_000_000)})
"""About 110 MB as a Parquet file."""
PARQUET_TABLES, FILES, ICEBERG_TABLES = 4, 12, 6
MEMORY = 1 << 30


class Memory(threading.Thread):
    """The most resident memory that a process had."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._process = psutil.Process(pid)
        self.start()

    def run(self) -> None:
        """Sample until it ends."""
        with suppress(psutil.NoSuchProcess):
            while True:
                self.peak = max(self.peak, self._process.memory_info().rss)
                time.sleep(0.05)


def _pid(lake: Lake) -> int:
    found = lake.pid()
    assert found
    return found


def _check(lake: Lake) -> None:
    for number in range(PARQUET_TABLES):
        rows = ask(lake, f"select count(*), count(distinct id), sum(id) from big.p{number}").rows
        one = FILE.num_rows
        assert rows == ((FILES * one, one, str(FILES * one * (one - 1) // 2)),)
    for number in range(ICEBERG_TABLES):
        assert ask(lake, f"select count(*) from big.i{number}").rows == ((FILE.num_rows,),)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_lake_of_five_gigabytes_is_whole_after_a_kill(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.start()
    keys = {file.name: file.read_text() for file in lake.keys.iterdir()}
    endpoints = (lake.s3_endpoint, lake.catalog_uri)
    try:
        started = time.monotonic()
        memory = Memory(_pid(lake))
        for number in range(PARQUET_TABLES):
            write_parquet(lake, "big", f"p{number}", [FILE] * FILES)
        for number in range(ICEBERG_TABLES):
            write_iceberg(lake, "big", f"i{number}", FILE)
        size, seconds, loading = lake.bytes(), time.monotonic() - started, memory.peak
        assert size > 5e9

        def write() -> None:
            with suppress(Exception):  # the server is killed meanwhile
                write_parquet(lake, "big", "killed", [FILE] * FILES)

        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(3)
        os.kill(_pid(lake), signal.SIGKILL)
        writer.join()

        started = time.monotonic()
        assert lake.start()
        again = time.monotonic() - started
        memory = Memory(_pid(lake))
        assert (lake.s3_endpoint, lake.catalog_uri) == endpoints
        assert {file.name: file.read_text() for file in lake.keys.iterdir()} == keys
        _check(lake)
        print(  # noqa: T201 - decision 108 has these numbers
            f"{size / 1e9:.1f} GB in {seconds:.0f} s, {loading / 2**20:.0f} MiB at most; started "
            f"again in {again:.1f} s; {memory.peak / 2**20:.0f} MiB at most while all was read"
        )
        assert max(loading, memory.peak) < MEMORY
    finally:
        lake.stop()
        lake.delete()
