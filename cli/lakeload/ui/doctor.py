"""What `doctor` found: a table on a terminal, plain lines elsewhere, or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from lakeload.formats.amounts import counted
from lakeload.machine.doctor.model import Diagnosis, Finding, Status
from lakeload.ui import console

_MARKS = {
    Status.OK: ("✓", "green"),
    Status.WARNING: ("!", "yellow"),
    Status.PROBLEM: ("✗", "red"),
    Status.SKIPPED: ("-", "dim"),
}


def show_diagnosis(diagnosis: Diagnosis, file: Path | None, exit_code: int) -> None:
    """Show every finding with what mends it, and in one line how the machine is.

    With -q only what is not in order. What variables and files say is text, never markup.
    """
    if console.json_wanted():
        console.show_json(diagnosis_json(diagnosis, file, exit_code))
        return
    shown = [
        finding
        for finding in diagnosis.findings
        if not console.quiet() or finding.status in (Status.WARNING, Status.PROBLEM)
    ]
    if console.out.is_terminal and not console.out.is_dumb_terminal:
        console.out.print(_table(shown))
    else:
        for finding in shown:
            console.answer(_lines(finding))
    console.answer(_conclusion(diagnosis, file))


def diagnosis_json(diagnosis: Diagnosis, file: Path | None, exit_code: int) -> dict[str, Any]:
    """Return the documented JSON form (docs/doctor.md); fields are only ever added."""
    return {
        "status": "ok" if diagnosis.healthy else "problem",
        "file": None if file is None else str(file),
        "seconds": round(diagnosis.seconds, 3),
        "exit_code": exit_code,
        "findings": [
            {
                "name": finding.name,
                "status": str(finding.status),
                "found": finding.found,
                "why": finding.why or None,
                "command": finding.command or None,
            }
            for finding in diagnosis.findings
        ],
    }


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, padding=(0, 1), show_header=False, expand=False)
    table.add_column(width=1)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for finding in findings:
        mark, style = _MARKS[finding.status]
        told = Text(finding.found, "dim" if finding.status is Status.SKIPPED else "")
        if finding.why:
            told.append(f"\n{finding.why}", "dim")
        if finding.command:
            told.append("\n→ ", "green").append(finding.command, "bold")
        table.add_row(Text(mark, style), Text(finding.name, style), told)
    return table


def _lines(finding: Finding) -> str:
    """One line that `grep` finds by status or name, and what belongs to it indented below."""
    lines = [f"{finding.status:8} {finding.name:16} {finding.found}"]
    if finding.why:
        lines.append(f"{'':25} {finding.why}")
    if finding.command:
        lines.append(f"{'':25} → {finding.command}")
    return "\n".join(lines)


def _conclusion(diagnosis: Diagnosis, file: Path | None) -> Text:
    problems = len(diagnosis.with_status(Status.PROBLEM))
    warnings = len(diagnosis.with_status(Status.WARNING))
    in_order = len(diagnosis.with_status(Status.OK))
    counts = f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}, {in_order} ok"
    tail = f"{counts} in {diagnosis.seconds:.1f} s"
    job = f" for `{file}`" if file else ""
    if problems:
        return Text.assemble(("this machine lacks something", "bold red"), f"{job}: {tail}")
    return Text.assemble(("this machine is ready", "bold green"), f"{job}: {tail}")
