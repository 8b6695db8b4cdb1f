"""`python -m tests.faults`: every layer, one after the other, and one table of what they did."""

from __future__ import annotations

import subprocess
import sys

LAYERS = (
    "tests.faults.protocol",
    "tests.faults.product",
    "tests.faults.iceberg",
    "tests.faults.databases",
    "tests.faults.inputs",
    "tests.faults.rounds",
)


def main() -> int:
    """Run all layers; 1 when one found a violation. Each prints the seed of what it ran."""
    tables: list[str] = []
    good = True
    for layer in LAYERS:
        code, lines = _run([sys.executable, "-m", layer])
        good = good and code == 0
        tables += _table(lines)[bool(tables) :]
    _say("\n" + "\n".join(tables))
    _say("nothing was violated" if good else "VIOLATED: the seeds are above")
    return 0 if good else 1


def _run(command: list[str]) -> tuple[int, list[str]]:
    """Run a layer, show what it writes, and return it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        _say(line.rstrip("\n"))
        lines.append(line.rstrip("\n"))
    return process.wait(), lines


def _table(lines: list[str]) -> list[str]:
    """Return the head and the rows of a layer's table: what ends in three numbers."""
    start = next((n for n, line in enumerate(lines) if line.startswith("class ")), len(lines))
    rows = [line for line in lines[start + 1 :] if line.split()[-3:] and _numbers(line)]
    return [*lines[start : start + 1], *rows]


def _numbers(line: str) -> bool:
    words = line.split()
    return len(words) >= 5 and all(word.isdigit() for word in words[-4:])


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
