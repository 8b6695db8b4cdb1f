"""`python -m bench.small`: a small load of Iceberg tables beside the same load of Parquet files.

One `lakeload sync` appends a CSV file of 100 rows to each of its tables, which are there already:
1 table and 14, in Iceberg tables of Glue and in Parquet files, in turn, and all of it without and
with the AppCDS archive that `lakeload jars fetch` makes. A proxy counts the requests to the
embedded AWS, and the metadata files among them. The bars are those of later loads: what the first
one has to create is printed beside them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.commands import LAKELOAD, cache, make_archive, plain_environment
from bench.csv_tables import write_csv_tables
from bench.data import bench_dir
from bench.lake import BUCKET, PREFIX, Lake
from lakeload.demo.aws import EmbeddedAws
from tests.servers.fault_proxy import FaultProxy

RATIO_BAR = 1.2
"""CPU of Iceberg / that of Parquet, in the same state of the archive."""
REQUESTS_BAR, METADATA_BAR = 22, 2
"""Of a table."""
ROWS = 100
FORMATS = ("PARQUET", "ICEBERG")
_METADATA = re.compile(r"/metadata/[^/?]+\.metadata\.json(\?|$)")


class SyncFailed(RuntimeError):
    """A sync did not load its tables; the message ends with what it printed."""


@dataclass(frozen=True)
class Cost:
    """Seconds, of CPU those of everything that the command started; requests, and the metadata
    files that were written."""

    cpu: float
    wall: float
    requests: int
    metadata: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every run and the bars; 0 when all are met."""
    parser = argparse.ArgumentParser(prog="python -m bench.small", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="later loads of each")
    parser.add_argument("--tables", type=int, nargs="+", default=[1, 14])
    parser.add_argument("--archive", choices=("with", "without", "both"), default="both")
    given = parser.parse_args(arguments)
    states = {"with": (True,), "without": (False,), "both": (False, True)}[given.archive]
    bench_dir().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="small-", dir=bench_dir()))
    try:
        with _running_lake(scratch / "aws") as running, _counted(running) as (lake, proxy):
            if True in states:
                for table_format in FORMATS:
                    make_archive(_documents(scratch, lake, f"archive-{table_format}", 1))
            met = [
                _compare(scratch, lake, proxy, count, given.runs, archive=archive)
                for archive in states
                for count in given.tables
            ]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0 if all(met) else 1


@contextmanager
def _running_lake(folder: Path) -> Iterator[Lake]:
    """Start the emulator, with a role that may do everything in its lake and in Glue."""
    with EmbeddedAws(folder) as aws:
        seeded = aws.seed(bucket=BUCKET, prefix=PREFIX)
        everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        policy = {"Version": "2012-10-17", "Statement": [everything]}
        aws.admin().put_role_policy(seeded.role, policy)
        yield Lake(aws.endpoint, seeded)


@contextmanager
def _counted(lake: Lake) -> Iterator[tuple[Lake, FaultProxy]]:
    """Yield the lake as it is through a proxy that records what passes."""
    proxy = FaultProxy(lake.endpoint)
    proxy.start()
    try:
        yield replace(lake, endpoint=proxy.endpoint), proxy
    finally:
        proxy.stop()


def _compare(
    scratch: Path, lake: Lake, proxy: FaultProxy, count: int, runs: int, *, archive: bool
) -> bool:
    """Print the loads of both formats in turn, and their bars; return whether these are met."""
    state = f"{'with' if archive else 'without'} the archive, {count} table{'s'[: count - 1]}"
    print(f"\n{state}", flush=True)
    found: dict[str, list[Cost]] = {table_format: [] for table_format in FORMATS}
    for number in range(runs + 1):
        for table_format in FORMATS:
            name = f"{table_format}-{count}-{'archive' if archive else 'plain'}"
            path = scratch / name / "pipeline.yml"
            if number == 0:
                path = _documents(scratch, lake, name, count)
            cost = _sync(path, lake, proxy, archive=archive)
            found[table_format].append(cost)
            print(
                f"  {table_format:<8} {'first' if number == 0 else 'later'}: {cost.cpu:5.1f} s CPU,"
                f" {cost.wall:5.1f} s wall, {cost.requests:4} requests, {cost.metadata:3} metadata"
                " files",
                flush=True,
            )
    # What only the first load does is no part of the bars.
    parquet, iceberg = (found[table_format][1:] for table_format in FORMATS)
    own, other = (statistics.median(cost.cpu for cost in costs) for costs in (iceberg, parquet))
    print(f"  CPU of a later load: Iceberg {own:.1f} s, Parquet {other:.1f} s, medians of {runs}")
    return all(
        [
            _bar("CPU of Iceberg / Parquet", own / other, RATIO_BAR),
            _bar("requests of a table", max(c.requests for c in iceberg) / count, REQUESTS_BAR),
            _bar(
                "metadata files of a table", max(c.metadata for c in iceberg) / count, METADATA_BAR
            ),
        ]
    )


def _bar(name: str, found: float, bar: float) -> bool:
    met = round(found, 2) <= bar
    print(f"  {name}: {found:.2f}, bar {bar:g}: {'reached' if met else 'MISSED'}", flush=True)
    return met


def _sync(pipeline: Path, lake: Lake, proxy: FaultProxy, *, archive: bool) -> Cost:
    environment = plain_environment() | lake.environment()
    environment["LAKELOAD_CACHE_DIR"] = str(cache(archive=archive))
    environment["LAKELOAD_RUN_DIR"] = str(pipeline.parent / "runs")
    begun = len(proxy.requests)
    before, started = os.times(), time.monotonic()
    ended = subprocess.run(
        [LAKELOAD, "sync", str(pipeline)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    wall, after = time.monotonic() - started, os.times()
    if ended.returncode != 0:
        said = ended.stdout.decode(errors="replace")
        raise SyncFailed(f"{pipeline}: status {ended.returncode}\n{said}")
    cpu = after.children_user - before.children_user
    cpu += after.children_system - before.children_system
    sent = proxy.requests[begun:]
    written = sum(
        request.method == "PUT" and bool(_METADATA.search(request.target)) for request in sent
    )
    return Cost(cpu, wall, len(sent), written)


def _documents(scratch: Path, lake: Lake, name: str, count: int) -> Path:
    destination = lake.destination(name.lower())
    if "ICEBERG" in name:
        destination["table_format"] = "ICEBERG"
        destination["glue_database_prefix"] = ""
        destination["endpoints"]["glue"] = lake.endpoint
    return write_csv_tables(
        scratch / name,
        {f"table_{number:02d}": ROWS for number in range(count)},
        destination,
        table={"mode": "APPEND", "primary_key": ["id"]},
        namespace=re.sub(r"\W", "_", name.lower()),
        on_append_again="ALLOW",
    )


if __name__ == "__main__":
    sys.exit(main())
