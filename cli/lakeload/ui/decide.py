"""What voiding or accepting a job means: on the screen, or as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.parquet.void_accept import Case, Decision
from lakeload.ui.amounts import counted
from lakeload.ui.errors import error_json
from lakeload.ui.troubles import say, show_trouble
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.formats.parquet.log.records import StagedFile

KEYS_SHOWN = 20


def to_document(
    cases: Sequence[Case], decision: Decision, code: ExitCode, *, done: bool
) -> dict[str, Any]:
    """Return the JSON document of `recover --void` and `--accept`; keys are only ever added."""
    return {
        "exit_code": int(code),
        "decision": decision,
        "done": done,
        "tables": [_document(case) for case in cases],
    }


def show_text(
    cases: Sequence[Case],
    decision: Decision,
    command: str,
    out: Console,
    err: Console,
    *,
    done: bool,
) -> None:
    """Write each table with what is lost and what becomes of the rest to stdout.

    `command` is what to type to have it done.
    """
    for case in cases:
        head = f"job {case.job_id} of pipeline {case.pipeline}, record {case.number}"
        out.print(
            Text.assemble((printable(case.target), "bold"), f"  {printable(head)}"), soft_wrap=True
        )
        _files(out, "lost", case.lost, case.lost_rows, "red")
        _files(out, _fate(case, decision, done=done), case.left, case.left_rows, "yellow")
        if case.error is not None:
            show_trouble(err, case.target, case.error)
    if not done:
        say(err, "note", f"nothing was written; to do it: `{command}`")


def _fate(case: Case, decision: Decision, *, done: bool) -> str:
    """Say what becomes of the files that are not lost."""
    if decision == "accept":
        return "kept" if done and case.error is None else "to be kept"
    return "removed" if done and case.error is None else "to be removed"


def _files(out: Console, fate: str, files: tuple[StagedFile, ...], rows: int, style: str) -> None:
    amount = f"{counted(len(files), 'file')}, {counted(rows, 'row')}"
    out.print(Text.assemble("  ", (f"{fate}:", style), f" {amount}"), soft_wrap=True)
    for file in files[:KEYS_SHOWN]:
        out.print(Text(f"    {printable(file.key)}", "dim"), soft_wrap=True)
    if len(files) > KEYS_SHOWN:
        out.print(Text(f"    and {len(files) - KEYS_SHOWN:,} more", "dim"), soft_wrap=True)


def _document(case: Case) -> dict[str, Any]:
    return {
        "target": case.target,
        "number": case.number,
        "pipeline": case.pipeline,
        "job_id": case.job_id,
        "lost_rows": case.lost_rows,
        "lost": [file.key for file in case.lost],
        "left_rows": case.left_rows,
        "left": [file.key for file in case.left],
        "outcome": case.outcome,
        "error": error_json(case.error) if case.error else None,
    }
