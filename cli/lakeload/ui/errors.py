"""Errors on the terminal and in JSON."""

from __future__ import annotations

import os
import platform
import re
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from lakeload.config.problems import InvalidDocuments
from lakeload.config.secret_names import looks_secret, masked, printable
from lakeload.ui import console
from lakeload.ui.problems import MAX_WIDTH, problems_json, problems_text, summary, wrapped
from lakeload_jobs.contract.errors import ExitCode, LakeloadError, docs_link

if TYPE_CHECKING:
    from lakeload.ui.json_documents import ErrorDocument, TableErrorDocument
    from lakeload_jobs.contract.result import ErrorInfo

_STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    " hint": "green",
    "next": "bold",
}


def say(err: Console, label: str, text: str, *, strong: bool = False) -> None:
    """Write `label: text`, whatever is in the text: in lines that fit a terminal, else as one."""
    style = _STYLES.get(label, "dim")
    lines = "\n".join(printable(line) for line in re.split(r"\r?\n", text))
    told = (_fitted(err, label, lines), "bold" if strong else "")
    err.print(Text.assemble((f"{label}:", style), " ", told), soft_wrap=True)


def _fitted(err: Console, label: str, text: str) -> str:
    """Return text that follows `label: `, wrapped between words on a terminal, which would break
    them. Indented lines are to be copied and stay whole."""
    if not err.is_terminal:
        return text
    width, indent = min(err.width, MAX_WIDTH), " " * (len(label) + 2)
    lines = (
        line if line.startswith(" ") else wrapped(line, width, indent, indent)[len(indent) :]
        for line in text.split("\n")
    )
    return "\n".join(lines)


def show_trouble(
    err: Console, target: str, error: LakeloadError | ErrorInfo, *, warning: bool = False
) -> None:
    """Write an error, or what is only a warning, and its hint; `target` blank for no table's."""
    about = f"{target}: " if target else ""
    say(err, "warning" if warning else "error", f"{about}{error.message}", strong=True)
    if error.hint:
        say(err, " hint", error.hint)


def trouble_document(target: str, error: LakeloadError) -> TableErrorDocument:
    """Return the JSON form of a table's error."""
    return {"target": target, **error_json(error)}


_VERSIONS_OF = ("lakeload", "typer", "pydantic", "boto3", "pyspark", "pyarrow")


def show_error(error: LakeloadError) -> None:
    """Say what failed and what to do next; in JSON when the command answers in JSON."""
    if console.json_wanted():
        console.show_json({"error": error_json(error)})
        return
    if isinstance(error, InvalidDocuments):
        console.err.print(problems_text(error.problems, console.err.width), soft_wrap=True)
        console.err.print(Text(f"\n{summary(error.problems)}"), soft_wrap=True)
        return
    show_trouble(console.err, "", error)


def error_json(error: LakeloadError) -> ErrorDocument:
    """Return the documented JSON form of an error; fields are only ever added."""
    document: ErrorDocument = {
        "type": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "exit_code": int(error.exit_code),
        "retryable": error.retryable,
        "docs": docs_link(type(error).__name__),
    }
    if isinstance(error, InvalidDocuments):
        document["problems"] = problems_json(error.problems)
    return document


def show_bug(error: BaseException) -> None:
    """Write a log file about an error nobody expected and say where it is, in one line."""
    name = type(error).__name__
    path = _write_log(_bug_report(error))
    where = f"details are in {path}" if path else "its log file could not be written"
    message = f"lakeload has a bug ({name}); {where}"
    if console.json_wanted():
        document: ErrorDocument = {
            "type": name,
            "message": message,
            "hint": "report it with the log file",
            "exit_code": int(ExitCode.BUG),
            "retryable": False,
            "docs": docs_link("Bug"),
        }
        console.show_json({"error": document})
        return
    console.err.print(Text.assemble(("error:", "bold red"), f" {message}"), soft_wrap=True)


def _bug_report(error: BaseException) -> str:
    versions = "\n".join(f"{name} {_version(name)}" for name in _VERSIONS_OF)
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    python = f"python {platform.python_version()} on {platform.platform()}"
    return without_secrets(f"{versions}\n{python}\n\n{''.join(lines)}")


def without_secrets(text: str) -> str:
    """Mask the values of environment variables that look secret, and known forms of secrets."""
    for name, value in os.environ.items():
        if looks_secret(name) and name not in ("PWD", "OLDPWD") and len(value) >= 4:
            text = text.replace(value, "****")
    return masked(text)


def _write_log(report: str) -> Path | None:
    """Put the report into the folder of run logs, readable by its owner alone."""
    import platformdirs

    folder = os.environ.get("LAKELOAD_RUN_DIR")
    try:
        path = Path(folder) if folder else platformdirs.user_log_path("lakeload")
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path /= f"bug-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(report)
    except (OSError, RuntimeError):
        return None
    return path


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "is not installed"
