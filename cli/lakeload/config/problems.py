"""Problems of a configuration file: position, message and hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lakeload_jobs.contract.errors import InvalidInput

Severity = Literal["error", "warning", "note"]


MAX_PROBLEMS = 200
"""As many problems of one document are looked at in each step; hostile ones have thousands."""


@dataclass(frozen=True)
class SourceLines:
    """One line of a document as it may be shown: secrets are masked, tabs are spaces.

    `column` counts from 1 and, like `length`, counts characters of `text`.
    """

    line: int
    text: str
    column: int
    length: int
    label: str = ""


@dataclass(frozen=True)
class Problem:
    """One finding. `line` and `column` count from 1; 0 means the file as a whole.

    `code` is a stable word for programs, `key` the setting's dotted path (`tables[0].path`).
    The last of `snippets` is the line the problem is about; those before it explain it.
    """

    severity: Severity
    code: str
    message: str
    path: str
    line: int = 0
    column: int = 0
    length: int = 0
    hint: str | None = None
    key: str = ""
    snippets: tuple[SourceLines, ...] = ()


class InvalidDocuments(InvalidInput):
    """One or more documents have errors; `problems` holds all findings, warnings included."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        errors = [problem for problem in problems if problem.severity == "error"]
        paths = list(dict.fromkeys(problem.path for problem in errors))
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        shown = ", ".join(f"`{path}`" for path in paths)
        super().__init__(
            f"{count} in {shown}", hint="`lakeload validate FILE` shows each with its line"
        )


def has_errors(problems: Iterable[Problem]) -> bool:
    """Tell whether any of the problems forbids going on."""
    return any(problem.severity == "error" for problem in problems)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort by position within each file; files stay in the order they first appear."""
    found = list(dict.fromkeys(problems))
    order = {path: i for i, path in enumerate(dict.fromkeys(p.path for p in found))}
    return sorted(found, key=lambda p: (order[p.path], p.line, p.column))
