"""Reader options that choose files: `pathGlobFilter`, `modifiedAfter`, `modifiedBefore`. Pure.

They have the meaning Spark gives them, which applies them once more when it opens the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from lakeload_jobs.contract.errors import InvalidInput

_NS = 1_000_000_000
_MS = 1_000_000


@dataclass(frozen=True)
class ListingFilter:
    """Which files of a listing are wanted. Times in ms since 1970, both bounds exclusive."""

    name: re.Pattern[str] | None = None
    after: int | None = None
    before: int | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ListingFilter:
        """Read the options, whose names are in lower case. Raises `InvalidInput`."""
        pattern = options.get("pathglobfilter")
        zone = options.get("timezone", "UTC")
        return cls(
            name=None if pattern is None else _compiled(pattern),
            after=_instant("modifiedAfter", options.get("modifiedafter"), zone),
            before=_instant("modifiedBefore", options.get("modifiedbefore"), zone),
        )

    def accepts(self, name: str, modified: int) -> bool:
        """Whether a file of this name, modified then (ns since 1970), is wanted."""
        at = modified // _MS
        if self.name is not None and not self.name.fullmatch(name):
            return False
        return (self.after is None or at > self.after) and (self.before is None or at < self.before)


def _compiled(pattern: str) -> re.Pattern[str]:
    """Hadoop's globs: `*`, `?`, `[…]`, `[^…]`, `{a,b}` and a backslash before any of these."""
    try:
        return re.compile(_translated(pattern), re.DOTALL)
    except (re.error, IndexError) as error:
        raise InvalidInput(
            f"the reader option `pathGlobFilter: {pattern}` is no pattern",
            hint="it knows `*`, `?`, `[a-z]` and `{a,b}`, and matches the name of a file",
        ) from error


def _translated(pattern: str) -> str:
    regex, depth, i = "", 0, 0
    while i < len(pattern):
        char = pattern[i]
        if char == "\\":
            i += 1
            regex += re.escape(pattern[i])
        elif char == "[":
            end = pattern.index("]", i + 2) if "]" in pattern[i + 2 :] else len(pattern)
            inner = pattern[i + 1 : end]
            negated = inner[0] in "^!"
            regex += "[" + ("^" if negated else "") + _escaped(inner[negated:]) + pattern[end] * 1
            i = end
        elif char == "{":
            regex, depth = regex + "(?:", depth + 1
        elif char == "}" and depth:
            regex, depth = regex + ")", depth - 1
        elif char == "," and depth:
            regex += "|"
        else:
            regex += {"*": ".*", "?": "."}.get(char) or re.escape(char)
        i += 1
    return regex


def _escaped(characters: str) -> str:
    return re.sub(r"([\\\[\]^&~|])", r"\\\1", characters)


def _instant(option: str, text: str | None, zone: str) -> int | None:
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text.strip())
        local = given if given.tzinfo else given.replace(tzinfo=ZoneInfo(zone))
    except (ValueError, LookupError) as error:
        raise InvalidInput(
            f"the reader option `{option}: {text}` is no time",
            hint="write it as `2026-11-21T10:15:00`; it is UTC unless `timeZone` is set",
        ) from error
    return int(local.timestamp() * _NS) // _MS
