"""The configuration files that a command line names, and commands about the same files."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

OPTION = "--destination"


@dataclass(frozen=True)
class NamedFiles:
    """A pipeline or destination `file`, and the file of `--destination`, which replaces the
    destination of a pipeline."""

    file: Path
    destination: Path | None = None

    def command(self, name: str, *arguments: str) -> str:
        """Return the command line of another command about the same files, quoted for a shell."""
        return shlex.join(["lakeload", *name.split(), *self.arguments, *arguments])

    @property
    def arguments(self) -> list[str]:
        """The words that name the files."""
        option = [] if self.destination is None else [OPTION, str(self.destination)]
        return [str(self.file), *option]
