"""The longest silence of a command at a terminal: `python -m tests.silence COMMAND…`.

The command runs at a pseudo terminal of its own. Output that differs from the one before ends a
silence, and the longest ones are reported with what was shown before them. No test: the times are
those of the machine.
"""

from __future__ import annotations

import os
import pty
import re
import sys
import time
from dataclasses import dataclass

SHOWN = 3
"""Silences that are reported."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x00-\x08]")


@dataclass(frozen=True)
class Silence:
    """How long nothing was shown, since when, and the last words before."""

    seconds: float
    since: float
    before: str


def silences(command: list[str]) -> tuple[list[Silence], int]:
    """Run a command; return its silences, longest first, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
        os.execvp(command[0], command)  # noqa: S606 - the command that was asked for
    started = last = time.monotonic()
    before = shown = ""
    ended: list[Silence] = []
    while True:
        try:
            output = os.read(terminal, 65536)
        # How Linux reports the end of a pseudo terminal.
        except OSError:
            output = b""
        now = time.monotonic()
        text = _CONTROL.sub("", output.decode(errors="replace"))
        # A display that only shows again what it has shown does not move.
        if output and text == shown:
            continue
        shown = text
        ended.append(Silence(now - last, last - started, before))
        if not output:
            break
        last = now
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        before = lines[-1] if lines else before
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return sorted(ended, key=lambda silence: -silence.seconds), status


def main() -> None:
    """Report the longest silences; the exit code is that of the command."""
    found, status = silences(sys.argv[1:])
    for silence in found[:SHOWN]:
        line = f"{silence.seconds:5.1f} s from {silence.since:.1f} s, after {silence.before!r}\n"
        sys.stdout.write(line)
    sys.exit(status)


if __name__ == "__main__":
    main()
