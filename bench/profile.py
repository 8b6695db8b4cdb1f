"""`python -m bench.profile`: the CPU seconds of each process of a load of CSV and Parquet files.

The processes are sampled until they end, so the last tenth of a second of each may be missing; the
last line says how much that is, against what the control group has counted.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from bench.contestants import LakeloadSync
from bench.data import bench_dir, data_set
from bench.lake import Lake, running_lake
from bench.measure import measure

SAMPLE_SECONDS = 0.1
COMMAND, JAVA = "lakeload", "spark-submit and Java"
DRIVER, FORKER, WORKERS = "the driver's Python", "what workers are forked from", "Python workers"
PROCESSES = (COMMAND, JAVA, DRIVER, FORKER, WORKERS)
_DAEMON = "worker_daemon"
Profile = dict[str, float]
"""CPU seconds of each kind of process, and of the whole tree as ''."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, a column for each form of files without and with an AppCDS archive."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    rows = parser.parse_args(arguments).rows
    bench_dir().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="profile-", dir=bench_dir()))
    columns: dict[str, Profile] = {}
    try:
        with running_lake(scratch / "aws") as lake:
            for form in ("CSV", "PARQUET"):
                for archive in (False, True):
                    name = f"{form}, archive" if archive else form
                    columns[name] = _profile(lake, scratch / name, form, rows, archive=archive)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("| process | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for process in PROCESSES:
        cells = [f"{profile.get(process, 0):.1f}" for profile in columns.values()]
        print(f"| {process} | {' | '.join(cells)} |")
    # The whole tree is in the sum, too.
    missed = [f"{2 * each[''] - sum(each.values()):.1f}" for each in columns.values()]
    print(f"| not sampled | {' | '.join(missed)} |")
    return 0


def _profile(lake: Lake, folder: Path, form: str, rows: int, *, archive: bool) -> Profile:
    folder.mkdir()
    sync = LakeloadSync(lake, "2g", 2, archive=archive, reader="DIRECT")
    prepared = sync.prepare(form, data_set(rows), folder)
    with _sampled() as seen:
        cost = measure(
            prepared.command,
            environment=prepared.environment,
            folder=folder,
            log=folder / "output.log",
            memory=False,
        )
    if cost.status != 0:
        sys.exit((folder / "output.log").read_text(errors="replace")[-3000:])
    lake.clear()
    found: Profile = {"": cost.cpu}
    for process, seconds in seen.values():
        found[process] = found.get(process, 0) + seconds
    return found


@contextlib.contextmanager
def _sampled() -> Iterator[dict[int, tuple[str, float]]]:
    """Sample descendants that start from now on: their kind and CPU seconds, by process id."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    seen: dict[int, tuple[str, float]] = {}
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(SAMPLE_SECONDS):
            for child in psutil.Process().children(recursive=True):
                if child.pid not in before:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        times = child.cpu_times()
                        # A process that has just ended has no command any more.
                        kind = _kind(child) or seen.get(child.pid, (COMMAND, 0.0))[0]
                        seen[child.pid] = (kind, times.user + times.system)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def _kind(process: psutil.Process) -> str:
    words = " ".join(process.cmdline())
    if not words:
        return ""
    if _DAEMON in words:
        parent = process.parent()
        forked = parent is not None and _DAEMON in " ".join(parent.cmdline())
        return WORKERS if forked else FORKER
    if "org.apache.spark" in words or "spark-submit" in words:
        return JAVA
    return DRIVER if "run_job.py" in words else COMMAND


if __name__ == "__main__":
    sys.exit(main())
