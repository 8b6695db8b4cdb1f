"""Iceberg's types, read from the texts that Iceberg's Java library and pyiceberg both write.

`struct<3: city: optional string, 4: zip: required int (a comment)>` carries ids and comments, which
say nothing of a type; a list or a map does not say whether its elements may be null.
https://iceberg.apache.org/spec/#schemas-and-data-types
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Primitive:
    """A type without parts: `long`, or `decimal` with (precision, scale), `fixed` with (length)."""

    name: str
    sizes: tuple[int, ...] = ()

    def __str__(self) -> str:
        """As Iceberg writes it."""
        if self.name == "fixed" and self.sizes:
            return f"fixed[{self.sizes[0]}]"
        sizes = ", ".join(str(size) for size in self.sizes)
        return f"{self.name}({sizes})" if sizes else self.name


@dataclass(frozen=True)
class Field:
    """A field of a struct."""

    name: str
    type: IcebergType
    required: bool = False


@dataclass(frozen=True)
class Struct:
    """Named fields."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        """Without ids: `struct<city: string, zip: int>`."""
        return f"struct<{', '.join(f'{field.name}: {field.type}' for field in self.fields)}>"


@dataclass(frozen=True)
class ListOf:
    """A list of elements of one type."""

    element: IcebergType

    def __str__(self) -> str:
        """As Iceberg writes it."""
        return f"list<{self.element}>"


@dataclass(frozen=True)
class MapOf:
    """A map."""

    key: IcebergType
    value: IcebergType

    def __str__(self) -> str:
        """As Iceberg writes it."""
        return f"map<{self.key}, {self.value}>"


IcebergType: TypeAlias = Primitive | Struct | ListOf | MapOf

_PRIMITIVE = re.compile(r"[a-z][a-z0-9_]*")
_SIZES = re.compile(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)|\[\s*(\d+)\s*\]")
_PARAMETERS = re.compile(r"\([^()<>]*\)")
_FIELD = re.compile(r"\d+: (?P<name>.+?): (?P<null>optional|required) ", re.DOTALL)
_PLAIN_FIELD = re.compile(r"(?P<name>[^:<>,]+): ?(?P<null>(?:optional|required) )?")
_COMMENT = re.compile(r" \((?s:.*?)\)(?=, \d+: |>)")


def parse_type(text: str) -> IcebergType:
    """Read a type. Raises `ValueError` naming the text when it is none."""
    reader = _Reader(text.strip())
    found = reader.type()
    if reader.at != len(reader.text):
        raise reader.error()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self) -> ValueError:
        return ValueError(f"`{self.text}` is not a type of Iceberg, from character {self.at + 1}")

    def type(self) -> IcebergType:
        if self._take("struct<"):
            return self._struct()
        if self._take("list<"):
            element = self.type()
            self._need(">")
            return ListOf(element)
        if self._take("map<"):
            key = self.type()
            self._need(",")
            self._take(" ")
            value = self.type()
            self._need(">")
            return MapOf(key, value)
        return self._primitive()

    def _primitive(self) -> Primitive:
        name = self._match(_PRIMITIVE)
        if name is None:
            raise self.error()
        if name[0] in ("decimal", "fixed"):
            sizes = self._match(_SIZES)
            if sizes is None:
                raise self.error()
            return Primitive(name[0], tuple(int(size) for size in sizes.groups() if size))
        # geometry(srid:4326), geography(…): the parameters belong to the name.
        parameters = self._match(_PARAMETERS) if name[0].startswith("geo") else None
        return Primitive(name[0] + (parameters[0] if parameters else ""))

    def _struct(self) -> Struct:
        fields: list[Field] = []
        while not self._take(">"):
            if fields:
                self._need(",")
                self._take(" ")
            fields.append(self._field())
            self._match(_COMMENT)
        return Struct(tuple(fields))

    def _field(self) -> Field:
        match = self._match(_FIELD) or self._match(_PLAIN_FIELD)
        if match is None:
            raise self.error()
        return Field(match["name"], self.type(), (match["null"] or "").strip() == "required")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def _take(self, literal: str) -> bool:
        taken = self.text.startswith(literal, self.at)
        self.at += len(literal) if taken else 0
        return taken

    def _need(self, literal: str) -> None:
        if not self._take(literal):
            raise self.error()
