"""`python -m bench`: lakeload and other tools on the same files, interleaved.

Every round runs each contestant once on each input form, so that a slow minute of the machine
hits all of them. A run counts after its output was verified. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.contestants import Contestant, LakeloadSync, LibraryCopy, SparkNative
from bench.data import SHAPES, DataSet, bench_dir, data_set
from bench.environment import peer_python, peer_versions
from bench.lake import Lake, running_lake
from bench.machine import on_cores
from bench.measure import Measurement, measure
from bench.report import Run, Setting, summary, write_results
from bench.verify import verify

FORMS = ("CSV", "PARQUET")
LIBRARIES = ("duckdb", "polars", "pyarrow")
NAMES = (
    *("lakeload", "lakeload-archive", "lakeload-jvm", "lakeload-1core"),
    *("spark", *LIBRARIES),
)
ONLY = {"lakeload-jvm": "PARQUET", "lakeload-1core": "CSV"}
"""Contestants that run on one input form alone."""
SCALED = ("lakeload", "lakeload-1core", "polars")
"""Those that copy the table in other sizes, too: with one core only the largest."""

BARS_FROM_ROWS = 3_000_000
SCALING = (1_000_000, 10_000_000, 30_000_000)


class ContestantFailed(RuntimeError):
    """A contestant ended with a non-zero status; the message ends with its log's last lines."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for. `scaling`: rows of the table in other sizes, ascending."""

    shape: str
    rows: int
    scaling: tuple[int, ...]
    runs: int
    forms: tuple[str, ...]
    names: tuple[str, ...]
    heap: str
    cores: int
    results: Path | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when every output was right and no measured bar was missed."""
    options = _options(arguments)
    started = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=_made(bench_dir())))
    try:
        with running_lake(scratch / "aws") as lake:
            contestants = _contestants(options, lake)
            runs = list(_rounds(options, contestants, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    setting = Setting(
        *(options.shape, options.rows, options.runs, options.heap, options.cores),
        # The bars are about the first shape.
        BARS_FROM_ROWS if options.shape == "orders" else None,
        peer_versions([name for name in LIBRARIES if name in options.names]),
    )
    text, met = summary(runs, setting)
    print(text)
    print(f"\n{time.monotonic() - started:.0f} s")
    if options.results:
        print(f"written to {write_results(text, runs, setting, options.results)}")
    return 0 if met else 1


def _options(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--shape", choices=SHAPES, default="orders", help="columns of the table")
    add("--rows", type=_count, default=BARS_FROM_ROWS, help="rows of the timed runs: 3M, 300k, …")
    add(
        "--scaling",
        type=_count,
        nargs="*",
        default=SCALING,
        help="other sizes, one run of each; 0: none",
    )
    add("--runs", type=int, default=5, help="rounds; medians are shown")
    add("--only", nargs="*", default=[], help="csv, parquet, " + ", ".join(NAMES))
    add("--heap", default="2g", help="driver memory of lakeload and of Spark")
    add("--cores", type=int, default=2, help="local[N], and threads of the libraries")
    add("--no-results", action="store_true", help="print only; write nothing to bench/results")
    given = parser.parse_args(arguments)
    wanted = {word.lower() for word in given.only}
    if unknown := wanted - {*NAMES, *(form.lower() for form in FORMS)}:
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}")
    held = tuple(form for form in FORMS if form.lower() in SHAPES[given.shape].forms)
    forms = tuple(form for form in held if form.lower() in wanted) or held
    names = tuple(name for name in NAMES if name in wanted) or NAMES
    results = None if given.no_results else Path(__file__).parent / "results"
    return Options(
        *(
            given.shape,
            given.rows,
            tuple(sorted(filter(None, given.scaling))),
            given.runs,
            forms,
            names,
        ),
        *(given.heap, given.cores, results),
    )


def _count(text: str) -> int:
    """`3M`, `300k` or plain digits."""
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1:].lower(), 1)
    return int(text[:-1] if factor > 1 else text) * factor


def _contestants(options: Options, lake: Lake) -> list[Contestant]:
    given = (lake, options.heap, options.cores)
    known: list[Contestant] = [
        LakeloadSync(*given, reader="DIRECT"),
        LakeloadSync(*given, name="lakeload-archive", reader="DIRECT", archive=True),
        LakeloadSync(*given, name="lakeload-jvm", reader="JVM"),
        LakeloadSync(lake, options.heap, 1, name="lakeload-1core"),
        SparkNative(options.heap, options.cores),
    ]
    if any(name in options.names for name in LIBRARIES):
        given_too = (options.cores, peer_python())
        known += [LibraryCopy(name, *given_too, large_text=name == "polars") for name in LIBRARIES]
    return [contestant for contestant in known if contestant.name in options.names]


def _rounds(options: Options, contestants: list[Contestant], scratch: Path) -> Iterator[Run]:
    data = _warm(data_set(options.rows, options.shape))
    for number in range(options.runs):
        # Another one goes first in every round.
        turn = number % len(contestants)
        for form in options.forms:
            for contestant in contestants[turn:] + contestants[:turn]:
                if ONLY.get(contestant.name, form) == form:
                    yield _run(contestant, form, data, scratch)
    for rows in options.scaling:
        scaled = _warm(data_set(rows, options.shape))
        for form in options.forms:
            for contestant in contestants:
                if contestant.name not in SCALED or ONLY.get(contestant.name, form) != form:
                    continue
                if contestant.name != "lakeload-1core" or rows == options.scaling[-1]:
                    yield _run(contestant, form, scaled, scratch)


def _run(contestant: Contestant, form: str, data: DataSet, scratch: Path) -> Run:
    """One measured and verified run; its files are removed again."""
    folder = _made(scratch / f"{contestant.name}-{uuid.uuid4().hex[:8]}")
    prepared = contestant.prepare(form, data, folder)
    log = folder / "output.log"
    with on_cores(contestant.cores):
        cost = measure(prepared.command, environment=prepared.environment, folder=folder, log=log)
    if cost.status != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        raise ContestantFailed(f"{contestant.name} ended with {cost.status}:\n{tail}")
    files = contestant.files(prepared)
    same_types = not (isinstance(contestant, LibraryCopy) and contestant.large_text)
    checks = {"encode": contestant.encode, "dense_index": contestant.dense_index}
    verify(files, data, **checks, same_types=same_types)
    size = sum(path.stat().st_size for path in files)
    shutil.rmtree(folder)
    _progress(contestant.name, form, data.rows, cost)
    return Run(contestant.name, form, data.rows, data.size(form.lower()), size, len(files), cost)


def _progress(name: str, form: str, rows: int, cost: Measurement) -> None:
    peak = cost.peak / 2**20
    times = f"{cost.cpu:7.2f} s CPU {cost.wall:7.2f} s wall {peak:7.0f} MiB"
    print(f"{form:8}{rows:>11,} {name:15}{times}", file=sys.stderr, flush=True)


def _warm(data: DataSet) -> DataSet:
    """Read every input file once, so that the first contestant does not pay for a cold cache."""
    for form in data.shape.forms:
        for path in data.files(form):
            with path.open("rb") as file:
                while file.read(1 << 22):
                    pass
    return data


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
