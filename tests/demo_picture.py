"""The picture of the README, docs/demo.svg: parts of what a real `lakeload demo` prints.

`python -m tests.demo_picture` runs the demo on a terminal of its own and draws it, in a minute.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
COLUMNS = 84
PARTS = (
    (r"\$ lakeload sync pipeline.yml --job-id monday", r"^s3://\S+/orders/"),
    (r"^Appended: every row names the job", r"✓ The demo took"),
)
"""What is shown: each part from a line to another, both included."""

_PROGRESS = re.compile(r"^\w+ +(waiting|\w[\w ]+ +\d+:\d\d$)|^. (loading|starting Spark) · ")
"""Lines of the progress, which a terminal draws again and again."""


def run_demo() -> str:
    """Return what the demo prints on a terminal, with its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    process = subprocess.Popen(
        [sys.executable, "-m", "lakeload", "demo"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    chunks = []
    try:
        while chunk := os.read(ours, 65536):
            chunks.append(chunk)
    except OSError:  # The end of a terminal on Linux.
        pass
    if process.wait():
        raise SystemExit(b"".join(chunks).decode(errors="replace"))
    return b"".join(chunks).decode()


def shown(output: str) -> list[str]:
    """Return the lines of the picture."""
    lines = [re.sub(r"\x1b\[\d*[A-HJKhl]|\x1b\[\?\d+[hl]", "", line) for line in output.split("\n")]
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    plain = [Text.from_ansi(line).plain for line in lines]
    found: list[str] = []
    for first, last in PARTS:
        begin = next(i for i, line in enumerate(plain) if re.search(first, line))
        end = next(i for i in range(begin, len(plain)) if re.search(last, plain[i]))
        part = zip(lines[begin : end + 1], plain[begin : end + 1], strict=True)
        found += ["", *(line for line, text in part if not _PROGRESS.search(text.rstrip()))]
    return found[1:]


def draw(lines: list[str]) -> str:
    """Return the picture; it needs no font and no other file."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    for line in lines:
        console.print(Text.from_ansi(line), overflow="crop", no_wrap=True)
    template = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="lakeload demo", code_format=template, unique_id="demo")


if __name__ == "__main__":
    PICTURE.write_text(draw(shown(run_demo())), encoding="utf-8")
