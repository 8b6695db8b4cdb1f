"""Report of `doctor`: a table on a terminal, plain lines elsewhere, or JSON."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from lakeload.machine.doctor.model import CheckResult, CheckStatus, DoctorReport
from lakeload.ui import console
from lakeload.ui.json_documents import DoctorDocument
from lakeload_jobs.core.sizes import counted

_MARKS = {
    CheckStatus.OK: ("✓", "green"),
    CheckStatus.WARNING: ("!", "yellow"),
    CheckStatus.PROBLEM: ("✗", "red"),
    CheckStatus.SKIPPED: ("-", "dim"),
}


def show_report(report: DoctorReport, file: Path | None, exit_code: int) -> None:
    """Show every finding with what mends it, and in one line how the machine is.

    With -q only what is not in order. What variables and files say is text, never markup.
    """
    if console.json_wanted():
        console.show_json(report_json(report, file, exit_code))
        return
    shown = [
        finding
        for finding in report.findings
        if not console.quiet() or finding.status in (CheckStatus.WARNING, CheckStatus.PROBLEM)
    ]
    if console.out.is_terminal and not console.out.is_dumb_terminal:
        console.out.print(_table(shown))
    else:
        for finding in shown:
            console.answer(_lines(finding))
    console.answer(_conclusion(report, file))


def report_json(report: DoctorReport, file: Path | None, exit_code: int) -> DoctorDocument:
    """Return the documented JSON form (docs/doctor.md); fields are only ever added."""
    return {
        "status": "ok" if report.healthy else "problem",
        "file": None if file is None else str(file),
        "seconds": round(report.seconds, 3),
        "exit_code": exit_code,
        "findings": [
            {
                "name": finding.name,
                "status": finding.status.value,
                "found": finding.found or None,
                "why": finding.why or None,
                "command": finding.command or None,
            }
            for finding in report.findings
        ],
    }


def _table(findings: list[CheckResult]) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False, expand=False)
    table.add_column(width=1)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for finding in findings:
        mark, style = _MARKS[finding.status]
        told = Text(finding.found, "dim" if finding.status is CheckStatus.SKIPPED else "")
        if finding.why:
            told.append(f"\n{finding.why}", "dim")
        if finding.command:
            told.append("\n→ ", "green").append(finding.command, "bold")
        table.add_row(Text(mark, style), Text(finding.name, style), told)
    return table


def _lines(finding: CheckResult) -> str:
    """One line that `grep` finds by status or name, and what belongs to it indented below."""
    lines = [f"{finding.status:8} {finding.name:16} {finding.found}"]
    if finding.why:
        lines.append(f"{'':25} {finding.why}")
    if finding.command:
        lines.append(f"{'':25} → {finding.command}")
    return "\n".join(lines)


def _conclusion(report: DoctorReport, file: Path | None) -> Text:
    problems = len(report.with_status(CheckStatus.PROBLEM))
    warnings = len(report.with_status(CheckStatus.WARNING))
    in_order = len(report.with_status(CheckStatus.OK))
    counts = f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}, {in_order} ok"
    tail = f"{counts} in {report.seconds:.1f} s"
    job = f" for `{file}`" if file else ""
    if problems:
        return Text.assemble(("problems found", "bold red"), f"{job}: {tail}")
    return Text.assemble(("this machine is ready", "bold green"), f"{job}: {tail}")
