"""A grammar of Spark SQL's types, enough to find mistakes before Spark starts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakeload.config.secret_names import shown
from lakeload_jobs.core.names import did_you_mean

_SIMPLE = frozenset(
    {
        "boolean",
        "tinyint",
        "byte",
        "smallint",
        "short",
        "int",
        "integer",
        "bigint",
        "long",
        "float",
        "real",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "timestamp_ltz",
        "decimal",
        "dec",
        "numeric",
    }
)
_LATER = frozenset(["variant", "time", "interval", "void", "null", "geometry", "geography"])
_NESTED = ("array", "map", "struct")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`|\w+)|([<>(),:])|(\S))")
MAX_PRECISION = 38


@dataclass(frozen=True)
class TypeProblem:
    """Why a text is not a type."""

    message: str
    hint: str | None = None


class _Refused(Exception):
    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.problem = TypeProblem(message, hint)


def type_problem(text: str) -> TypeProblem | None:
    """Say why `text` is not a Spark SQL type that lakeload loads, or return None."""
    parser = _Parser(text)
    try:
        parser.type(depth=0)
        if parser.next is not None:
            raise parser.unexpected()
    except _Refused as refused:
        return refused.problem
    return None


class _Parser:
    """Recursive descent over at most a few dozen tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [m[1] or m[2] or m[3] for m in _TOKEN.finditer(text)]
        self._at = 0

    @property
    def next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def unexpected(self) -> _Refused:
        where = "ends too early" if self.next is None else f"has an unexpected `{self.next}`"
        return _Refused(
            f"the type `{shown(self._text)}` {where}",
            "types look like `decimal(12,2)`, `array<string>` or `struct<a: int, b: string>`",
        )

    def type(self, depth: int) -> None:
        if depth > 10:
            raise _Refused("the type is nested more than 10 levels deep")
        name = self._take().lower()
        if name in _NESTED:
            self._nested(name, depth)
        elif name in ("decimal", "dec", "numeric"):
            self._decimal()
        elif name in ("char", "character", "varchar"):
            self._expect("(")
            self._number(1, 2**31 - 1)
            self._expect(")")
        elif name in _LATER:
            raise _Refused(f"the type `{name}` is not supported yet", "load it as `string`")
        elif name not in _SIMPLE:
            if not re.fullmatch(r"\w+", name):
                self._at -= 1
                raise self.unexpected()
            known = sorted({*_SIMPLE, *_NESTED, "char", "varchar"})
            raise _Refused(
                f"Spark SQL has no type `{shown(name)}`",
                _SAME_THING.get(name) or did_you_mean(name, known),
            )

    def _nested(self, name: str, depth: int) -> None:
        self._expect("<")
        if name == "struct":
            self._fields(depth)
        else:
            self.type(depth + 1)
            if name == "map":
                self._expect(",")
                self.type(depth + 1)
        self._expect(">")

    def _fields(self, depth: int) -> None:
        while True:
            if re.match(r"[`\w]", self._take()) is None:
                self._at -= 1
                raise self.unexpected()
            if self.next == ":":
                self._take()
            self.type(depth + 1)
            if self.next != ",":
                return
            self._take()

    def _decimal(self) -> None:
        if self.next != "(":
            return
        self._take()
        precision = self._number(1, MAX_PRECISION)
        if self.next == ",":
            self._take()
            self._number(0, precision)
        self._expect(")")

    def _number(self, low: int, high: int) -> int:
        token = self._take()
        if not token.isascii() or not token.isdigit():
            self._at -= 1
            raise self.unexpected()
        if len(token) > 10 or not low <= int(token) <= high:
            raise _Refused(
                f"`{shown(token)}` is out of range in the type `{shown(self._text)}`",
                f"it can be {low} to {high} here",
            )
        return int(token)

    def _expect(self, token: str) -> None:
        if self.next != token:
            raise self.unexpected()
        self._at += 1

    def _take(self) -> str:
        if (token := self.next) is None:
            raise self.unexpected()
        self._at += 1
        return token


_SAME_THING = {
    "text": "write `string`",
    "str": "write `string`",
    "uuid": "write `string`",
    "json": "write `string`",
    "bool": "write `boolean`",
    "int64": "write `bigint`",
    "int32": "write `int`",
    "datetime": "write `timestamp`, or `timestamp_ntz` without time zone",
    "timestamptz": "write `timestamp`",
    "number": "write `decimal(38,18)` or `double`",
    "bytes": "write `binary`",
    "bytea": "write `binary`",
}
