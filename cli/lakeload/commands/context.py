"""Context of a command: its environment, progress output and stop requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console

from lakeload.launch.stop import StopRequests


@dataclass(frozen=True)
class Context:
    """The environment of a command, its progress output and its stop requests."""

    environment: Mapping[str, str]
    stop: StopRequests
    err: Console
    quiet: bool = False

    def note(self, text: str) -> None:
        """Say something that is not an error; silent with -q."""
        if not self.quiet:
            self.err.print(text, soft_wrap=True)
