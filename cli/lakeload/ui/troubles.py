"""Errors, warnings and notes among the answers of a command, as text or as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.ui.errors import error_json
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.result import ErrorInfo

_STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    " hint": "green",
    "next": "bold",
}


def say(err: Console, label: str, text: str, *, strong: bool = False) -> None:
    """Write `label: text`, whatever is in the text, as one line."""
    style = _STYLES.get(label, "dim")
    told = (printable(text), "bold" if strong else "")
    err.print(Text.assemble((f"{label}:", style), " ", told), soft_wrap=True)


def show_trouble(
    err: Console, target: str, error: LakeloadError | ErrorInfo, *, warning: bool = False
) -> None:
    """Write an error, or what is only a warning, and its hint; `target` blank for no table's."""
    about = f"{target}: " if target else ""
    say(err, "warning" if warning else "error", f"{about}{error.message}", strong=True)
    if error.hint:
        say(err, " hint", error.hint)


def trouble_document(target: str, error: LakeloadError) -> dict[str, Any]:
    """Return the JSON form of a table's error."""
    return {"target": target, **error_json(error)}
