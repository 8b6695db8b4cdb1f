"""Values of JSON, as they are written, to values of a type; and the types they have.

A column holds each value as its bytes: `1.10`, `"x"`, `{"a":1}`; null is null, and so is a value
that an object does not have. Under a type of text a string is its characters and any other value
its bytes. Under any other type that is not nested a string stands for what it holds, so that `"7"`
is a number where the column is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.core.names import normalize
from lakeload_jobs.rows.arrow import Column, Kind, pc
from lakeload_jobs.rows.rejects import SET_ASIDE
from lakeload_jobs.sources.files.formats.json.records import split_lists, split_objects, to_arrow
from lakeload_jobs.sources.files.text.inference import ColumnEvidence
from lakeload_jobs.sources.files.text.options import Infer
from lakeload_jobs.sources.files.text.values import (
    DEFAULT_FORMATS,
    Positions,
    TextFormats,
    describe_bad,
    parse_text,
    shortened,
)
from lakeload_jobs.sources.type_names import (
    UnknownType,
    list_of,
    nested_type,
    spark_name,
    text_type,
)

Flags = npt.NDArray[np.bool_]
_NONE_BAD: Positions = np.zeros(0, np.int64)
MAX_NESTED_TYPES = 40
"""Values that are nested deeper are text. A list takes two levels of a Parquet schema, and Arrow
opens no file with more than 100; types are also walked by functions that call themselves."""


def _first_bytes(column: Column) -> npt.NDArray[np.uint8]:
    """Return the first byte of each value, 0 for null."""
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column)]
    codes = np.frombuffer(data or b"", np.uint8)
    if not len(codes):
        return np.zeros(len(column), np.uint8)
    first: npt.NDArray[np.uint8] = codes.take(starts, mode="clip")
    if column.null_count:
        first = np.where(column.is_valid().to_numpy(zero_copy_only=False), first, 0)
    return first


def texts(column: Column) -> Column:
    """Return values as text: strings are their characters, others are as they are written."""
    first = _first_bytes(column)
    is_string = first == ord('"')
    if not is_string.any():
        return column.view(pa.string())
    if (is_string | (first == 0)).all():
        inner = pc.binary_slice(column, 1, -1)
    else:
        inner = pc.if_else(to_arrow(is_string), pc.binary_slice(column, 1, -1), column)
    has_escape = pc.fill_null(pc.match_substring(column, "\\"), False)
    escaped = np.flatnonzero(has_escape.to_numpy(zero_copy_only=False) & is_string)
    if len(escaped):
        written = column.take(to_arrow(escaped)).to_pylist()
        plain = json.loads(b"[" + b",".join(written) + b"]")
        mask = np.zeros(len(column), bool)
        mask[escaped] = True
        values = pa.array(plain, pa.string()).cast(pa.binary())
        inner = pc.replace_with_mask(inner, to_arrow(mask), values)
    return inner.view(pa.string())


def parse_json(
    column: Column, kind: Kind, formats: TextFormats = DEFAULT_FORMATS
) -> tuple[Column, Positions]:
    """Return the values of a column as `kind`, null where bad, and the positions of the bad ones.

    A value within a nested one that is bad is null, and its row one of those returned. Fields that
    `kind` does not have are left out. Raises `UnknownType`.
    """
    if pt.is_struct(kind):
        return _nested(column, kind, ord("{"), lambda held: _structs(held, kind, formats))
    if pt.is_map(kind):
        return _nested(column, kind, ord("{"), lambda held: _maps(held, kind, formats))
    if pt.is_list(kind):
        return _nested(column, kind, ord("["), lambda held: _lists(held, kind, formats))
    values, bad = parse_text(texts(column), kind, formats)
    if pt.is_binary(kind) and formats.binary == "BASE64":
        # The characters of numbers and booleans can be Base64, too.
        first = _first_bytes(column)
        is_other = (first != 0) & (first != ord('"'))
        if is_other.any():
            values = pc.if_else(to_arrow(is_other), pa.scalar(None, kind), values)
            bad = np.union1d(bad, np.flatnonzero(is_other))
    return values, bad


def _nested(
    column: Column, kind: Kind, sign: int, parse: Callable[[Column], tuple[Column, Positions]]
) -> tuple[Column, Positions]:
    """Parse the values that begin with a sign; others are bad."""
    first = _first_bytes(column)
    fits = first == sign
    rows = np.flatnonzero(fits)
    if not len(rows):
        return pa.nulls(len(column), kind), np.flatnonzero(first != 0)
    values, bad = parse(column if len(rows) == len(column) else column.filter(to_arrow(fits)))
    if len(rows) == len(column):
        return values, bad
    places = np.cumsum(fits) - 1
    values = values.take(to_arrow(places, mask=~fits))
    return values, np.union1d(rows[bad], np.flatnonzero((first != 0) & ~fits))


def _structs(column: Column, kind: Kind, formats: TextFormats) -> tuple[Column, Positions]:
    members = split_objects(column)
    arrays, bad = [], [_NONE_BAD]
    for number in range(kind.num_fields):
        own = kind.field(number)
        values, wrong = parse_json(members.column(own.name), own.type, formats)
        arrays.append(values)
        bad.append(wrong)
    fields = [kind.field(number) for number in range(kind.num_fields)]
    return pa.StructArray.from_arrays(arrays, fields=fields), np.unique(np.concatenate(bad))


def _maps(column: Column, kind: Kind, formats: TextFormats) -> tuple[Column, Positions]:
    members = split_objects(column)
    values, bad = parse_json(members.values(), kind.item_type, formats)
    names = pa.array(members.names, pa.string())
    keys = names.take(to_arrow(members.name_numbers))
    counts = np.bincount(members.object_numbers, minlength=len(column))
    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    maps: Column = pa.MapArray.from_arrays(to_arrow(offsets), keys, values, type=kind)
    return maps, np.unique(members.object_numbers[bad])


def _lists(column: Column, kind: Kind, formats: TextFormats) -> tuple[Column, Positions]:
    offsets, elements = split_lists(column)
    values, bad = parse_json(elements, kind.value_type, formats)
    lists = pa.ListArray.from_arrays(to_arrow(offsets), values, type=kind)
    return lists, np.unique(np.searchsorted(offsets, bad, side="right") - 1)


def describe_bad_json(raw: bytes, kind: Kind, formats: TextFormats = DEFAULT_FORMATS) -> str:
    """Return a clause for messages: the first value that is bad, shortened, where it is within a
    nested one, and what was expected."""
    path, raw, kind = _first_bad(raw, kind, formats)
    column = pa.array([raw], pa.binary())
    within = f"at `{path.removeprefix('.')}`: " if path else ""
    if pt.is_nested(kind):
        shown = shortened(raw[:200].decode(errors="replace"))
        what = "a list" if pt.is_list(kind) else "an object"
        return f"{within}`{shown}` is not {what}"
    return within + describe_bad(texts(column)[0].as_py(), kind, formats)


def _first_bad(raw: bytes, kind: Kind, formats: TextFormats) -> tuple[str, bytes, Kind]:
    column = pa.array([raw], pa.binary())
    within: list[tuple[str, Column, Kind]] = []
    if (pt.is_struct(kind) or pt.is_map(kind)) and raw[:1] == b"{":
        members = split_objects(column)
        inner = {name: members.column(name) for name in members.names}
        if pt.is_map(kind):
            within = [(f".{name}", inner[name], kind.item_type) for name in inner]
        else:
            fields = [kind.field(number) for number in range(kind.num_fields)]
            within = [(f".{f.name}", inner[f.name], f.type) for f in fields if f.name in inner]
    elif pt.is_list(kind) and raw[:1] == b"[":
        _, elements = split_lists(column)
        within = [
            (f"[{number}]", elements.slice(number, 1), kind.value_type)
            for number in range(len(elements))
        ]
    for step, value, own in within:
        if len(parse_json(value, own, formats)[1]):
            path, bad, bad_kind = _first_bad(value[0].as_py(), own, formats)
            return step + path, bad, bad_kind
    return "", raw, kind


@dataclass(frozen=True)
class JsonValues:
    """How values of JSON are read (`splits.Values`)."""

    formats: TextFormats
    mode: Infer = "SAFE"
    nested_as_text: bool = False

    def evidence(self, recorded: str | None) -> JsonEvidence:
        """Return the evidence of a column before a value was seen."""
        return JsonEvidence(self.formats, recorded, self.mode, self.nested_as_text)

    def parse(self, column: Column, kind: Kind, formats: TextFormats) -> tuple[Column, Positions]:
        """Return the values of a column, null where bad, and the positions of the bad ones."""
        return parse_json(column, kind, formats)

    def describe_bad(self, value: Any, kind: Kind, formats: TextFormats) -> str:
        """Return a clause for messages: the value, shortened, and what was expected."""
        return describe_bad_json(value, kind, formats)

    def as_text(self, column: Column) -> Column:
        """Return values as they are shown: strings without their quotes."""
        return texts(column)

    def record_hint(self, reason: str) -> str:
        """Return what to do about a broken record."""
        return f"fix the file, or {SET_ASIDE}"


class Seen(Flag):
    """What kinds of values a column has."""

    NOTHING = 0
    STRING = auto()
    NUMBER = auto()
    BOOLEAN = auto()
    OBJECT = auto()
    LIST = auto()


_NESTED = Seen.OBJECT | Seen.LIST


@dataclass
class JsonEvidence:
    """What all values of a column seen so far are: the evidence of JSON (`inference`)."""

    formats: TextFormats = DEFAULT_FORMATS
    recorded: str | None = None
    """The type of the column in the table, as Spark names it."""
    mode: Infer = "SAFE"
    nested_as_text: bool = False
    seen: Seen = Seen.NOTHING
    numbers: ColumnEvidence = field(default_factory=ColumnEvidence)
    all_texts: ColumnEvidence = field(default_factory=ColumnEvidence)
    """Of all values that are not nested, where a type of text may hold them."""
    fields: dict[str, JsonEvidence] = field(default_factory=dict)
    element: JsonEvidence | None = None
    depth: int = 0
    """How many objects and lists the values are in."""

    @property
    def values(self) -> int:
        """How many values are numbers."""
        return self.numbers.values

    @property
    def number_type(self) -> str:
        """The type of numbers that all values are of; '' where they are of none."""
        return "" if self.seen & ~Seen.NUMBER else self.numbers.number_type

    def __post_init__(self) -> None:
        if self.seen is Seen.NOTHING:
            self.numbers = ColumnEvidence(self.formats)
            self.all_texts = ColumnEvidence(self.formats)

    def add(self, column: Column) -> None:
        """Take all values of a column."""
        if column.null_count:
            column = column.drop_null()
        if not len(column):
            return
        first = _first_bytes(column)
        is_string = first == ord('"')
        is_object, is_list = first == ord("{"), first == ord("[")
        is_boolean = (first == ord("t")) | (first == ord("f"))
        is_number = ~(is_string | is_object | is_list | is_boolean)
        flags = (is_string, is_number, is_boolean, is_object, is_list)
        for kind, flag in zip(Seen, flags, strict=True):
            if flag.any():
                self.seen |= kind
        if is_number.any():
            self.numbers.add(_only(column, is_number).view(pa.string()))
        if self._takes_texts and (is_string | is_number | is_boolean).any():
            self.all_texts.add(texts(_only(column, ~(is_object | is_list))))
        if self.nested_as_text:
            return
        if is_object.any():
            members = split_objects(_only(column, is_object))
            for name in members.names:
                self._field(name).add(members.column(name))
        if is_list.any():
            _, elements = split_lists(_only(column, is_list))
            if self.element is None:
                self.element = self._inner(_element_of(self._recorded_kind))
            self.element.add(elements)

    def merge(self, other: JsonEvidence) -> None:
        """Take in what was seen of other rows."""
        self.seen |= other.seen
        self.numbers.merge(other.numbers)
        self.all_texts.merge(other.all_texts)
        for name, evidence in other.fields.items():
            self._field(name).merge(evidence)
        if other.element is not None:
            if self.element is None:
                self.element = self._inner(_element_of(self._recorded_kind))
            self.element.merge(other.element)

    def fits(self, kind: str) -> bool:
        """Return whether every value is exactly one of a type, which Spark names so."""
        if self.seen is Seen.NOTHING or pt.is_string(text_type(kind)):
            return True
        return not self.seen & _NESTED and self.all_texts.fits(kind)

    def infer(self, mode: Infer = "SAFE") -> str:
        """Return the type of the column, as Spark names it: that of the table for a nested value
        of which nothing is known."""
        recorded = self._recorded_kind
        if recorded is not None and (
            self.seen is Seen.NOTHING
            or (self.seen is Seen.OBJECT and not self.fields and pt.is_struct(recorded))
        ):
            return spark_name(recorded)
        return spark_name(self._kind(mode))

    @cached_property
    def _recorded_kind(self) -> Kind | None:
        if self.recorded is None:
            return None
        try:
            return nested_type(self.recorded)
        except UnknownType:
            return None

    @cached_property
    def _recorded_fields(self) -> _Fields:
        return _Fields(self._recorded_kind)

    @property
    def _takes_texts(self) -> bool:
        return self.mode == "FULL" or (self.recorded or "string") != "string"

    def _field(self, name: str) -> JsonEvidence:
        if name not in self.fields:
            self.fields[name] = self._inner(self._recorded_fields.kind(name))
        return self.fields[name]

    def _inner(self, recorded: Kind | None) -> JsonEvidence:
        name = None if recorded is None else spark_name(recorded)
        depth = self.depth + 1
        as_text = depth >= MAX_NESTED_TYPES
        return JsonEvidence(self.formats, name, self.mode, as_text, depth=depth)

    def _kind(self, mode: Infer) -> Kind:
        seen = self.seen
        if seen is Seen.OBJECT and self.fields and not self.nested_as_text:
            return pa.struct([(name, inner._settled(mode)) for name, inner in self.fields.items()])
        if seen is Seen.LIST and self.element is not None and not self.nested_as_text:
            return list_of(self.element._settled(mode))
        if seen & _NESTED or seen is Seen.NOTHING or mode == "STRINGS":
            return pa.string()
        if mode == "FULL":
            return text_type(self.all_texts.infer(mode))
        if seen is Seen.NUMBER:
            return text_type(self.numbers.infer(mode))
        return pa.bool_() if seen is Seen.BOOLEAN else pa.string()

    def _settled(self, mode: Infer) -> Kind:
        """Return the type of a value within others: that of the table, where it holds all."""
        recorded = self._recorded_kind
        if recorded is None or pt.is_nested(recorded) or not self.fits(spark_name(recorded)):
            return nested_type(self.infer(mode))
        return recorded


def _only(column: Column, flags: Flags) -> Column:
    return column if flags.all() else column.filter(to_arrow(flags))


class _Fields:
    """The types of the fields of the table's struct: names there are normalised."""

    def __init__(self, kind: Kind | None) -> None:
        fields = list(kind) if kind is not None and pt.is_struct(kind) else []
        self._by_name = {field.name: field.type for field in reversed(fields)}
        self._by_lower_name = {field.name.lower(): field.type for field in reversed(fields)}

    def kind(self, name: str) -> Kind | None:
        """Return the type of a field, as the source names it; None where it is new."""
        if name in self._by_name:
            return self._by_name[name]
        return self._by_lower_name.get(normalize(name, lower=True)) if self._by_name else None


def _element_of(kind: Kind | None) -> Kind | None:
    return kind.value_type if kind is not None and pt.is_list(kind) else None
