"""`python -m bench.whole`: every benchmark, one after the other; what `make bench` runs.

Each prints its bars as reached or missed. Its report is in bench/results afterwards. The status is
1 if a bar was missed, or if a benchmark failed. Names select some: `python -m bench.whole tiny`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import facts
from bench.report import PACKAGES, free_path

RESULTS = Path(__file__).parent / "results"
SHAPES = ("text", "wide", "few", "nested")
PARTS = {
    "files": ["bench"],
    **{
        name: ["bench", "--shape", name, "--rows", "300k", "--runs", "1", "--scaling", "0"]
        for name in SHAPES
    },
    **{name: [f"bench.{name}"] for name in ("tiny", "tables", "postgres", "iceberg", "cluster")},
}
"""The module of each benchmark and its arguments. Those of files write their reports themselves."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; 0 when all bars were reached."""
    parser = argparse.ArgumentParser(prog="python -m bench.whole", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PARTS))
    names = parser.parse_args(arguments).names or list(PARTS)
    if unknown := sorted(set(names) - set(PARTS)):
        parser.error(f"unknown: {', '.join(unknown)}")
    return max(list(map(_run, names)))


def _run(name: str) -> int:
    command = [sys.executable, "-m", *PARTS[name]]
    shown = f"python {' '.join(command[1:])}"
    print(shown, flush=True)
    printed: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - it was asked for above
        for line in process.stdout:
            printed.append(line)
            print(line, end="", flush=True)
    if PARTS[name][0] != "bench":
        day = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        lines = [f"# `{shown}`", "", f"{day}, status {process.returncode}.", "", *facts(PACKAGES)]
        text = "\n".join([*lines, "", "```", *"".join(printed).splitlines(), "```", ""])
        path = free_path(RESULTS, name)
        path.write_text(text, encoding="utf-8")
        print(f"written to {path}", flush=True)
    return int(process.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
