""".env: the environment variables that the documents refer to, for a shell to read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from lakeload.init.answers import Variable

_HEAD = """\
# Secrets of destination.yml. Fill them in, in single quotes: NAME='value'. Then, in each shell:
#   set -a; . {path}; set +a
# Keep this file out of version control.
"""
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=", re.MULTILINE)


def dotenv_text(variables: Sequence[Variable], path: str) -> str:
    """Return a new file; `path` is how a shell reads it."""
    return _HEAD.format(path=path) + _lines(variables)


def shell_path(path: Path) -> str:
    """Return a path as the `.` of a shell needs it: without a slash it would look in PATH."""
    text = str(path)
    return shlex.quote(text if "/" in text else f"./{text}")


def missing_from(text: str, variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return the variables that an existing file does not assign."""
    given = set(_ASSIGNMENT.findall(text))
    return tuple(variable for variable in variables if variable.name not in given)


def extended(text: str, variables: Sequence[Variable]) -> str:
    """Return an existing file with further variables at its end."""
    return (text if text.endswith("\n") or not text else text + "\n") + _lines(variables)


def _lines(variables: Sequence[Variable]) -> str:
    return "".join(f"\n# {variable.about}\n{variable.name}=\n" for variable in variables)
