"""Names of tables in a document, and globs that stand for several."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
_WILDCARDS = re.compile(r"[*?]")


@dataclass(frozen=True)
class NamePart:
    """A part of a name. A `glob` has `*` or `?` outside of double quotes."""

    text: str
    glob: bool

    def matches(self, name: str) -> bool:
        """Return whether it is this name, or stands for it. Case counts."""
        if not self.glob:
            return self.text == name
        pattern = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in self.text)
        return re.fullmatch(pattern, name, re.DOTALL) is not None


def name_parts(given: str) -> tuple[NamePart, ...]:
    """Return the parts of a name with dots between them; none where it is no such name."""
    parts: list[NamePart] = []
    place = 0
    while found := _PART.match(given, place):
        if found[1] is None:
            parts.append(NamePart(found[2], _WILDCARDS.search(found[2]) is not None))
        else:
            parts.append(NamePart(found[1].replace('""', '"'), glob=False))
        place = found.end()
        if place == len(given):
            return tuple(parts)
        if given[place] != ".":
            break
        place += 1
    return ()


def matches(given: str, schema: str, table: str) -> bool:
    """Return whether a name or glob means a table; without a schema it means one of any schema."""
    *schemas, own = name_parts(given)
    return own.matches(table) and all(part.matches(schema) for part in schemas)
