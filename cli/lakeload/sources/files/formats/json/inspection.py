"""Inspection of JSON files: how their values follow each other, columns and types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import pyarrow as pa

from lakeload.sources.files.formats.base import Confidence, Guess, InspectedFile
from lakeload.sources.files.formats.text import MAX_BYTES, START_BYTES, TextRead, peek, read_text
from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.sources.files.formats.json.reader import JsonReading
from lakeload_jobs.sources.files.formats.json.records import first_list, path_step
from lakeload_jobs.sources.files.formats.registry import named_format
from lakeload_jobs.sources.files.text.inference import ColumnEvidence
from lakeload_jobs.sources.files.text.opening import open_text
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState


class JsonInspection:
    """Inspects JSON files, whatever the layout of their values is."""

    names: ClassVar[tuple[FileFormatName, ...]] = ("JSON", "NDJSON")

    def inspect(
        self, found: InspectedFile, start: bytes, files: FileBytes, *, whole: bool
    ) -> InspectedFile | None:
        """Return what a file holds; None for one that is not JSON, nor named so."""
        layout = json_layout(start, whole=whole) or _named_json(found.file.path, start)
        if layout is None:
            return None
        if layout.is_large and layout.records:
            layout = _read_further(layout, found, files)
        return _inspect_json(found, layout, files)

    def takes_long(self, file: FileState, reading: TextReading, files: FileBytes) -> bool:
        """Whether a file is one object whose types take long to find out."""
        if not isinstance(reading, JsonReading) or reading.lines or reading.options.records:
            return False
        with open_text(files, file, reading.options.encoding) as text:
            start = peek(text.stream, START_BYTES + 1)
        layout = json_layout(start, whole=len(start) <= START_BYTES)
        return layout is not None and layout.is_large


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""Numbers may have more digits than Python converts."""


@dataclass(frozen=True)
class JsonLayout:
    """How JSON values follow each other: LINES, ARRAY, VALUE or STREAM, in words."""

    format: FileFormatName
    reason: str
    records: str = ""
    """The path of the records in an object."""
    is_large: bool = False
    """It is one object of more than the bytes that were looked at."""
    is_cut: bool = False
    """More follows behind what was read of the records."""
    nested: str = ""
    """The path of a list of objects that may be the records."""


def json_layout(start: bytes, *, whole: bool) -> JsonLayout | None:
    """Return how the values of a JSON file are laid out, None for what is not JSON. `start` is
    its beginning, or with `whole` all of it."""
    text = start.decode(errors="replace").lstrip()
    if not text or text[0] not in "{[":
        return None
    try:
        _, end = _DECODER.raw_decode(text)
    except RecursionError:
        # Whoever reads the records says that they are nested too deep.
        return JsonLayout("JSON", "it is nested deep")
    except ValueError as error:
        # The value goes on behind what was read: what is there must be good as far as it goes.
        cut = isinstance(error, json.JSONDecodeError) and (
            error.msg.startswith("Unterminated") or error.pos >= len(text) - 16
        )
        if whole or not cut:
            return None
        found = _one_value(text)
        return replace(found, is_large=text[0] == "{")
    rest = text[end:]
    if not rest.strip():
        return _one_value(text)
    if "\n" not in text[:end] and rest.lstrip(" \t\r")[:1] == "\n":
        return JsonLayout("NDJSON", "each line is a value")
    return JsonLayout("JSON", "several values follow each other")


def _named_json(path: str, start: bytes) -> JsonLayout | None:
    """Return the layout of what is JSON by its name and first character, and cannot be read."""
    named = named_format(path)
    if named not in JsonInspection.names or start.lstrip()[:1] not in (b"{", b"["):
        return None
    return JsonLayout(named, "its name says so")


def _read_further(layout: JsonLayout, found: InspectedFile, files: FileBytes) -> JsonLayout:
    """Return the layout with records that are the one list of objects in more of the file too."""
    with open_text(files, found.file, found.codec) as text:
        start = peek(text.stream, MAX_BYTES + 1)
    if _wrapped(start.decode(errors="replace").lstrip()) == layout.records:
        return replace(layout, is_cut=len(start) > MAX_BYTES)
    return replace(layout, records="", nested=layout.records)


def _one_value(text: str) -> JsonLayout:
    if text[0] == "[":
        return JsonLayout("JSON", "it is one list")
    records = _wrapped(text)
    nested = None if records else first_list(text.encode())
    return JsonLayout("JSON", "it is one object", records, nested=nested or "")


def _wrapped(text: str) -> str:
    """Return the path of the one list of records in an object, beside values that are none; ''
    where there is no such list. The text may be cut."""
    blanks = re.compile(r"[\s,]*")
    lists: list[str] = []
    at = 1
    while True:
        at = cast("re.Match[str]", blanks.match(text, at)).end()
        try:
            key, at = _DECODER.raw_decode(text, at)
            at = text.index(":", at) + 1
            at = cast("re.Match[str]", blanks.match(text, at)).end()
            value, end = _DECODER.raw_decode(text, at)
        except RecursionError:
            return ""
        except ValueError:
            if re.match(r"\[\s*\{", text[at:]):
                lists.append(key)
            break
        at = end
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            if len(value) < _RECORDS or not all(isinstance(one, dict) for one in value):
                return ""
            lists.append(key)
    return f"${path_step(lists[0])}[*]" if len(lists) == 1 and "'" not in lists[0] else ""


_RECORDS = 2
"""So many objects in a list may be the records of a wrapped export."""


def _inspect_json(found: InspectedFile, layout: JsonLayout, files: FileBytes) -> InspectedFile:
    guesses = list(found.guesses)
    if layout.records:
        reason = "it is the one list of objects in the object"
        reason += ", as far as the file was read" if layout.is_cut else ""
        confidence: Confidence = "LOW" if layout.is_cut else "MEDIUM"
        guesses.append(Guess("records", layout.records, confidence, reason))
    options = {guess.option: guess.value for guess in guesses}
    if layout.nested:
        reason = f"the object is one row; the list in it is `{layout.nested}`"
        instead = f"records: {json.dumps(layout.nested, ensure_ascii=False)}"
        guesses.append(Guess("records", "$[*]", "LOW", reason, instead))
    found = replace(
        found,
        format=layout.format,
        layout=layout.reason,
        guesses=tuple(guesses),
        options=options,
    )
    # Types of all that is nested in a large object take minutes where its keys are values.
    as_text = layout.is_large and not layout.records
    read = read_text(found, files, as_text=as_text)
    if as_text and not layout.nested:
        warning = "a large object: what is nested in it is shown as text"
        found = replace(found, warnings=(*found.warnings, warning))
    dates = {name: _date_type(read, name) for name in read.texts if read.texts[name]}
    return replace(read.into(found, _one_object(read)), dates=dates)


_DATES = ("date", "timestamp", "timestamp_ntz")


def _date_type(read: TextRead, name: str) -> str:
    """Return the type of a column whose texts are dates of ISO 8601, '' for any other."""
    texts = read.texts[name]
    if name in read.blank or not _ISO.match(texts[0]):
        return ""
    seen = ColumnEvidence()
    seen.add(pa.array(texts, pa.string()))
    kind = seen.infer("SAFE")
    return kind if kind in _DATES else ""


_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


_MANY_KEYS = 100


def _one_object(read: TextRead) -> Iterator[str]:
    """Yield a warning of an object whose keys are likely to be values."""
    if read.rows_read == 1 and len(read.evidence) > _MANY_KEYS:
        yield f"it is one object, and its {len(read.evidence):,} keys are columns of one row"
