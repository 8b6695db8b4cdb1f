"""Ranges of a column's values, in which several sessions read the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise

_MINUTE = timedelta(minutes=1)
_MINUTES = (datetime.max - datetime.min) // _MINUTE
_NEAR = 0.05
"""How far from its place in the order of the rows a bound may be, as a share of one part."""


@dataclass(frozen=True)
class Places:
    """Values of a type at which a range may begin, numbered in the order of the type.

    They need not be all values of the type: those between two of them are in one range, and those
    before the first or behind the last one are in a range at the end.
    """

    least: int
    greatest: int
    text: Callable[[int], str]
    """The value of a number, as the database writes it."""


def integers(bits: int) -> Places:
    """Return the values of a signed type."""
    return Places(-(1 << bits - 1), (1 << bits - 1) - 1, str)


def unsigned(bits: int) -> Places:
    """Return the values of an unsigned type."""
    return Places(0, (1 << bits) - 1, str)


LAST_DAY = date.max.toordinal()
MINUTES = Places(0, _MINUTES, lambda number: str(datetime.min + number * _MINUTE))
"""Of a type with times."""


def find_bounds(
    places: Places, count: int, whole: int, rows_below: Callable[[int], int]
) -> tuple[int, ...]:
    """Return at most `count` - 1 places that divide `whole` rows into parts of about the same size.

    `rows_below` estimates the rows before a place. It need not be exact: it decides about the size
    of the parts, and not about which rows they have.
    """
    known: dict[int, int] = {}

    def below(place: int) -> int:
        if place not in known:
            known[place] = rows_below(place)
        return known[place]

    def bound(number: int) -> int:
        low, high = places.least, places.greatest
        while low < high:
            middle = (low + high) // 2
            missing = whole * number - below(middle) * count
            if abs(missing) <= whole * _NEAR:
                return middle
            low, high = (middle + 1, high) if missing > 0 else (low, middle)
        return low

    return tuple(sorted(set(map(bound, range(1, count)))))


def conditions(key: str, bounds: Sequence[str]) -> tuple[str, ...]:
    """Return the conditions of the ranges between ascending bounds, which are SQL like `key`.

    Each row whose key is not null meets exactly one: `<` and `>=` of one bound exclude each other,
    and one of them is true.
    """
    if not bounds:
        return ()
    inner = pairwise(bounds)
    return (
        f"{key} < {bounds[0]}",
        *(f"({key} >= {low} AND {key} < {high})" for low, high in inner),
        f"{key} >= {bounds[-1]}",
    )


@dataclass(frozen=True)
class Ranges:
    """Ranges of a column: its name, its SQL, and the SQL of the bounds between them."""

    name: str
    key: str
    bounds: tuple[str, ...]

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of the ranges; none where there is one range alone."""
        return conditions(self.key, self.bounds)


def with_nulls(key: str, condition: str) -> str:
    """Return the condition of a range and of the rows without a key."""
    return f"({condition} OR {key} IS NULL)"


def all_of(parts: Iterable[str]) -> str:
    """Return the condition that all conditions are met; '' is none."""
    return " AND ".join(filter(None, parts))
