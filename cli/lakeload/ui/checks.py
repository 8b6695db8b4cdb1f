"""Checks of this machine and of a connection: a table on a terminal, plain lines, or JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text
from typing_extensions import TypedDict

from lakeload.checks import CheckStatus, Verdict
from lakeload.documents.named_files import NamedFiles
from lakeload.machine.doctor.model import CheckResult
from lakeload.probes.runner import ConnectionVerdict, Failure, Permission, Probe, ProbeResult
from lakeload.ui import console
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import docs_link
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.sizes import counted

MARKS = {
    CheckStatus.PASSED: ("✓", "green"),
    CheckStatus.WARNING: ("!", "yellow"),
    CheckStatus.FAILED: ("✗", "red"),
    CheckStatus.SKIPPED: ("-", "dim"),
}
FINDINGS = {CheckStatus.PASSED: "ok", CheckStatus.FAILED: "problem"}
"""What `doctor` calls a status that the connection test has another word for."""
_INDENT = "    "
_HARD_SPACE = "\xa0"
_READABLE = 100
"""Columns beyond which a paragraph is hard to read."""


class FailureDocument(TypedDict):
    """Why a check failed. `statement` is the IAM statement that grants what was denied."""

    message: str
    code: str
    status: int | None
    request_id: str | None
    causes: list[str]
    hint: str | None
    docs: str
    statement: dict[str, Any] | None


class ProbeDocument(TypedDict):
    """A check of a connection."""

    name: str
    proves: str
    level: str
    status: str
    milliseconds: int
    action: str | None
    resource: str | None
    also_needs: list[Permission]
    detail: str | None
    failure: FailureDocument | None


class ConnectionDocument(TypedDict):
    """`test-connection --output json`."""

    status: str
    bucket: str
    prefix: str
    region: str
    role_arn: str | None
    seconds: float
    probes: list[ProbeDocument]
    left_behind: list[str]


class FindingDocument(TypedDict):
    """A check of this machine. `command` is the line that fixes what it found."""

    name: str
    status: str
    found: str | None
    why: str | None
    command: str | None


class DoctorDocument(TypedDict):
    """`doctor --output json`."""

    status: str
    file: str | None
    seconds: float
    exit_code: int
    findings: list[FindingDocument]


def proves(result: ProbeResult) -> str:
    """Return what the probe proves and what it found."""
    return result.probe.proves + (f": {result.detail}" if result.detail else "")


def milliseconds(result: ProbeResult) -> str:
    """Return how long the probe took; '' for one that did not run."""
    return "" if result.status is CheckStatus.SKIPPED else f"{result.milliseconds} ms"


def line(result: ProbeResult, name_width: int) -> str:
    """Return the result for a pipe: status and name begin its first line."""
    took = milliseconds(result).replace(" ", _HARD_SPACE)
    head = f"{result.status:8} {result.probe.name:{name_width}} "
    return _wrapped(proves(result) + (f", {took}" if took else ""), head, " " * len(head))


def paragraph(result: ProbeResult, failure: Failure) -> Text:
    """What AWS said, what the probe needs, why it may fail, what to do and what would grant it."""
    mark, style = MARKS[result.status]
    title = f"{mark} {result.probe.name}"
    told = _wrapped(f": {failure.message}", title, _INDENT)
    text = Text.assemble("\n", (title, f"bold {style}"), told[len(title) :])
    if failure.request_id:
        text.append(f"\n{_INDENT}request id: {failure.request_id}", "dim")
    for number, needed in enumerate(_permissions(result, failure)):
        # A catalog's privileges have no service before a colon.
        kind = "IAM action" if ":" in result.probe.action else "privilege"
        text.append("\n" + _wrapped(needed, _INDENT + ("also: " if number else f"{kind}: ")))
    if failure.causes:
        text.append(f"\n{_INDENT}likely causes, the likeliest first:")
        for number, cause in enumerate(failure.causes, 1):
            text.append("\n" + _wrapped(cause, f"{_INDENT}  {number}. "))
    if failure.hint:
        head = f"{_INDENT}hint: "
        text.append(f"\n{head}", "green")
        text.append(_wrapped(failure.hint, head)[len(head) :])
    if failure.statement:
        text.append(f"\n{_INDENT}{_granted_by(failure.statement)}")
        text.append("".join(f"\n{_INDENT}  {row}" for row in statement_lines(failure.statement)))
    return text


def whole_policy(files: NamedFiles) -> Text:
    """Return the command that writes everything the destination needs."""
    return Text(f"\nall that is needed, as policies: {files.command('policy')}")


def left_behind(verdict: ConnectionVerdict) -> list[Text]:
    """Return what the test could not remove."""
    return [
        Text("\n" + _wrapped(f"{what} could not be removed; delete it", "left behind: "), "yellow")
        for what in verdict.left_behind
    ]


def conclusion(
    verdict: ConnectionVerdict, destination: DestinationSpec, *, one_line: bool = False
) -> Text:
    """Say how the test ended; `one_line` whatever its length, with what is left behind."""
    place = f"s3://{destination.bucket}/{destination.prefix}".rstrip("/")
    counts = ", ".join(
        f"{len(found)} {status}" for status in CheckStatus if (found := verdict.with_status(status))
    )
    tail = f"{place}: {counts} in {verdict.seconds:.1f} s"
    if one_line and verdict.left_behind:
        tail += f"; left behind: {', '.join(verdict.left_behind)}"
    if verdict.passed:
        head, style, rest = "connection passed", "bold green", f" {tail}"
    else:
        first = verdict.with_status(CheckStatus.FAILED)[0]
        code = first.failure.code if first.failure else ""
        head, style = "connection failed", "bold red"
        rest = f" at {first.probe.name} ({code}); {tail}"
    told = head + rest if one_line else _wrapped(rest.lstrip(), f"{head} ", _INDENT)
    return Text.assemble((head, style), told[len(head) :])


def statement_lines(statement: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of an IAM statement: one for each element, and for each of several ARNs."""
    last = len(statement) - 1
    yield "{"
    for number, (name, value) in enumerate(statement.items()):
        comma = "," if number < last else ""
        if isinstance(value, list):
            yield f'  "{name}": ['
            for position, item in enumerate(value, 1):
                yield f"    {json.dumps(item)}{',' if position < len(value) else ''}"
            yield f"  ]{comma}"
        else:
            yield f'  "{name}": {json.dumps(value)}{comma}'
    yield "}"


def _granted_by(statement: Mapping[str, object]) -> str:
    if str(statement.get("Action", "")).startswith(("sts:", "secretsmanager:", "ssm:")):
        return "the base identity's own policy needs this statement:"
    return "this statement in a policy of the role or user grants it:"


def _permissions(result: ProbeResult, failure: Failure) -> Iterator[str]:
    """Yield what the probe needs of IAM, where a policy may have decided."""
    probe = result.probe
    if not probe.action or failure.status is None:
        return
    yield f"{probe.action} on {probe.resource}"
    for other in probe.also:
        yield f"{other.action} on {other.resource}"


def _wrapped(text: str, first: str, rest: str | None = None) -> str:
    """Wrap between words to the width of stdout; what is too long for a line stays whole.

    What follows the first line is indented by `rest`, by default as far as `first` reaches.
    """
    lines = textwrap.wrap(
        text,
        max(40, min(console.out.width, _READABLE)),
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines or [first]).replace(_HARD_SPACE, " ")


def _not_asked(names: Sequence[str]) -> str:
    """Say in one line which checks nobody could make after what failed."""
    checks = "1 check was" if len(names) == 1 else f"{len(names)} checks were"
    return f"{checks} skipped, because of the failures: {', '.join(names)}"


class ChecksView:
    """Shows results as they come: a live table on a terminal, one line each elsewhere.

    What AWS and documents say is text, never markup.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._results: list[ProbeResult] = []
        self._name_width = max((len(probe.name) for probe in probes), default=0)
        terminal = _terminal()
        self._spinner = Spinner("dots")
        self._ended = False
        self._lines = not console.silent() and not terminal
        self._live = (
            Live(console=console.out, get_renderable=self._table, refresh_per_second=8)
            if terminal and not console.silent()
            else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended = True
        if self._live:
            self._live.stop()
        elif self._lines and self._blocked():
            head = f"{CheckStatus.SKIPPED:8} "
            console.answer(_wrapped(_not_asked(self._blocked()), head, " " * len(head)))

    def add(self, result: ProbeResult) -> None:
        """Show one result."""
        self._results.append(result)
        if self._lines and not result.blocked_by:
            console.answer(line(result, self._name_width))

    def _table(self) -> Table:
        table = _table()
        table.add_column(justify="right", no_wrap=True)
        for result in self._results:
            if result.blocked_by:
                continue
            mark, style = MARKS[result.status]
            told = Text(proves(result), "dim" if result.status is CheckStatus.SKIPPED else "")
            name = Text(result.probe.name, style)
            table.add_row(Text(mark, style), name, told, milliseconds(result))
        for number, probe in enumerate(self._probes[len(self._results) :]):
            ahead = self._spinner if number == 0 and not self._ended else Text(" ")
            table.add_row(ahead, Text(probe.name, "dim"), Text(probe.proves, "dim"), "")
        if blocked := self._blocked():
            table.add_row("-", "", Text(_not_asked(blocked), "dim"), "")
        return table

    def _blocked(self) -> list[str]:
        return [result.probe.name for result in self._results if result.blocked_by]


def show_verdict(
    verdict: ConnectionVerdict, destination: DestinationSpec, files: NamedFiles
) -> None:
    """Explain every failure and warning, and say in one line how the test ended.

    `files` are for the command that writes its policies.
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
        console.answer(whole_policy(files))
    for text in left_behind(verdict):
        console.answer(text)
    console.answer("")
    console.answer(conclusion(verdict, destination))


def show_interrupted(verdict: ConnectionVerdict) -> None:
    """Name on stderr what an interrupted test could not remove."""
    for text in left_behind(verdict):
        console.note(text)


def verdict_json(verdict: ConnectionVerdict, destination: DestinationSpec) -> ConnectionDocument:
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


def _result_json(result: ProbeResult) -> ProbeDocument:
    probe, failure = result.probe, result.failure
    return {
        "name": probe.name,
        "proves": probe.proves,
        "level": str(probe.level),
        "status": str(result.status),
        "milliseconds": result.milliseconds,
        "action": probe.action or None,
        "resource": probe.resource or None,
        "also_needs": to_json(probe.also),
        "detail": result.detail or None,
        "failure": None
        if failure is None
        else {
            "message": failure.message,
            "code": failure.code,
            "status": failure.status,
            "request_id": failure.request_id,
            "causes": list(failure.causes),
            "hint": failure.hint,
            "docs": docs_link(failure.code),
            "statement": None if failure.statement is None else dict(failure.statement),
        },
    }


def show_findings(report: Verdict[CheckResult], file: Path | None, exit_code: int) -> None:
    """Show every finding with what mends it, and in one line how the machine is.

    With -q only what is not in order. What variables and files say is text, never markup.
    """
    if console.json_wanted():
        console.show_json(findings_json(report, file, exit_code))
        return
    unusual = (CheckStatus.WARNING, CheckStatus.FAILED)
    shown = [one for one in report.results if not console.quiet() or one.status in unusual]
    if _terminal():
        table = _table()
        for finding in shown:
            mark, style = MARKS[finding.status]
            table.add_row(Text(mark, style), Text(finding.name, style), _finding(finding))
        console.out.print(table)
    else:
        for finding in shown:
            console.answer(_lines(finding))
    console.answer(_readiness(report, file))


def findings_json(report: Verdict[CheckResult], file: Path | None, code: int) -> DoctorDocument:
    """Return the documented JSON form (docs/doctor.md); fields are only ever added."""
    return {
        "status": "ok" if report.passed else "problem",
        "file": None if file is None else str(file),
        "seconds": round(report.seconds, 3),
        "exit_code": code,
        "findings": [
            {
                "name": finding.name,
                "status": word(finding),
                "found": finding.found or None,
                "why": finding.why or None,
                "command": finding.command or None,
            }
            for finding in report.results
        ],
    }


def _terminal() -> bool:
    return console.out.is_terminal and not console.out.is_dumb_terminal


def _table() -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False, expand=False)
    table.add_column(width=1)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    return table


def word(finding: CheckResult) -> str:
    """Return what `doctor` calls the status of a finding."""
    return FINDINGS.get(finding.status, finding.status.value)


def _finding(finding: CheckResult) -> Text:
    told = Text(finding.found, "dim" if finding.status is CheckStatus.SKIPPED else "")
    if finding.why:
        told.append(f"\n{finding.why}", "dim")
    if finding.command:
        told.append("\n→ ", "green").append(finding.command, "bold")
    return told


def _lines(finding: CheckResult) -> str:
    """One line that `grep` finds by status or name, and what belongs to it indented below."""
    lines = [f"{word(finding):8} {finding.name:16} {finding.found}"]
    if finding.why:
        lines.append(f"{'':25} {finding.why}")
    if finding.command:
        lines.append(f"{'':25} → {finding.command}")
    return "\n".join(lines)


def _readiness(report: Verdict[CheckResult], file: Path | None) -> Text:
    statuses = (CheckStatus.FAILED, CheckStatus.WARNING, CheckStatus.PASSED)
    problems, warnings, in_order = (len(report.with_status(status)) for status in statuses)
    counts = f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}, {in_order} ok"
    tail = f"{f' for `{file}`' if file else ''}: {counts} in {report.seconds:.1f} s"
    head = ("problems found", "bold red") if problems else ("this machine is ready", "bold green")
    return Text.assemble(head, tail)
