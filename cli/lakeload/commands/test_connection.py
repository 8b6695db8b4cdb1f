"""`lakeload test-connection`: what a load needs from AWS, asked one thing at a time."""

# ruff: noqa: PT028 - a command, not a test

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lakeload.commands.options import Output
from lakeload.config.load import load_destination
from lakeload.config.spec import destination_spec
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m)?", re.ASCII)
_FACTORS = {"": 1, "s": 1, "m": 60}
MIN_TIMEOUT, MAX_DURATION = 1.0, 3600.0


def test_connection(
    file: Annotated[Path, typer.Argument(help="A destination, or a pipeline for its destination.")],
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Leave out the probes that write.")
    ] = False,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="PROBE", help="Take a probe for granted.")
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Be done within this time.")
    ] = "30s",
    wait: Annotated[
        str,
        typer.Option(
            "--wait",
            metavar="TIME",
            help="Repeat a denied AssumeRole this long: IAM takes up to a minute to know a role.",
        ),
    ] = "0s",
    output: Output = OutputFormat.TEXT,
) -> None:
    """Test identity, role, bucket and permissions, and say what to mend.

    Writes and removes objects of its own below `_lakeload/probe/` of the prefix,
    and a Glue database of its own where the destination uses Glue.
    Exit code 0 when every required probe passed, 3 otherwise.
    """
    from lakeload.probes.connection import ConnectionOptions, ConnectionTest
    from lakeload.ui.checks import ChecksView, show_interrupted, show_verdict

    destination = destination_spec(load_destination(file, os.environ))
    options = ConnectionOptions(
        timeout=_seconds("--timeout", timeout, least=MIN_TIMEOUT),
        wait=_seconds("--wait", wait),
        read_only=read_only,
        skip=frozenset(skip or ()),
    )
    test = ConnectionTest(destination, options)
    try:
        with _stoppable(), ChecksView(test.probes) as view, closing(test.run()) as results:
            for result in results:
                view.add(result)
    except KeyboardInterrupt:
        show_interrupted(test.verdict())
        raise
    verdict = test.verdict()
    show_verdict(verdict, destination)
    if not verdict.passed:
        raise typer.Exit(ExitCode.REFUSED)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the test as Ctrl-C does: after it has cleaned up."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    # nohup starts us with SIGHUP ignored, and it has to stay so.
    changed = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, old in changed.items():
            signal.signal(number, old)


def _seconds(option: str, text: str, *, least: float = 0.0) -> float:
    """Return the seconds of `90`, `90s` or `2m`."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _FACTORS[match[2] or ""] if match else -1.0
    if not least <= seconds <= MAX_DURATION:
        raise InvalidInput(
            f"`{option} {text}` is not a time from {least:g} s to {MAX_DURATION / 60:g} m",
            hint="write it as `30s` or `2m`",
        )
    return seconds
