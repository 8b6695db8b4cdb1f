"""Who is told how a fetch of jars goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakeload.machine.jars.pins import Jar


class Listener(Protocol):
    """Who wants to know how a fetch goes. Called from several threads."""

    def begin(self, jars: Sequence[Jar], where: str) -> None:
        """These jars are lacking, and `where` they are looked for."""

    def at(self, jar: Jar, done: int) -> None:
        """So many bytes of the jar are there."""

    def end(self, jar: Jar, how: str) -> None:
        """The jar is in the cache; `how` it came there, such as `downloaded`."""

    def say(self, text: str) -> None:
        """Something a user should know."""


class Silence:
    """Nobody wants to know."""

    def begin(self, jars: Sequence[Jar], where: str) -> None:
        """Say nothing."""

    def at(self, jar: Jar, done: int) -> None:
        """Say nothing."""

    def end(self, jar: Jar, how: str) -> None:
        """Say nothing."""

    def say(self, text: str) -> None:
        """Say nothing."""
