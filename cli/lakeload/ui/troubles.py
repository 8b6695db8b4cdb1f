"""The error of one table among several, as text or as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.ui.errors import error_json
from lakeload_jobs.contract.errors import LakeloadError


def show_trouble(err: Console, target: str, error: LakeloadError, *, warning: bool = False) -> None:
    """Write a table's error, or what is only a warning, and its hint to stderr."""
    message = printable(f"{target}: {error.message}")
    label = ("warning:", "yellow") if warning else ("error:", "bold red")
    err.print(Text.assemble(label, " ", (message, "bold")), soft_wrap=True)
    if error.hint:
        err.print(Text.assemble((" hint:", "green"), " ", printable(error.hint)), soft_wrap=True)


def trouble_document(target: str, error: LakeloadError) -> dict[str, Any]:
    """Return the JSON form of a table's error."""
    return {"target": target, **error_json(error)}
