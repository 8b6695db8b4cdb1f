"""The rows that loads by a cursor have seen, with which the rows of the next window are compared.

A load by a cursor reads what is greater than the bound of the load before it, and once more the
window up to that bound: rows may have been committed late with a cursor in there. What the load
before has seen in the window was noted, an entry for each row, so that only the others are loaded.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.state import Bookmark, Evidence, check_format
from lakeload_jobs.sources.databases.columns import SelectedColumn

ENTRY_BYTES, ID_BYTES = 16, 8
"""An entry begins with the hash of key and cursor; the rest is that of all values."""
SEEN_FORMAT = 1
"""Of what a load has noted; one without a number has this one."""
MOST_ROWS = 1_000_000
"""How many entries are kept. A driver compares them in memory, and each commit has them."""
LOAD_AGAIN = (
    "load all rows again: with `lakeload sync --full-refresh` under `mode: UPSERT`, or after "
    "`lakeload reset` under `mode: APPEND`"
)
"""What is left where a state cannot be gone on with."""

_DURATION = re.compile(
    r"P(?=.)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,6})?)S)?)?"
)
_UNITS = ("weeks", "days", "hours", "minutes", "seconds")


def parse_lookback(text: str) -> int | timedelta | None:
    """Return a number, or a duration as ISO 8601 writes it; None for other text."""
    if re.fullmatch(r"\d{1,19}", text):
        return int(text)
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    given = zip(_UNITS, found.groups(), strict=True)
    try:
        return timedelta(**{unit: float(value) for unit, value in given if value is not None})
    except OverflowError:
        return None


def check_first(name: str, bookmark: Bookmark, *, reload: bool) -> None:
    """Raise `LoadFailed` where rows were appended without a cursor: which ones is not known."""
    if not (bookmark.first_run or reload):
        raise LoadFailed(
            f"this pipeline has loaded `{name}` without `cursor`, so it is not known which rows "
            "are loaded",
            hint="empty the table with `lakeload reset`, or append all rows again with "
            "`lakeload sync --reload`",
        )


def check_lookback(text: str | None, kind: str, name: str) -> int | timedelta | None:
    """Return a `lookback` for a cursor of a kind. Raises `InvalidInput` where it does not fit."""
    if text is None:
        return None
    found = parse_lookback(text)
    fits = int if kind == "INTEGER" else timedelta
    if kind == "TEXT" or not isinstance(found, fits):
        hints = {
            "TEXT": "remove `lookback`: text has no distance",
            "INTEGER": "write a number, as in `lookback: 1000`",
        }
        raise InvalidInput(
            f"`lookback: {text}` of `{name}` does not fit its cursor",
            hint=hints.get(kind, "write a duration, as in `lookback: PT10M`"),
        )
    return found


def earlier(bound: str, lookback: int | timedelta | None) -> str:
    """Return the value `lookback` before a bound, as the database would write it. `lookback` is of
    a kind that fits the bound; None keeps it."""
    if not lookback:
        return bound
    if isinstance(lookback, int):
        return str(int(bound) - lookback)
    if len(bound) == len("2024-02-29"):
        day = date.fromisoformat(bound)
        return (day - min(timedelta(lookback.days), day - date.min)).isoformat()
    at = datetime.fromisoformat(bound)
    first = datetime.min.replace(tzinfo=at.tzinfo)
    return (at - min(lookback, at - first)).isoformat(" ", "microseconds").replace("+00:00", "+00")


def later(one: str, other: str, lookback: int | timedelta | None) -> str:
    """Return the greater of two values of a cursor with this `lookback`; without one the first."""
    if not lookback:
        return one
    if isinstance(lookback, int):
        return max(one, other, key=int)
    return max(one, other, key=datetime.fromisoformat)


@dataclass(frozen=True)
class SeenRows:
    """The rows of a window, as the snapshot of one load had them.

    `low` is the least cursor of the window, as the database writes it; its end is the load's bound.
    `columns` are those whose values make an entry, each with a digest of how it is selected, and
    `key` has those of the key; none where rows are told apart by all their values.
    """

    low: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    entries: bytes

    def evidence(self) -> Evidence:
        """Return what the commit notes."""
        noted = {
            "low": self.low,
            "columns": dict(self.columns),
            "key": list(self.key),
            "entries": b64encode(self.entries).decode(),
        }
        return Evidence(({"window": noted},))


def read_seen(noted: Sequence[Evidence]) -> SeenRows:
    """Return what the newest of some loads has noted. Raises `NewerFormat`, and `LoadFailed` where
    it is not there."""
    try:
        window = noted[-1].inputs[0]["window"]
        check_format(window, SEEN_FORMAT, "the list of rows that the last load has seen")
        return SeenRows(
            window["low"],
            dict(window["columns"]),
            tuple(window["key"]),
            b64decode(window["entries"], validate=True),
        )
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise LoadFailed(
            "the list of rows that the last load has seen cannot be read",
            hint="restore the object that the last commit names, or remove the state of the table "
            "with `lakeload reset` and load it again",
        ) from error


def digests(selected: Sequence[SelectedColumn]) -> dict[str, str]:
    """Return each column with a digest of how its value is selected."""
    return {
        column.name: hashlib.sha256(column.expression.encode()).hexdigest()[:8]
        for column in selected
    }


@dataclass(frozen=True)
class Comparison:
    """How rows are compared with those that were seen: by entries of these columns, of which the
    first `length` bytes count."""

    columns: tuple[SelectedColumn, ...]
    length: int = ENTRY_BYTES


def comparison(
    seen: SeenRows, selected: Sequence[SelectedColumn], key: Collection[str], name: str
) -> Comparison:
    """Return how rows are compared where columns may have changed since.

    New columns do not count. Where one is gone or of another type, key and cursor decide. Raises
    `LoadFailed` where there is no key then.
    """
    now = digests(selected)
    known = tuple(column for column in selected if column.name in seen.columns)
    if tuple(key) == seen.key and all(
        now.get(column) == digest for column, digest in seen.columns.items()
    ):
        return Comparison(known)
    if key and tuple(key) == seen.key:
        return Comparison(known, ID_BYTES)
    changed = sorted(column for column, digest in seen.columns.items() if now.get(column) != digest)
    what = f"column `{changed[0]}` has changed" if changed else "`primary_key` has changed"
    raise LoadFailed(
        f"loading `{name}`: {what} since the last load, so the rows with its last cursor cannot be "
        "compared with those that were loaded",
        hint="undo the change, or load the table again after `lakeload reset`",
    )


def entries(packed: bytes, length: int = ENTRY_BYTES) -> Iterator[bytes]:
    """Yield the first `length` bytes of each entry."""
    for place in range(0, len(packed), ENTRY_BYTES):
        yield packed[place : place + length]


@dataclass(frozen=True)
class Unseen:
    """So many rows of one entry are new, beside those that were seen."""

    entry: bytes
    new: int
    seen: int


def unseen(now: bytes, before: bytes, length: int = ENTRY_BYTES) -> tuple[Unseen, ...]:
    """Return the entries of which there are more rows now than before: equal rows are counted."""
    known = Counter(entries(before, length))
    return tuple(
        Unseen(entry, count - known[entry], known[entry])
        for entry, count in Counter(entries(now, length)).items()
        if count > known[entry]
    )


def check_size(rows: int, name: str, *, lookback: bool) -> None:
    """Raise `LoadFailed` for a window with more rows than are kept."""
    if rows <= MOST_ROWS:
        return
    if lookback:
        what, hint = "the window of `lookback`", "set a shorter `lookback`"
    else:
        what, hint = "the greatest cursor", "choose a `cursor` with more different values"
    raise LoadFailed(
        f"loading `{name}`: {rows:,} rows are in {what}, and a load remembers "
        f"{MOST_ROWS:,} at most",
        hint=f"{hint}, or set `mode: UPSERT` (`table_format: ICEBERG`), which remembers none",
    )
