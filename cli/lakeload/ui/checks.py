"""The connection test on the screen: a live table, plain lines, one line, or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from rich.live import Live
from rich.table import Table
from rich.text import Text

from lakeload.probes.model import Failure, Probe, ProbeResult, Status, Verdict
from lakeload.ui import console
from lakeload_jobs.contract.spec import DestinationSpec

_MARKS = {
    Status.PASSED: ("✓", "green"),
    Status.WARNING: ("!", "yellow"),
    Status.FAILED: ("✗", "red"),
    Status.SKIPPED: ("-", "dim"),
}


class ChecksView:
    """Shows results as they come: a live table on a terminal, one line each elsewhere.

    What AWS and documents say is text, never markup.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._results: list[ProbeResult] = []
        silent = console.quiet() or console.json_wanted()
        terminal = console.out.is_terminal and not console.out.is_dumb_terminal
        self._lines = not silent and not terminal
        self._live = (
            Live(console=console.out, get_renderable=self._table, refresh_per_second=8)
            if terminal and not silent
            else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def add(self, result: ProbeResult) -> None:
        """Show one result."""
        self._results.append(result)
        if self._lines:
            console.answer(_line(result))

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 1), show_header=False, expand=False)
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1, overflow="fold")
        table.add_column(justify="right", no_wrap=True)
        for result in self._results:
            mark, style = _MARKS[result.status]
            told = Text(_proves(result), "dim" if result.status is Status.SKIPPED else "")
            name = Text(result.probe.name, style)
            table.add_row(Text(mark, style), name, told, _milliseconds(result))
        for number, probe in enumerate(self._probes[len(self._results) :]):
            ahead = Text("…" if number == 0 else " ")
            table.add_row(ahead, Text(probe.name, "dim"), Text(probe.proves, "dim"), "")
        return table


def show_verdict(verdict: Verdict, destination: DestinationSpec) -> None:
    """Explain every failure and warning, and say in one line how the test ended."""
    if console.json_wanted():
        console.show_json(verdict_json(verdict, destination))
        return
    if not console.quiet():
        for result in verdict.results:
            if result.failure is not None:
                console.answer(_paragraph(result, result.failure))
        for text in _left_behind(verdict):
            console.answer(text)
        console.answer("")
    console.answer(_conclusion(verdict, destination))


def show_interrupted(verdict: Verdict) -> None:
    """Name on stderr what an interrupted test could not remove."""
    for text in _left_behind(verdict):
        console.note(text)


def _left_behind(verdict: Verdict) -> list[Text]:
    return [
        Text(f"\nleft behind: {what} could not be removed; delete it", "yellow")
        for what in verdict.left_behind
    ]


def verdict_json(verdict: Verdict, destination: DestinationSpec) -> dict[str, Any]:
    """Return the documented JSON form (docs/test-connection.md); fields are only ever added."""
    return {
        "status": "passed" if verdict.passed else "failed",
        "bucket": destination.bucket,
        "prefix": destination.prefix,
        "region": destination.region,
        "role_arn": destination.credentials.role_arn,
        "seconds": round(verdict.seconds, 3),
        "probes": [_result_json(result) for result in verdict.results],
        "left_behind": list(verdict.left_behind),
    }


def _result_json(result: ProbeResult) -> dict[str, Any]:
    probe, failure = result.probe, result.failure
    return {
        "name": probe.name,
        "proves": probe.proves,
        "level": str(probe.level),
        "status": str(result.status),
        "milliseconds": result.milliseconds,
        "action": probe.action or None,
        "resource": probe.resource or None,
        "detail": result.detail or None,
        "failure": failure
        and {
            "message": failure.message,
            "code": failure.code,
            "status": failure.status,
            "request_id": failure.request_id,
            "causes": list(failure.causes),
            "hint": failure.hint,
        },
    }


def _line(result: ProbeResult) -> str:
    told = f"{result.status:8} {result.probe.name:21} {_proves(result)}"
    return told if result.status is Status.SKIPPED else f"{told}, {_milliseconds(result)}"


def _proves(result: ProbeResult) -> str:
    return result.probe.proves + (f": {result.detail}" if result.detail else "")


def _milliseconds(result: ProbeResult) -> str:
    return "" if result.status is Status.SKIPPED else f"{result.milliseconds} ms"


def _paragraph(result: ProbeResult, failure: Failure) -> Text:
    """What AWS said, what the probe needs, why it may fail, and what to do."""
    mark, style = _MARKS[result.status]
    text = Text.assemble(("\n" + f"{mark} {result.probe.name}", f"bold {style}"), ": ")
    text.append(failure.message)
    if failure.request_id:
        text.append(f"\n    request id: {failure.request_id}", "dim")
    if result.probe.action and failure.status is not None:
        needed = f"{result.probe.action} on {result.probe.resource}"
        text.append(f"\n    IAM action: {needed}")
    if failure.causes:
        text.append("\n    likely causes, the likeliest first:")
        for number, cause in enumerate(failure.causes, 1):
            text.append(f"\n      {number}. {cause}")
    if failure.hint:
        text.append("\n    hint: ", "green")
        text.append(failure.hint)
    return text


def _conclusion(verdict: Verdict, destination: DestinationSpec) -> Text:
    place = f"s3://{destination.bucket}/{destination.prefix}".rstrip("/")
    counts = ", ".join(
        f"{len(found)} {status}" for status in Status if (found := verdict.with_status(status))
    )
    tail = f"{place}: {counts} in {verdict.seconds:.1f} s"
    if verdict.passed:
        return Text.assemble(("connection passed", "bold green"), f" {tail}")
    first = verdict.with_status(Status.FAILED)[0]
    code = first.failure.code if first.failure else ""
    return Text.assemble(
        ("connection failed", "bold red"), f" at {first.probe.name} ({code}); {tail}"
    )
