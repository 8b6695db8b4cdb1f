"""Inspection of CSV files: their dialect, null texts and dates, columns and types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, cast

from lakeload.sources.files.formats.base import Guess, InspectedFile
from lakeload.sources.files.formats.csv.dialect import detect_dialect, null_texts
from lakeload.sources.files.formats.text import MAX_BYTES, TextRead, inferred, peek, read_text
from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.sources.files.text.opening import open_text
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState

_LINES = 500
"""Lines of the beginning, and later ones with null texts, that the dialect comes from."""


class CsvInspection:
    """Inspects CSV files, and takes any other text for one."""

    names: ClassVar[tuple[FileFormatName, ...]] = ("CSV",)

    def inspect(
        self, found: InspectedFile, start: bytes, files: FileBytes, *, whole: bool
    ) -> InspectedFile:
        """Return what a file holds with the dialect that it seems to have."""
        return _inspect_csv(found, files, start, whole=whole)

    def takes_long(self, file: FileState, reading: TextReading, files: FileBytes) -> bool:
        """Return False."""
        return False


def _inspect_csv(
    found: InspectedFile, files: FileBytes, start: bytes, *, whole: bool
) -> InspectedFile:
    before = found
    dialect = detect_dialect(start, whole=whole)
    guesses = (*dialect.guesses, *found.guesses)
    options = dialect.options | {guess.option: guess.value for guess in found.guesses}
    found = replace(
        found,
        format="CSV",
        guesses=guesses,
        options=options,
        warnings=dialect.warnings,
        rename={f"_c{place}": name for place, name in enumerate(dialect.names)},
    )
    read = read_text(found, files)
    if not whole and (nulls := _later_nulls(found, read)):
        lines = start.splitlines(keepends=True)[:_LINES] + _lines_with(nulls, found, files)
        again = _inspect_csv(before, files, b"".join(lines), whole=True)
        if again.columns.keys() == read.evidence.keys() and _reads_more(again, read, nulls):
            return again
    if dates := _date_format(read.texts):
        options = {**found.options, dates.option: dates.value}
        found = replace(found, guesses=(*found.guesses, dates), options=options)
        read = read_text(found, files)
    return read.into(found, _without_century(read.texts))


def _later_nulls(found: InspectedFile, read: TextRead) -> tuple[str, ...]:
    """Return texts that stand for null, and were not among the first records."""
    known = found.options.get("null_values", ())
    known = (*cast("tuple[str, ...]", known), *("\\N",) * ("backslash_escapes" in found.options))
    return tuple(text for text in null_texts(list(read.texts.values())) if text not in known)


def _lines_with(texts: Sequence[str], found: InspectedFile, files: FileBytes) -> list[bytes]:
    """Return the lines of a file that have one of the texts as a value; of `\\N`, which dumps have,
    those with any backslash."""
    separator = re.escape(str(found.options.get("separator", ",")).replace("\\t", "\t").encode())
    listed = b"|".join(re.escape(text.encode()) for text in texts)
    edge = separator + rb"|[\r\n\"]"
    value = re.compile(rb"(?:^|" + edge + rb")(?:" + listed + rb")(?:$|" + edge + rb")")
    codec = found.options.get("encoding")
    with open_text(files, found.file, str(codec) if codec else None) as text:
        lines = peek(text.stream, MAX_BYTES).splitlines(keepends=True)
    is_dump = "\\N" in texts
    return [line for line in lines if (is_dump and b"\\" in line) or value.search(line)][:_LINES]


def _reads_more(again: InspectedFile, read: TextRead, nulls: Sequence[str]) -> bool:
    """Whether other null texts make types of columns of text, or are those of databases."""
    columns = inferred(read.evidence)
    typed = [name for name, kind in columns.items() if kind == "string" != again.columns[name]]
    return bool(typed) or "\\N" in nulls


_SLASHED = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2\d{4}")
_WITHOUT_CENTURY = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{2}")


def _without_century(texts: dict[str, list[str]]) -> Iterator[str]:
    """Yield columns of dates that do not say which year they mean."""
    for name, values in texts.items():
        if values and all(map(_WITHOUT_CENTURY.fullmatch, values)):
            yield (
                f"column `{name}` is text: its dates, such as `{values[0]}`, have years of two "
                "digits, which `date_format` with `yy` would read as 2000 to 2099"
            )


def _date_format(texts: dict[str, list[str]]) -> Guess | None:
    """Return the pattern of dates that are not written as ISO 8601 has them, where it is clear."""
    patterns: set[str] = set()
    example = ""
    for values in texts.values():
        parts = [_SLASHED.fullmatch(text) for text in values]
        if not values or None in parts:
            if any(re.match(r"\d{4}-\d{2}-\d{2}$", text) for text in values[:100]):
                return None
            continue
        found = [part for part in parts if part is not None]
        first, second = (max(int(part[place]) for part in found) for place in (1, 3))
        signs = {part[2] for part in found}
        if len(signs) > 1 or (first > 12) == (second > 12):
            return None  # day and month may be either
        long = all(len(part[place]) == 2 for part in found for place in (1, 3))
        day, month = ("dd", "MM") if long else ("d", "M")
        order = (day, month) if first > 12 else (month, day)
        patterns.add(signs.pop().join((*order, "yyyy")))
        example = example or values[0]
    if len(patterns) != 1:
        return None
    return Guess("date_format", patterns.pop(), "HIGH", f"dates are written like `{example}`")
