"""Servers that are processes: waiting until they answer, and ending them for certain."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE_SECONDS = 90
"""They take a second or fifteen on an idle machine; the rest is for a busy one."""


@contextmanager
def server(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, ready: str
) -> Iterator[None]:
    """Run `command` in `folder` until the block ends; enter it when `ready`, a URL, answers.

    Raises `RuntimeError` with the end of its log when it does not come up.
    """
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until_ready(process, ready, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(url: str) -> bool:
    """Return whether anything answers at `url`, a refusal included."""
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def wait_until_ready(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    """Return when `ready`, a URL, answers. Raises `RuntimeError` with the end of the log."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if answers(ready):
            return
        time.sleep(0.05)
    end = log.read_text(errors="replace")[-2000:]
    raise RuntimeError(f"`{process.args!r}` does not answer at {ready}:\n{end}")
