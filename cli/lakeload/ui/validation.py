"""The result of `validate`, also as annotations of GitHub."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from rich.text import Text

from lakeload.config.problems import Problem, Severity, has_errors, in_order
from lakeload.config.secret_names import printable
from lakeload.documents.load import Inspection
from lakeload.ui import console
from lakeload.ui.json_documents import ValidateDocument
from lakeload.ui.problems import problems_json, problems_text, summary

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
_IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {**_IN_MESSAGES, ":": "%3A", ",": "%2C"}


def show_annotations(problems: Sequence[Problem], files: int) -> None:
    """Print one workflow command for each problem, and how many there are, on stdout."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    for problem in problems:
        console.answer(annotation(problem, Path(workspace) if workspace else None))
    if not console.quiet():
        checked = "1 file" if files == 1 else f"{files} files"
        console.answer(f"checked {checked}: {summary(problems) or 'no problems'}")


def annotation(problem: Problem, workspace: Path | None) -> str:
    """Return the workflow command for a problem; the hint follows its message on a line below."""
    properties = {"file": path_in_repository(problem.path, workspace)}
    if problem.line:
        properties |= {"line": str(problem.line), "col": str(problem.column)}
    properties["title"] = f"lakeload: {problem.code}"
    given = ",".join(f"{name}={_escaped(v, _IN_PROPERTIES)}" for name, v in properties.items())
    message = f"{problem.message}\n{problem.hint}" if problem.hint else problem.message
    return f"::{_COMMANDS[problem.severity]} {given}::{_escaped(message, _IN_MESSAGES)}"


def path_in_repository(path: str, workspace: Path | None) -> str:
    """Return a file's path from the root of its repository, which is how GitHub knows it.

    The root is the nearest folder with a `.git` (a repository may be checked out in a folder below
    `workspace`), else `workspace` itself: a checkout without git has no `.git`. The `.git` of a
    submodule or worktree is a file. A file that lies in none of them keeps its path: its annotation
    stands at the run alone.
    """
    absolute = Path(os.path.normpath(Path(path).absolute()))
    roots = [folder for folder in absolute.parents if (folder / ".git").is_dir()]
    roots += [workspace] if workspace is not None else []
    roots += [folder for folder in absolute.parents if (folder / ".git").is_file()]
    for root in roots:
        for file, folder in ((absolute, root), (absolute.resolve(), root.resolve())):
            if file.is_relative_to(folder):
                return printable(file.relative_to(folder).as_posix())
    return printable(path)


def _escaped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(char, char) for char in text)


class ValidationFormat(StrEnum):
    """Output formats of `validate`."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def show_inspections(inspections: Sequence[Inspection], output: ValidationFormat) -> None:
    """Print the answer on stdout."""
    problems = in_order([problem for item in inspections for problem in item.problems])
    if output is ValidationFormat.JSON:
        console.show_json(validation_json(inspections, problems))
        return
    if output is ValidationFormat.GITHUB:
        show_annotations(problems, len(inspections))
        return
    if problems:
        console.answer(problems_text(problems, console.out.width))
        console.answer("")
    for item in inspections:
        if not has_errors(item.problems) and not console.quiet():
            line = f"{printable(str(item.path))} is a valid {item.kind}"
            console.answer(Text(line, "green"))
    if problems:
        console.answer(Text(summary(problems), "bold"))


def validation_json(
    inspections: Sequence[Inspection], problems: Sequence[Problem]
) -> ValidateDocument:
    """Return the documented JSON answer; fields are only ever added."""
    return {
        "valid": not has_errors(problems),
        "files": [
            {
                "file": str(item.path),
                "kind": item.kind,
                "valid": not has_errors(item.problems),
            }
            for item in inspections
        ],
        "problems": problems_json(problems),
    }
