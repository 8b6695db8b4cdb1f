"""`python -m bench.postgres`: a table of PostgreSQL to gzip Parquet, by lakeload and by others.

The server starts for the benchmark and holds the generated tables. Its CPU is not counted; that of
everything that a contestant starts is. Runs alternate, and one counts after its output was
verified. `--large` loads a larger table by lakeload alone, for its memory. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.commands import plain_environment
from bench.contestants import (
    PEERS,
    Contestant,
    LakeloadSync,
    Prepared,
    SparkNative,
)
from bench.data import SPARK_TYPES, DataSet, bench_dir, data_set
from bench.environment import peer_python
from bench.lake import running_lake
from bench.measure import Measurement, measure
from bench.verify import KeyEncoding, plain_text, verify
from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import pinned
from tests.servers.jars import CACHE, REPOSITORY
from tests.servers.postgres import PASSWORD, USER, Postgres, start_postgres
from tests.servers.sharing import OwnServers

BARS = {"spark": 0.45, "dlt": 0.35, "polars": 1.6}
"""CPU of lakeload over that of each other contestant."""
JUDGED_ROWS = 3_000_000
MEMORY_BAR = 1.25
"""Peak of the larger table over that of the smaller one."""
(DRIVER,) = pinned("postgresql")
PEER_NAMES = ("dlt", "polars")
_TYPES = {
    "string": "text",
    "int": "int4",
    "double": "float8",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}


@dataclass(frozen=True)
class FromPostgres(LakeloadSync):
    """`lakeload sync` of the table."""

    server: Postgres = field(kw_only=True)
    database: str = field(kw_only=True)

    def prepare(self, form: str, data: DataSet, folder: Path) -> Prepared:
        """Write the pipeline; the password is in the environment."""
        prepared = super().prepare(form, data, folder)
        login = {"BENCH_PASSWORD": PASSWORD}
        return replace(prepared, environment=prepared.environment | login)

    def _pipeline(self, form: str, data: DataSet, folder: Path) -> dict[str, Any]:
        document = super()._pipeline("PARQUET", data, folder)
        source = {
            "type": "JDBC",
            "url": self.server.url(self.database),
            "user": USER,
            "password": {"env": "BENCH_PASSWORD"},
        }
        table = {"table": "public.orders", "primary_key": ["order_id"]}
        return document | {"source": source, "tables": [table]}


@dataclass(frozen=True)
class SparkJdbc(SparkNative):
    """Spark's JDBC source and its own writer."""

    server: Postgres = field(kw_only=True)
    database: str = field(kw_only=True)
    jar: Path = field(kw_only=True)

    def prepare(self, form: str, data: DataSet, folder: Path) -> Prepared:
        """spark-submit of `peers/spark_jdbc.py` to a folder on local disk."""
        prepared = super().prepare("PARQUET", data, folder)
        script = next(i for i, part in enumerate(prepared.command) if part.endswith(".py"))
        arguments = [
            f"jdbc:{self.server.url(self.database)}",
            *(str(folder / "out"), str(uuid.uuid4()), str(data.rows), str(2 * self.cores)),
        ]
        command = [*prepared.command[:script], "--jars", str(self.jar)]
        command += [str(PEERS / "spark_jdbc.py"), *arguments]
        login = {"BENCH_USER": USER, "BENCH_PASSWORD": PASSWORD}
        return Prepared(command, prepared.environment | login, folder)


@dataclass(frozen=True)
class Peer:
    """dlt, or ADBC and polars, without Spark and in an environment of its own."""

    name: str
    cores: int
    server: Postgres = field(kw_only=True)
    database: str = field(kw_only=True)
    python: str = field(kw_only=True)
    encode: KeyEncoding = plain_text
    dense_index: bool = True

    def prepare(self, form: str, data: DataSet, folder: Path) -> Prepared:
        """`peers/postgres_NAME.py` to a folder on local disk."""
        target = folder / "out"
        command = [self.python, str(PEERS / f"postgres_{self.name}.py")]
        command += [self.server.url(self.database), str(target), str(uuid.uuid4())]
        login = {
            "BENCH_USER": USER,
            "BENCH_URL_PASSWORD": quote(PASSWORD, safe=""),
            "POLARS_MAX_THREADS": str(self.cores),
            "DATA_WRITER__COMPRESSION": "gzip",
            "RUNTIME__DLTHUB_TELEMETRY": "false",
        }
        return Prepared(command, plain_environment() | login, folder)

    def files(self, prepared: Prepared) -> list[Path]:
        """The files of the table; dlt keeps tables of its own beside it."""
        found = (prepared.folder / "out").rglob("*.parquet")
        return sorted(path for path in found if "_dlt" not in str(path.parent))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every run and the medians; 0 when the bars are met."""
    parser = argparse.ArgumentParser(prog="python -m bench.postgres", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--large", type=int, default=12_000_000, help="0: none")
    parser.add_argument("--only", nargs="+", choices=("lakeload", *BARS), default=None)
    options = parser.parse_args(arguments)
    data = data_set(options.rows)
    (jar,) = fetch([DRIVER], CACHE / "databases", REPOSITORY)
    scratch = Path(tempfile.mkdtemp(prefix="postgres-", dir=bench_dir()))
    costs: dict[str, list[Measurement]] = {}
    try:
        with contextlib.ExitStack() as stack:
            lake = stack.enter_context(running_lake(scratch / "aws"))
            # The server's user may not read the folders of whoever runs this.
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-postgres-"))
            server = stack.enter_context(start_postgres(Path(home), OwnServers()))
            database = _filled(server, data)
            given = (options.heap, options.cores)
            place: dict[str, Any] = {"server": server, "database": database}
            ours = FromPostgres(lake, *given, **place)
            peers: list[Contestant] = [
                SparkJdbc(*given, **place, jar=jar),
                *(Peer(name, options.cores, **place, python=peer_python()) for name in PEER_NAMES),
            ]
            contestants = [
                one for one in (ours, *peers) if not options.only or one.name in options.only
            ]
            for number in range(options.runs):
                turn = number % len(contestants)
                for contestant in contestants[turn:] + contestants[:turn]:
                    cost = _run(contestant, data, scratch)
                    costs.setdefault(contestant.name, []).append(cost)
            if options.large:
                more = data_set(options.large)
                ours = replace(ours, name="large", database=_filled(server, more))
                costs["large"] = [_run(ours, more, scratch)]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return _report(costs, judged=data.rows >= JUDGED_ROWS)


def _filled(server: Postgres, data: DataSet) -> str:
    """Create a database with the table and return its name."""
    database = server.new_database()
    columns = ", ".join(f"{name} {_TYPES.get(kind, kind)}" for name, kind in SPARK_TYPES.items())
    with contextlib.closing(server.connect(database)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE orders ({columns})".encode())
        for path in sorted((data.folder / "csv").glob("*.csv")):
            with (
                path.open("rb") as file,
                connection.cursor().copy("COPY orders FROM STDIN (FORMAT csv, HEADER)") as copy,
            ):
                while block := file.read(1 << 20):
                    copy.write(block)
        connection.execute("VACUUM ANALYZE orders")
    return database


def _run(contestant: Contestant, data: DataSet, scratch: Path) -> Measurement:
    """One measured and verified run; its files are removed again."""
    folder = scratch / f"{contestant.name}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    prepared = contestant.prepare("POSTGRES", data, folder)
    log = folder / "output.log"
    cost = measure(prepared.command, environment=prepared.environment, folder=folder, log=log)
    if cost.status != 0:
        raise RuntimeError(f"{contestant.name} failed:\n{log.read_text(errors='replace')[-3000:]}")
    files = contestant.files(prepared)
    checks: dict[str, Any] = {"encode": contestant.encode, "dense_index": contestant.dense_index}
    # dlt loads every integer as bigint, and polars writes text as Arrow's large_string.
    verify(files, data, **checks, same_types=not isinstance(contestant, Peer))
    shutil.rmtree(folder)
    print(f"{contestant.name:10}{_shown(cost)}", file=sys.stderr, flush=True)
    return cost


def _shown(cost: Measurement) -> str:
    return f"{cost.cpu:7.2f} s CPU {cost.wall:7.2f} s wall {cost.peak / 2**20:7.0f} MiB"


def _report(costs: dict[str, list[Measurement]], *, judged: bool) -> int:
    medians = {}
    for name, runs in costs.items():
        cpu = sorted(run.cpu for run in runs)
        medians[name] = statistics.median(cpu)
        wall = statistics.median(run.wall for run in runs)
        peak = max(run.peak for run in runs) / 2**20
        print(
            f"{name:10}{medians[name]:7.1f} s CPU ({cpu[0]:.1f}-{cpu[-1]:.1f}), {wall:.1f} s wall, "
            f"peak {peak:.0f} MiB"
        )
    met = [
        _judged(f"CPU of lakeload / {name}", medians["lakeload"] / medians[name], bar)
        for name, bar in BARS.items()
        if name in medians and "lakeload" in medians
    ]
    if "large" in costs and "lakeload" in costs:
        least = statistics.median(run.peak for run in costs["lakeload"])
        met.append(_judged("peak of large / lakeload", costs["large"][0].peak / least, MEMORY_BAR))
    if not judged:
        print("too few rows to judge: starting Java costs more than the work")
    return 0 if all(met) or not judged else 1


def _judged(what: str, ratio: float, bar: float) -> bool:
    print(f"{what}: {ratio:.2f} (bar {bar}): {'met' if ratio <= bar else 'MISSED'}")
    return ratio <= bar


if __name__ == "__main__":
    sys.exit(main())
