"""Comments of a table and its columns, as a source has them and as catalogs take them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_TABLE = 2048
MAX_COLUMN = 255
"""Characters that AWS Glue takes: of a table's `Description`, of a column's `Comment`."""


@dataclass(frozen=True)
class Comments:
    """The comments of a table and, by name, of those columns that have one: each is one line."""

    table: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: str, columns: Mapping[str, str]) -> Comments:
        """Return comments as one line each, cut to the length that every catalog takes."""
        lines = {name: one_line(text, MAX_COLUMN) for name, text in columns.items()}
        return cls(one_line(table, MAX_TABLE), {name: line for name, line in lines.items() if line})

    def renamed(self, names: Mapping[str, str]) -> Comments:
        """Return them with other names of columns; columns that `names` has not are left out."""
        columns = {names[name]: text for name, text in self.columns.items() if name in names}
        return Comments(self.table, columns)


NO_COMMENTS = Comments()


def one_line(text: str, most: int) -> str:
    """Return a text without line breaks and control characters; a longer one ends with `…`.

    `most` counts as Java does: a character beyond U+FFFF is two.
    """
    plain = "".join(" " if unicodedata.category(sign) in ("Cc", "Cs") else sign for sign in text)
    line = " ".join(plain.split())
    units = line.encode("utf-16-le")
    if len(units) <= 2 * most:
        return line
    return units[: 2 * (most - 1)].decode("utf-16-le", "ignore").rstrip() + "…"
