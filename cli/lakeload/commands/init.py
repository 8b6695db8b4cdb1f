"""`lakeload init`: the first destination.yml and pipeline.yml, from flags and answers."""

from __future__ import annotations

import inspect
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from lakeload.commands.options import Output
from lakeload.documents.load import inspect_all
from lakeload.init.documents import DOTENV, Answers, documents, variables
from lakeload.init.files import (
    is_tracked,
    next_steps,
    open_to_others,
    plan_files,
    require_room,
    write_files,
)
from lakeload.init.interview import PANELS, Ask, Defaults, Question, detect_format, interview
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload.ui.init import Initialized, ask, show_json, show_text
from lakeload_jobs.contract.errors import InvalidInput

Folder = Annotated[Path, typer.Argument(help="Where to write; made if it is not there.")]
NoInput = Annotated[bool, typer.Option("--no-input", help="Ask nothing, at a terminal either.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite documents that are there.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")
]


def init(
    folder: Folder = Path(),
    no_input: NoInput = False,
    force: Force = False,
    dry_run: DryRun = False,
    output: Output = OutputFormat.TEXT,
    **flags: str | bool | None,
) -> None:
    """Write destination.yml and pipeline.yml, and .env for their secrets.

    At a terminal it asks what no flag says; elsewhere a missing flag is an error.
    Documents that are there are kept, unless --force is given.
    Exit code 0; 2 when a choice is wrong or missing.
    """
    given = {
        name: ("YES" if flag else "NO") if isinstance(flag, bool) else flag
        for name, flag in flags.items()
    }
    if not force:
        require_room(folder)
    defaults: Defaults = {"name": _pipeline_name(folder), "source": detect_format}
    answers = interview(given, defaults, _asker(no_input, output))
    answers = _with_path_from(folder, answers)
    texts = documents(answers)
    _check(texts)
    needed = variables(answers)
    files = plan_files(folder, texts, needed, force=force)
    if not dry_run:
        write_files(files)
    dotenv = folder / DOTENV
    done = Initialized(
        files,
        needed,
        next_steps(answers, folder),
        str(dotenv),
        dry_run=dry_run,
        tracked=bool(needed) and is_tracked(dotenv),
        readable=bool(needed) and open_to_others(dotenv),
    )
    (show_json if output is OutputFormat.JSON else show_text)(done)


def _signature() -> inspect.Signature:
    """Return the parameters that the parser reads: one flag for each question of the interview."""
    folder, *others, _ = inspect.signature(init, eval_str=True).parameters.values()
    flags = [_parameter(question, panel) for panel in PANELS for question in PANELS[panel]]
    return inspect.Signature([folder, *flags, *others], return_annotation=None)


def _parameter(question: Question, panel: str) -> inspect.Parameter:
    option = typer.Option(
        question.flag if question.metavar else f"{question.flag}/--no-{question.name}",
        help=question.help,
        metavar=question.metavar or None,
        rich_help_panel=panel,
        show_default=False,
    )
    kind = str if question.metavar else bool
    return inspect.Parameter(
        question.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[kind | None, option],
    )


init.__signature__ = _signature()  # type: ignore[attr-defined]


def _asker(no_input: bool, output: OutputFormat) -> Ask | None:
    """Return how to ask, None where nobody is there to answer."""
    terminal = sys.stdin is not None and sys.stdin.isatty() and console.err.is_terminal
    return ask if terminal and not no_input and output is OutputFormat.TEXT else None


def _pipeline_name(folder: Path) -> str:
    """Return the folder's name as far as a pipeline can be called so."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.absolute().resolve().name)
    return name.lstrip("._-")[:128] or "pipeline"


def _with_path_from(folder: Path, answers: Answers) -> Answers:
    """Let a path that was given here be found from the document's folder."""
    # A shell does it for flags, nobody for an answer. Path's own fails where there is no such user.
    path = os.path.expanduser(answers.path)  # noqa: PTH111
    if "://" in path or path.startswith("file:") or Path(path).is_absolute():
        return replace(answers, path=path)
    end = "/" if path.endswith("/") else ""
    # After a link `..` means what the file system says, so the way starts at the real folder.
    return replace(answers, path=os.path.relpath(path, folder.resolve()) + end)


def _check(texts: dict[str, str]) -> None:
    """Read the documents as `sync` would, before anything is written. Raises `InvalidInput`."""
    with TemporaryDirectory(prefix="lakeload-") as scratch:
        for file, text in texts.items():
            (Path(scratch) / file).write_text(text, encoding="utf-8")
        for inspection in inspect_all([Path(scratch) / file for file in texts], os.environ):
            for problem in inspection.problems:
                if problem.severity == "error":
                    raise InvalidInput(
                        f"these choices make no valid {inspection.kind}: {problem.message}",
                        hint=problem.hint,
                    )
