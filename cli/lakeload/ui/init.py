"""Terminal prompts of `lakeload init`, and its report of written files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.prompt import Prompt
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.ui import console
from lakeload.ui.errors import say
from lakeload.ui.guesses import TableGuess, guess_documents, say_guesses
from lakeload.ui.json_documents import InitDocument
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.sizes import counted

if TYPE_CHECKING:
    from lakeload.config.model import Finding
    from lakeload.init.documents import Variable
    from lakeload.init.files import PlannedFile, Step
    from lakeload.init.interview import Question

_DONE = {"create": "wrote", "overwrite": "overwrote", "extend": "added to", "keep": "kept"}
_TO_DO = {"create": "write", "overwrite": "overwrite", "extend": "add to", "keep": "keep"}


@dataclass(frozen=True)
class Initialized:
    """All that there is to say at the end."""

    files: Sequence[PlannedFile]
    variables: tuple[Variable, ...]
    steps: tuple[Step, ...]
    dotenv: str
    dry_run: bool
    tracked: bool
    """Whether git has `.env` under version control."""
    readable: bool
    """Whether others than the owner may read `.env`."""
    tables: Sequence[str] = ()
    """The tables that were found, by their names."""
    warnings: Sequence[str] = ()
    guesses: Sequence[TableGuess] = ()


def ask(
    question: Question, choices: tuple[str, ...], default: str | None, wrong: Finding | None
) -> str:
    """Ask one question on stderr and return the answer as it was typed."""
    if wrong is not None:
        hint = f"; {wrong.hint}" if wrong.hint else ""
        console.err.print(Text(f"  {wrong.message}{hint}", "yellow"), soft_wrap=True)
    prompt = Text(question.text)
    if choices:
        prompt.append(f" [{'/'.join(choices)}]", "prompt.choices")
    if default:
        prompt.append(f" ({printable(default)})", "prompt.default")
    try:
        answer = Prompt.ask(prompt, console=console.err, default=default or "", show_default=False)
    except EOFError as end:
        raise InvalidInput(
            f"the input ended at the question for `{question.flag}`",
            hint="nothing was written; every question has an option: `lakeload init --help`",
        ) from end
    return answer or ""


def show_text(done: Initialized) -> None:
    """Show the files, the variables to fill in and the next commands on stdout."""
    show_files(done)
    show_next(done)
    say_guesses(done.guesses, console.err)


def show_files(done: Initialized) -> None:
    """Show the files and tables on stdout, and warnings on stderr."""
    for file in done.files:
        verb = f"would {_TO_DO[file.action]}" if done.dry_run else _DONE[file.action]
        console.answer(f"{verb} {printable(str(file.path))}")
    if done.tables and not console.quiet():
        names = ", ".join(map(printable, done.tables))
        console.answer(f"\n{counted(len(done.tables), 'table')}: {names}")
    _warn(done)


def show_next(done: Initialized) -> None:
    """Show the variables to fill in and the next commands on stdout."""
    if done.dry_run or console.quiet():
        return
    if done.variables:
        console.answer(f"\nFill in {printable(done.dotenv)}:")
        for variable in done.variables:
            console.answer(f"  {variable.name}: {variable.about}")
    console.answer("\nNext:")
    width = max(len(step.command) for step in done.steps)
    for step in done.steps:
        # A comment that would be wrapped is worth less than a line that can be copied.
        fits = 2 + width + 4 + len(step.about) <= console.out.width
        about = f"{'':{width - len(step.command)}}  # {step.about}" if fits else ""
        console.answer(f"  {step.command}{about}")


def show_json(done: Initialized) -> None:
    """Print the documented JSON answer; fields are only ever added."""
    console.show_json(to_document(done))
    _warn(done)
    say_guesses(done.guesses, console.err)


def to_document(done: Initialized) -> InitDocument:
    """Return the JSON answer (docs/init.md)."""
    return {
        "dry_run": done.dry_run,
        "files": [{"file": str(file.path), "action": file.action} for file in done.files],
        "variables": [{"name": one.name, "about": one.about} for one in done.variables],
        "tables": list(done.tables),
        "warnings": list(done.warnings),
        "guesses": guess_documents(done.guesses),
        "next": [step.command for step in done.steps],
    }


def _warn(done: Initialized) -> None:
    for warning in done.warnings:
        say(console.err, "warning", warning)
    if done.tracked:
        console.note(
            Text(
                f"warning: git tracks {done.dotenv}: run `git rm --cached` on it before it "
                "holds secrets"
            )
        )
    if done.readable:
        console.note(Text(f"warning: other users can read {done.dotenv}: run `chmod 600` on it"))
