"""The connection test on the screen: a live table, plain lines, one line, or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.live import Live
from rich.table import Table
from rich.text import Text

from lakeload.probes.model import Probe, ProbeResult, Status, Verdict
from lakeload.ui import console
from lakeload.ui.check_text import (
    MARKS,
    conclusion,
    left_behind,
    line,
    milliseconds,
    paragraph,
    proves,
    whole_policy,
)
from lakeload_jobs.contract.spec import DestinationSpec


class ChecksView:
    """Shows results as they come: a live table on a terminal, one line each elsewhere.

    What AWS and documents say is text, never markup.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._results: list[ProbeResult] = []
        self._name_width = max((len(probe.name) for probe in probes), default=0)
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
            console.answer(line(result, self._name_width))

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 1), show_header=False, expand=False)
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1, overflow="fold")
        table.add_column(justify="right", no_wrap=True)
        for result in self._results:
            mark, style = MARKS[result.status]
            told = Text(proves(result), "dim" if result.status is Status.SKIPPED else "")
            name = Text(result.probe.name, style)
            table.add_row(Text(mark, style), name, told, milliseconds(result))
        for number, probe in enumerate(self._probes[len(self._results) :]):
            ahead = Text("…" if number == 0 else " ")
            table.add_row(ahead, Text(probe.name, "dim"), Text(probe.proves, "dim"), "")
        return table


def show_verdict(verdict: Verdict, destination: DestinationSpec, file: Path) -> None:
    """Explain every failure and warning, and say in one line how the test ended.

    `file` is the document, for the command that writes its policies.
    """
    if console.json_wanted():
        console.show_json(verdict_json(verdict, destination))
        return
    if console.quiet():
        console.answer(conclusion(verdict, destination, one_line=True))
        return
    failures = [(one, one.failure) for one in verdict.results if one.failure is not None]
    for result, failure in failures:
        console.answer(paragraph(result, failure))
    if any(failure.statement for _, failure in failures):
        console.answer(whole_policy(file))
    for text in left_behind(verdict):
        console.answer(text)
    console.answer("")
    console.answer(conclusion(verdict, destination))


def show_interrupted(verdict: Verdict) -> None:
    """Name on stderr what an interrupted test could not remove."""
    for text in left_behind(verdict):
        console.note(text)


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
        "also_needs": [{"action": one.action, "resource": one.resource} for one in probe.also],
        "detail": result.detail or None,
        "failure": failure
        and {
            "message": failure.message,
            "code": failure.code,
            "status": failure.status,
            "request_id": failure.request_id,
            "causes": list(failure.causes),
            "hint": failure.hint,
            "statement": failure.statement,
        },
    }
