"""What to type after `init`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from lakeload.init.answers import Answers, variables
from lakeload.init.documents import DESTINATION, DOTENV, PIPELINE
from lakeload.init.dotenv import shell_path


@dataclass(frozen=True)
class Step:
    """A line for a shell, and what it does."""

    command: str
    about: str


def next_steps(answers: Answers, folder: Path) -> tuple[Step, ...]:
    """Return the next three commands of lakeload, after the line that loads `.env` if there is one.

    lakeload itself never reads `.env` (decision 0060).
    """
    destination, pipeline = (shlex.quote(str(folder / file)) for file in (DESTINATION, PIPELINE))
    found = []
    if variables(answers):
        dotenv = shell_path(folder / DOTENV)
        found.append(Step(f"set -a; . {dotenv}; set +a", "in each shell, once .env is filled in"))
    found.append(Step(f"lakeload policy {destination}", "what has to be allowed in AWS"))
    found.append(Step(f"lakeload test-connection {destination}", "whether it is"))
    found.append(Step(f"lakeload plan {pipeline}", "what sync would load"))
    return tuple(found)
