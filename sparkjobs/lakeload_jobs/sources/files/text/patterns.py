"""Date and timestamp patterns: a subset of Spark's pattern letters, translated exactly.

| letters | what they stand for |
|---|---|
| `yyyy`, `uuuu` | a year of four digits |
| `yy` | the last two digits of a year from 2000 to 2099 |
| `M`, `d`, `H`, `h`, `m`, `s` | one or two digits |
| `MM`, `dd`, `HH`, `hh`, `mm`, `ss` | two digits |
| `MMM`, `MMMM` | `Jan`, `January`: English names of months |
| `a` | `AM` or `PM`, for `h` |
| `S` to `SSSSSSSSS` | a fraction of as many digits or fewer |
| `X`, `XX`, `XXX`, `x`, `xx`, `xxx`, `Z` | an offset from UTC; with `X` also the letter Z |
| `'text'`, `''` | text, a quote |
| `[` and `]` | around what may be missing |

Anything but a letter stands for itself. Letters are compared without case, as Spark does.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache

_MONTHS = tuple(name.lower() for name in calendar.month_name)[1:]
_SHORT_MONTHS = tuple(name[:3] for name in _MONTHS)
_ONE_OR_TWO, _TWO = "[0-9]{1,2}", "[0-9]{2}"
_FIELDS: dict[str, tuple[str, str]] = {
    "yyyy": ("year", "[0-9]{4}"),
    "uuuu": ("year", "[0-9]{4}"),
    "yy": ("short_year", _TWO),
    "M": ("month", _ONE_OR_TWO),
    "MM": ("month", _TWO),
    "MMM": ("month_name", "|".join(_SHORT_MONTHS)),
    "MMMM": ("month_name", "|".join(_MONTHS)),
    "d": ("day", _ONE_OR_TWO),
    "dd": ("day", _TWO),
    "H": ("hour", _ONE_OR_TWO),
    "HH": ("hour", _TWO),
    "h": ("half_hour", _ONE_OR_TWO),
    "hh": ("half_hour", _TWO),
    "m": ("minute", _ONE_OR_TWO),
    "mm": ("minute", _TWO),
    "s": ("second", _ONE_OR_TWO),
    "ss": ("second", _TWO),
    "a": ("half", "am|pm"),
    "X": ("offset", "z|[+-][0-9]{2}(?:[0-9]{2})?"),
    "XX": ("offset", "z|[+-][0-9]{4}"),
    "XXX": ("offset", "z|[+-][0-9]{2}:[0-9]{2}"),
    "x": ("offset", "[+-][0-9]{2}(?:[0-9]{2})?"),
    "xx": ("offset", "[+-][0-9]{4}"),
    "xxx": ("offset", "[+-][0-9]{2}:[0-9]{2}"),
    "Z": ("offset", "[+-][0-9]{4}"),
    **{"S" * digits: ("fraction", f"[0-9]{{1,{digits}}}") for digits in range(1, 10)},
}
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)
_TIME_FIELDS = {"hour", "half_hour", "minute", "second", "fraction", "half", "offset"}
_MOST_OFFSET = timedelta(hours=18)


class BadPattern(ValueError):
    """A pattern that cannot be read; the message names the place."""


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern. `matches` is its regular expression, with named groups."""

    text: str
    matches: re.Pattern[str]
    fields: tuple[str, ...]
    """The fields in their order, those within `[` and `]` too."""
    iso: tuple[str, str] | None
    """A regular expression of RE2 with a replacement that makes ISO text of what it matches; None
    where a replacement cannot do it."""

    def parse(self, text: str) -> datetime:
        """Return what a text stands for, with a zone where it has an offset.

        Fields that are missing are those of 1 January, midnight. Raises ValueError.
        """
        found = self.matches.fullmatch(text)
        if found is None:
            raise ValueError(f"`{text}` does not match `{self.text}`")
        values = {name: value for name, value in found.groupdict().items() if value is not None}
        moment = datetime(
            _year(values), _month(values), int(values.get("day", "1")), _hour(values),
            int(values.get("minute", "0")), int(values.get("second", "0")),
            microseconds(values.get("fraction", "")),
        )  # fmt: skip
        if offset := values.get("offset"):
            return moment.replace(tzinfo=utc_offset(offset))
        return moment

    def parse_date(self, text: str) -> date:
        """Return the date that a text stands for. Raises ValueError, for a time of day too."""
        moment = self.parse(text)
        if moment.time() != datetime.min.time() or moment.tzinfo is not None:
            raise ValueError(f"`{text}` has a time of day")
        return moment.date()


@lru_cache(maxsize=64)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern. Raises `BadPattern`."""
    parts: list[str] = []
    fields: list[str] = []
    plain: list[str] | None = []
    depth = 0
    for token in _TOKEN.finditer(text):
        letters = token[0]
        if letters == "[":
            depth, plain = depth + 1, None
            parts.append("(?:")
        elif letters == "]":
            depth -= 1
            if depth < 0:
                raise BadPattern(f"the pattern `{text}` has a `]` without `[`")
            parts.append(")?")
        elif letters.isalpha() and letters.isascii():
            name, matches = _field(text, letters)
            if name in fields:
                raise BadPattern(f"the pattern `{text}` has two fields for the {name}")
            fields.append(name)
            parts.append(f"(?P<{name}>{matches})")
            if plain is not None:
                plain.append(f"({_easy(name, matches)})")
        else:
            literal = re.escape(_literal(text, letters))
            parts.append(literal)
            if plain is not None:
                plain.append(literal)
    if depth:
        raise BadPattern(f"the pattern `{text}` has a `[` without `]`")
    _check_fields(text, fields)
    flags = re.IGNORECASE | re.ASCII
    iso = _iso(tuple(fields), "".join(plain)) if plain is not None else None
    return Pattern(text, re.compile("".join(parts), flags), tuple(fields), iso)


def microseconds(fraction: str) -> int:
    """Return the microseconds of the digits after the point. Raises ValueError for those that are
    less than a microsecond."""
    if fraction[6:].strip("0"):
        raise ValueError(f"`.{fraction}` is more exact than microseconds")
    return int(fraction[:6].ljust(6, "0"))


def utc_offset(text: str) -> timezone:
    """Return the zone of an offset such as `Z`, `+02`, `+0200` or `+02:00`. Raises ValueError."""
    if text in ("Z", "z"):
        return UTC
    digits = text[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or "0")
    offset = timedelta(hours=hours, minutes=minutes)
    if minutes > 59 or offset > _MOST_OFFSET:
        raise ValueError(f"`{text}` is not an offset from UTC")
    return timezone(-offset if text[0] == "-" else offset)


def _field(pattern: str, letters: str) -> tuple[str, str]:
    if letters not in _FIELDS:
        raise BadPattern(
            f"the pattern `{pattern}` has `{letters}`, which is not one of "
            f"{', '.join(f'`{known}`' for known in _FIELDS)}; write text as `'text'`"
        )
    return _FIELDS[letters]


def _literal(pattern: str, letters: str) -> str:
    if letters == "''":
        return "'"
    if len(letters) > 1:
        return letters[1:-1].replace("''", "'")
    if letters in "'{}#":
        raise BadPattern(f"the pattern `{pattern}` has a `{letters}` that means nothing")
    return letters


def _check_fields(pattern: str, fields: list[str]) -> None:
    if not {"year", "short_year"} & set(fields):
        raise BadPattern(f"the pattern `{pattern}` has no year")
    if ("half" in fields) != ("half_hour" in fields):
        raise BadPattern(f"the pattern `{pattern}` has `h` without `a`, or `a` without `h`")
    for one, other in (("year", "short_year"), ("month", "month_name"), ("hour", "half_hour")):
        if one in fields and other in fields:
            raise BadPattern(f"the pattern `{pattern}` has two fields for the {one}")


def _easy(name: str, matches: str) -> str:
    """Return what RE2 matches: no fraction that may be more exact than microseconds."""
    if name == "fraction":
        return f"[0-9]{{1,{min(6, int(matches[8:-1]))}}}"
    return matches


def _iso(fields: tuple[str, ...], matches: str) -> tuple[str, str] | None:
    if {"month_name", "half_hour", "short_year"} & set(fields) or "year" not in fields:
        return None
    place = {name: f"\\{number}" for number, name in enumerate(fields, start=1)}
    day = f"{place['year']}-{place.get('month', '01')}-{place.get('day', '01')}"
    if _TIME_FIELDS.isdisjoint(fields):
        return f"^(?i:{matches})$", day
    time = ":".join(place.get(name, "00") for name in ("hour", "minute", "second"))
    fraction = f".{place['fraction']}" if "fraction" in place else ""
    return f"^(?i:{matches})$", f"{day}T{time}{fraction}{place.get('offset', '')}"


def _year(values: dict[str, str]) -> int:
    return int(values["year"]) if "year" in values else 2000 + int(values["short_year"])


def _month(values: dict[str, str]) -> int:
    if "month_name" in values:
        return _SHORT_MONTHS.index(values["month_name"][:3].lower()) + 1
    return int(values.get("month", "1"))


def _hour(values: dict[str, str]) -> int:
    if "half_hour" not in values:
        return int(values.get("hour", "0"))
    hour = int(values["half_hour"])
    if not 1 <= hour <= 12:
        raise ValueError(f"{hour} is not an hour of half a day")
    return hour % 12 + (12 if values["half"].lower() == "pm" else 0)
