"""What the command line gives to whatever it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console

from lakeload.launch.stop import StopRequests


@dataclass(frozen=True)
class Context:
    """One command line's environment, where progress is shown, and who may stop the work."""

    environment: Mapping[str, str]
    stop: StopRequests
    err: Console
    quiet: bool = False

    def note(self, text: str) -> None:
        """Say something that is not an error; silent with -q."""
        if not self.quiet:
            self.err.print(text, soft_wrap=True)
