"""What the writers of the corpus are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Given:
    """Values of one type, and as what they are read where that is another."""

    kind: Any
    values: list[Any]
    read: list[Any] | None = None

    @property
    def expected(self) -> list[Any]:
        """What is to be read."""
        return self.values if self.read is None else self.read
