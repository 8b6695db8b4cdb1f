"""Files of `lakeload init`: planned action, writing, and the next commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lakeload.init.documents import DESTINATION, DOTENV, GITIGNORE, PIPELINE, Variable
from lakeload_jobs.contract.errors import InvalidInput

INIT = "lakeload init FOLDER"


class FileAction(StrEnum):
    """What becomes of a file."""

    CREATE = "create"
    OVERWRITE = "overwrite"
    EXTEND = "extend"
    KEEP = "keep"


@dataclass(frozen=True)
class PlannedFile:
    """One file: what becomes of it, its text then, and whether others may read it."""

    path: Path
    action: FileAction
    text: str = ""
    secret: bool = False


def require_room(
    folder: Path, names: Iterable[str] = (DESTINATION, PIPELINE), *, elsewhere: str = INIT
) -> None:
    """Raise `InvalidInput` where a document is there already; `elsewhere` names another folder."""
    if there := _documents_there(folder, names):
        names = " and ".join(f"`{folder / name}`" for name in there)
        raise InvalidInput(
            f"{names} already {'exists' if len(there) == 1 else 'exist'}; nothing was written",
            hint=f"use `--force` to overwrite, or another folder: `{elsewhere}`",
        )


def plan_files(
    folder: Path, texts: Mapping[str, str], variables: Sequence[Variable], *, force: bool
) -> list[PlannedFile]:
    """Return what is to be done. Without `force` documents are made, and never overwritten.

    `.env` and `.gitignore` are only ever extended: what a user has written into them stays.
    """
    there = _documents_there(folder, texts) if force else []
    action = {name: FileAction.OVERWRITE if name in there else FileAction.CREATE for name in texts}
    found = [PlannedFile(folder / name, action[name], text) for name, text in texts.items()]
    if variables:
        found.append(_dotenv(folder / DOTENV, variables))
        if ignored := _gitignore(folder):
            found.append(ignored)
    return found


def write_files(files: Sequence[PlannedFile], *, elsewhere: str = INIT) -> None:
    """Write them, in order. Raises `InvalidInput` where the system refuses."""
    for file in files:
        try:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            if file.action is not FileAction.KEEP:
                _write(file)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise InvalidInput(
                f"`{file.path}` cannot be written: {reason}",
                hint=f"choose a folder that you can write to: `{elsewhere}`",
            ) from error


def open_to_others(path: Path) -> bool:
    """Tell whether others than the owner may read a file that is there."""
    return path.exists() and bool(path.stat().st_mode & 0o077)


def is_tracked(path: Path) -> bool:
    """Tell whether git has a file under version control already: `.gitignore` is then no help."""
    return _git(path, "ls-files", "--error-unmatch")


def _documents_there(folder: Path, names: Iterable[str]) -> list[str]:
    return [name for name in names if os.path.lexists(folder / name)]


def _write(file: PlannedFile) -> None:
    # A file that has appeared since the plan was made is somebody's: EXCL refuses to open it.
    how = os.O_EXCL if file.action is FileAction.CREATE else os.O_TRUNC
    flags = os.O_WRONLY | os.O_CREAT | how
    descriptor = os.open(file.path, flags, 0o600 if file.secret else 0o666)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(file.text)


def _dotenv(path: Path, variables: Sequence[Variable]) -> PlannedFile:
    text = _text(path)
    if text is None:
        new = _HEAD.format(path=shell_path(path)) + _lines(variables)
        return PlannedFile(path, FileAction.CREATE, new, secret=True)
    # Those that it does not assign, nor has a line to fill in for.
    given = set(_ASSIGNMENT.findall(text))
    missing = tuple(variable for variable in variables if variable.name not in given)
    text += "" if text.endswith("\n") or not text else "\n"
    action = FileAction.EXTEND if missing else FileAction.KEEP
    return PlannedFile(path, action, text + _lines(missing), secret=True)


def _gitignore(folder: Path) -> PlannedFile | None:
    """Return the file with a line for `.env`, None where git ignores `.env` as it is."""
    path = folder / GITIGNORE
    text = _text(path)
    lines = [] if text is None else text.splitlines()
    if DOTENV in lines or f"/{DOTENV}" in lines or _git(folder / DOTENV, "check-ignore"):
        return None
    if text is None:
        return PlannedFile(path, FileAction.CREATE, f"{DOTENV}\n")
    end = "" if text.endswith("\n") or not text else "\n"
    return PlannedFile(path, FileAction.EXTEND, f"{text}{end}{DOTENV}\n")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"`{path}` cannot be read as text", hint="move it away") from error


def _git(path: Path, *arguments: str) -> bool:
    """Ask git about a file; False too where there is no git or no repository."""
    git = shutil.which("git")
    if git is None:
        return False
    # The folder may not be there yet.
    folder = next(parent for parent in path.absolute().parents if parent.is_dir())
    command = [git, "-C", str(folder), *arguments, "--", str(path.absolute())]
    found = subprocess.run(command, capture_output=True, check=False, timeout=30)  # noqa: S603
    return found.returncode == 0


_HEAD = """\
# Secrets of your configuration files. Fill them in, in single quotes and without
# the #: NAME='value'.
# Then, in each shell:
#   set -a; . {path}; set +a
# Keep this file out of version control.
"""
_ASSIGNMENT = re.compile(r"^\s*(?:#\s*)?(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=", re.MULTILINE)


def shell_path(path: Path) -> str:
    """Return a path as the `.` of a shell needs it: without a slash it would look in PATH."""
    text = str(path)
    return shlex.quote(text if "/" in text else f"./{text}")


def _lines(variables: Sequence[Variable]) -> str:
    # Commented out: a line without a value would erase a variable that the shell has.
    return "".join(f"\n# {variable.about}\n# {variable.name}=\n" for variable in variables)


@dataclass(frozen=True)
class Step:
    """A line for a shell, and what it does."""

    command: str
    about: str


def next_steps(
    folder: Path,
    *,
    secrets: bool,
    pipelines: Sequence[str] = (PIPELINE,),
    database: str = "",
    lake: bool | None = None,
) -> tuple[Step, ...]:
    """Return the next commands of lakeload; with `secrets` after the line that loads `.env`.
    `database` is what to call the one that the pipeline reads or may read: it is tested too.
    `lake`: whether that of this machine, which has no policies, runs; None elsewhere.

    lakeload itself never reads `.env` (docs/design-notes.md).
    """
    destination = shlex.quote(str(folder / DESTINATION))
    found = []
    if secrets:
        dotenv = shell_path(folder / DOTENV)
        found.append(Step(f"set -a; . {dotenv}; set +a", "in each shell, once .env is filled in"))
    if lake is None:
        found.append(Step(f"lakeload policy {destination}", "the IAM policies that this needs"))
    elif not lake:
        found.append(Step("lakeload lake up", "start the lake of this machine"))
    if lake is not None and not database:
        # Nothing has to be granted there: one load, and what it made.
        pipeline = shlex.quote(str(folder / pipelines[0]))
        found.append(Step(f"lakeload sync {pipeline}", "load"))
        found.append(Step("lakeload lake status", "the tables, for `lakeload lake query`"))
        return tuple(found)
    tested, what = destination, "check bucket, role and permissions"
    if database:
        tested, what = shlex.quote(str(folder / pipelines[0])), f"{what}, and {database}"
    found.append(Step(f"lakeload test-connection {tested}", what))
    for name in pipelines:
        pipeline = shlex.quote(str(folder / name))
        found.append(Step(f"lakeload plan {pipeline}", "what sync would load"))
    return tuple(found)
