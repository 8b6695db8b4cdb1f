"""Problems of documents as workflow commands of GitHub Actions, which become annotations.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands describes them;
GitHub shows ten annotations of each severity for a step, and all of them in its log.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lakeload.config.problems import Problem, Severity
from lakeload.config.secret_names import printable
from lakeload.ui import console
from lakeload.ui.problems import summary

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
