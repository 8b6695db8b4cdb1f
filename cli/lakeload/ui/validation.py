"""What `lakeload validate` answers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from rich.text import Text

from lakeload.config.problems import Problem, has_errors, in_order
from lakeload.config.secret_names import printable
from lakeload.documents.load import Inspection
from lakeload.ui import console
from lakeload.ui.github import show_annotations
from lakeload.ui.problems import problems_json, problems_text, summary


class ValidationFormat(StrEnum):
    """How `validate` answers."""

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
) -> dict[str, Any]:
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
