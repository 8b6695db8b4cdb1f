"""Types of written columns → Glue's, as Athena reads them (DESIGN section 7, "Types").

Columns are recorded by Spark's SQL names (`bigint`, `struct<a:int>`); `core.types` knows the types
by Spark's `typeName()`. https://docs.aws.amazon.com/athena/latest/ug/data-types.html
"""

from __future__ import annotations

import re

from lakeload_jobs.core.types import type_rule

MAX_TYPE_LENGTH = 131_072
"""Glue's limit for the text of one column's type."""

MAX_DEPTH = 100
"""Deeper than any data; reading a type takes a few Python frames for each level."""

_SPARK_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_GLUE_ALIASES = {"integer": "int"}
_WORD = re.compile(r"[a-z0-9_]+")
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")


class NoGlueType(ValueError):
    """A type that a Glue table cannot say, or that Athena does not read from Parquet."""


def glue_type(kind: str) -> str:
    """Return Glue's type for a recorded type, at any depth. Raises `NoGlueType`."""
    if _depth(kind) > MAX_DEPTH:
        raise NoGlueType(f"it is nested more than {MAX_DEPTH} levels deep")
    reader = _Reader(re.sub(r"\s", "", kind).lower())
    text = reader.read()
    if reader.rest:
        raise NoGlueType(f"`{kind}` is not a type")
    if len(text) > MAX_TYPE_LENGTH:
        raise NoGlueType(f"its text is longer than the {MAX_TYPE_LENGTH} characters Glue allows")
    return text


def same_glue_type(one: str, other: str) -> bool:
    """Return whether two Glue types are one type in different spellings."""
    return _plain(one) == _plain(other)


def _depth(kind: str) -> int:
    depth = deepest = 0
    for char in kind:
        depth += (char == "<") - (char == ">")
        deepest = max(deepest, depth)
    return deepest


def _plain(kind: str) -> str:
    text = re.sub(r"\s", "", kind).lower()
    return _WORD.sub(lambda word: _GLUE_ALIASES.get(word[0], word[0]), text)


class _Reader:
    """Reads one type from the front of `rest`."""

    def __init__(self, text: str) -> None:
        self.rest = text

    def read(self) -> str:
        """Return the Glue type of what comes next."""
        if decimal := _DECIMAL.match(self.rest):
            self.rest = self.rest[decimal.end() :]
            return decimal[0]
        name = self._word()
        if name in ("struct", "array", "map"):
            self._expect("<")
            inner = getattr(self, f"_{name}")()
            self._expect(">")
            return f"{name}<{inner}>"
        rule = type_rule(_SPARK_NAMES.get(name, name))
        if rule is None or rule.written != "AS_IS" or name == "decimal":
            raise NoGlueType(f"Glue and Athena have no type for `{name}`")
        return rule.glue

    def _struct(self) -> str:
        if self.rest.startswith(">"):
            raise NoGlueType("Athena cannot read a struct without fields")
        fields = [self._field()]
        while self.rest.startswith(","):
            self._expect(",")
            fields.append(self._field())
        return ",".join(fields)

    def _field(self) -> str:
        name = self._word()
        self._expect(":")
        return f"{name}:{self.read()}"

    def _array(self) -> str:
        return self.read()

    def _map(self) -> str:
        key = self.read()
        if "<" in key:
            raise NoGlueType(f"Athena reads maps with simple keys only, and this key is `{key}`")
        self._expect(",")
        return f"{key},{self.read()}"

    def _word(self) -> str:
        found = _WORD.match(self.rest)
        if found is None:
            raise NoGlueType(f"`{self.rest[:40]}` is not a type")
        self.rest = self.rest[found.end() :]
        return found[0]

    def _expect(self, text: str) -> None:
        if not self.rest.startswith(text):
            raise NoGlueType(f"`{text}` is missing before `{self.rest[:40]}`")
        self.rest = self.rest[len(text) :]
