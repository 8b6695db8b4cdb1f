"""What a text file holds by Python's `csv` and `json`: no code of the product takes part."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

csv.field_size_limit(1 << 30)
Rows = list[list[str | None]]


@dataclass(frozen=True)
class Refused:
    """A file that must not be loaded: the line of its first broken record."""

    line: int


def decoded(content: bytes, encoding: str | None) -> str | Refused:
    """Return the text of a file: by a byte order mark, by its encoding, or as UTF-8."""
    marks = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
             (codecs.BOM_UTF16_BE, "utf-16-be"))  # fmt: skip
    for mark, name in marks:
        if content.startswith(mark):
            return content[len(mark) :].decode(name)
    try:
        return content.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        return Refused(content[: error.start].count(b"\n") + 1)


def csv_rows(content: bytes, options: Mapping[str, str]) -> tuple[list[str], Rows] | Refused:
    """Return the names of a CSV file and its rows as text, None for null."""
    text = decoded(content, options.get("encoding"))
    if isinstance(text, Refused):
        return text
    quote, escape = options.get("quote", '"'), options.get("escape")
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=options.get("separator", ",").replace("\\t", "\t"),
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        escapechar=escape,
        strict=True,
    )
    records: list[list[str]] = []
    line = 1
    try:
        for record in _records(reader):
            if records and record and len(record) != len(records[0]):
                if any(record):
                    return Refused(line)
                record = [""] * len(records[0])  # separators alone
            if record or (records and len(records[0]) == 1):
                records.append(record)
            line = reader.line_num + 1
    except csv.Error:
        return Refused(line)
    if options.get("header") == "true":
        names, *records = records
    else:
        names = [f"_c{place}" for place in range(len(records[0]))]
    nulls = ("", *null_values(options))
    return names, [
        [None if value in nulls else value for value in record] or [None] for record in records
    ]


def null_values(options: Mapping[str, str]) -> Sequence[str]:
    """Return the texts that stand for null."""
    given = options.get("null_values", "")
    return [given] if given else []


def _records(reader: Any) -> Iterator[list[str]]:
    yield from reader


class _Number(str):
    """A number as it is written."""


def json_records(content: bytes) -> list[dict[str, Any]] | Refused:
    """Return the records of JSON lines, of a stream of objects or of one array of objects.

    Values are as `stored` writes them.
    """
    text = decoded(content, None)
    if isinstance(text, Refused):
        return text
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_float=_Number, parse_int=_Number, parse_constant=_constant
    )
    at, in_array = 0, False
    records: list[dict[str, Any]] = []
    at = _blanks(text, at)
    if text[at : at + 1] == "[":
        in_array, at = True, _blanks(text, at + 1)
    while at < len(text) and not (in_array and not records and text[at] == "]"):
        line = text.count("\n", 0, at) + 1
        try:
            record, at = decoder.raw_decode(text, at)
            json.dumps(record, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return Refused(line)
        if not isinstance(record, dict):
            return Refused(line)
        records.append(stored(record)["object"])
        at = _blanks(text, at)
        if in_array:
            sign, at = text[at : at + 1], _blanks(text, at + 1)
            if sign == "]":
                return records if at >= len(text) else Refused(text.count("\n", 0, at) + 1)
            if sign != "," or text[at : at + 1] in ("]", ""):
                return Refused(text.count("\n", 0, at) + 1)
    if in_array:
        return records if text[at + 1 :].strip(_BLANKS) == "" and at < len(text) else Refused(1)
    return records


_BLANKS = " \t\r\n"


def _blanks(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _BLANKS:
        at += 1
    return at


def stored(value: Any) -> Any:
    """Return a value as the corpus stores it: numbers as they are written."""
    if isinstance(value, _Number):
        return {"number": str(value)}
    if isinstance(value, dict):
        return {"object": {key: stored(item) for key, item in value.items()}}
    return {"list": [stored(item) for item in value]} if isinstance(value, list) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def said(value: Any) -> Any:
    """Return a value as JSON: what is no text, list or mapping as its text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        at = value if value.tzinfo is None else value.astimezone(UTC)
        return at.isoformat(timespec="microseconds")
    if isinstance(value, dict):
        return {name: said(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [said(one) for one in value]
    return repr(value) if isinstance(value, float) else str(value)
