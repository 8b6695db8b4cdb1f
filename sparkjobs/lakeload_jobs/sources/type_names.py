"""Spark's names of types as the Arrow types that they stand for."""

from __future__ import annotations

import re
from typing import Literal, cast

import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.rows.arrow import Kind

TimestampUnit = Literal["s", "ms", "us", "ns"]


class UnknownType(ValueError):
    """A name of a type that text cannot be read as."""


_TYPES: dict[str, Kind] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_WITH_UNIT = re.compile(r"(timestamp|timestamp_ntz)\(\s*(s|ms|us|ns)\s*\)")
_ELEMENT = "element"
_TEXT = re.compile(r"(?:varchar|char|character)\(\s*\d+\s*\)")


def declared_type(name: str) -> tuple[Kind, TimestampUnit | None]:
    """Return what a name in `columns.types` stands for: the type, and for `timestamp(ms)` and the
    like what whole numbers count. Raises `UnknownType`."""
    if found := _WITH_UNIT.fullmatch(name.strip().lower()):
        return _TYPES[found[1]], cast(TimestampUnit, found[2])
    return text_type(name), None


def text_type(name: str) -> Kind:
    """Return the Arrow type that Spark's name of a type stands for. Raises `UnknownType`."""
    plain = name.strip().lower()
    plain = _ALIASES.get(plain, plain)
    if plain in _TYPES:
        return _TYPES[plain]
    if found := _DECIMAL.fullmatch(plain):
        precision, scale = int(found[1] or "10"), int(found[2] or "0")
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    if _TEXT.fullmatch(plain):
        return pa.string()
    raise UnknownType(f"text cannot be read as `{name}`")


def spark_name(kind: Kind) -> str:
    """Return Spark's name of a type, nested ones included. Raises `UnknownType`."""
    if pt.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        inner = ",".join(f"{_quoted(f.name)}:{spark_name(f.type)}" for f in fields)
        return f"struct<{inner}>"
    if pt.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if pt.is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    for name, own in _TYPES.items():
        if own == kind:
            return name
    raise UnknownType(f"text cannot be read as `{kind}`")


def nested_type(name: str) -> Kind:
    """Return the Arrow type of Spark's name of a type, nested ones included. Raises
    `UnknownType`."""
    parser = _TypeParser(name)
    kind = parser.kind()
    if not parser.is_done:
        raise UnknownType(f"JSON cannot be read as `{name}`")
    return kind


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def list_of(kind: Kind) -> Kind:
    """Return the type of lists, with names as Spark gives them."""
    return pa.list_(pa.field(_ELEMENT, kind))


_NESTED_TYPE = re.compile(r"(struct|array|map)\s*<\s*", re.IGNORECASE)
_PLAIN_TYPE = re.compile(r"[^(),>]*(\([^()]*\)[^(),>]*)*")
_QUOTED_NAME = re.compile(r"`((?:[^`]|``)*)`\s*")
_SPACES = re.compile(r"\s*")
_PLAIN_NAME = re.compile(r"([^: ,<>]*)\s*")


class _TypeParser:
    """`struct<a: int, b array<string>>` and the like."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._at = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left of the text."""
        return self._at == len(self._text)

    def kind(self) -> Kind:
        nested = _NESTED_TYPE.match(self._text, self._at)
        if nested is not None:
            self._at = nested.end()
            parse = {"struct": self._struct, "array": self._array, "map": self._map}
            return parse[nested[1].lower()]()
        name = self._taken(_PLAIN_TYPE)[0].strip()
        # What Spark adds to the field of a struct says nothing of its values.
        words = name.split()
        if [word.lower() for word in words[-2:]] == ["not", "null"]:
            name = " ".join(words[:-2])
        return text_type(name)

    def _struct(self) -> Kind:
        fields = []
        while not self._takes(">"):
            name = self._name()
            self._takes(":")
            fields.append(pa.field(name, self.kind()))
            if not self._takes(","):
                self._expect(">")
                break
        return pa.struct(fields)

    def _array(self) -> Kind:
        kind = self.kind()
        self._expect(">")
        return list_of(kind)

    def _map(self) -> Kind:
        key = self.kind()
        self._expect(",")
        value = self.kind()
        self._expect(">")
        if not pt.is_string(key):
            raise UnknownType("the keys of JSON objects are text: write `map<string,…>`")
        return pa.map_(key, value)

    def _name(self) -> str:
        if self._text.startswith("`", self._at):
            if _QUOTED_NAME.match(self._text, self._at) is None:
                raise UnknownType(f"`{self._text[self._at :]}` is not the name of a field")
            return self._taken(_QUOTED_NAME)[1].replace("``", "`")
        name = self._taken(_PLAIN_NAME)[1]
        if not name:
            raise UnknownType("a field of a struct has no name")
        return name

    def _taken(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        assert found is not None  # noqa: S101 - patterns that match anything
        self._at = found.end()
        return found

    def _takes(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        self._taken(_SPACES)
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise UnknownType(f"`{sign}` is missing in a type")
