"""Settings of columns, and the Spark types they may name."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from lakeload.config.model import Called, Finding, Model, refusal, refusals
from lakeload.config.scalars import Text
from lakeload.config.secret_names import shown
from lakeload_jobs.core.names import RESERVED_COLUMNS, did_you_mean, normalize

_SIMPLE = frozenset(
    {
        *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"),
        *("float", "real", "double", "decimal", "dec", "numeric", "string", "binary"),
        *("date", "timestamp", "timestamp_ntz", "timestamp_ltz"),
    }
)
_LATER = frozenset(["variant", "time", "interval", "void", "null", "geometry", "geography"])
_NESTED = ("array", "map", "struct")
_WITH_UNIT = ("timestamp", "timestamp_ntz")
_UNITS = ("s", "ms", "us", "ns")
"""Units of whole numbers since 1970, as in `timestamp(ms)`."""
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`|\w+)|([<>(),:])|(\S))")
MAX_PRECISION = 38


def check_type(text: str) -> str:
    """Return `text` if it is a Spark SQL type that lakeload loads, else raise a refusal."""
    parser = _Parser(text)
    parser.type(depth=0)
    if parser.next is not None:
        raise parser.unexpected()
    return text


class _Parser:
    """Recursive descent over at most a few dozen tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [m[1] or m[2] or m[3] for m in _TOKEN.finditer(text)]
        self._at = 0

    @property
    def next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def unexpected(self) -> PydanticCustomError:
        where = "ends too early" if self.next is None else f"has an unexpected `{self.next}`"
        return refusal(
            f"the type `{shown(self._text)}` {where}",
            "types look like `decimal(12,2)`, `array<string>` or `struct<a: int, b: string>`",
        )

    def type(self, depth: int) -> None:
        if depth > 10:
            raise refusal("the type is nested more than 10 levels deep")
        name = self._take().lower()
        if name in _NESTED:
            self._nested(name, depth)
        elif name in ("decimal", "dec", "numeric"):
            self._decimal()
        elif name in ("char", "character", "varchar"):
            self._expect("(")
            self._number(1, 2**31 - 1)
            self._expect(")")
        elif name in _WITH_UNIT and self.next == "(" and depth == 0:
            self._unit()
        elif name in _LATER:
            raise refusal(f"the type `{name}` is not supported yet", "load it as `string`")
        elif name not in _SIMPLE:
            if not re.fullmatch(r"\w+", name):
                self._at -= 1
                raise self.unexpected()
            known = sorted({*_SIMPLE, *_NESTED, "char", "varchar"})
            raise refusal(
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

    def _unit(self) -> None:
        self._expect("(")
        unit = self._take()
        if unit.lower() not in _UNITS:
            raise refusal(
                f"`{shown(unit)}` is no unit of time in the type `{shown(self._text)}`",
                f"it can be {', '.join(f'`{name}`' for name in _UNITS)}",
            )
        self._expect(")")

    def _number(self, low: int, high: int) -> int:
        token = self._take()
        if not token.isascii() or not token.isdigit():
            self._at -= 1
            raise self.unexpected()
        if len(token) > 10 or not low <= int(token) <= high:
            raise refusal(
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


ColumnType = Annotated[Text, Called("Spark SQL type"), AfterValidator(check_type)]


class Columns(Model):
    """Which columns, under which names, with which types. Keys are source names."""

    include: tuple[Text, ...] = ()
    """Only these columns. Default: all."""
    exclude: tuple[Text, ...] = ()
    """Not these columns."""
    rename: dict[Text, Text] = Field(default_factory=dict)
    """Source name → target name; it is normalised like any other."""
    types: dict[Text, ColumnType] = Field(default_factory=dict)
    """Source name → Spark SQL type, such as `decimal(12,2)`."""

    @model_validator(mode="after")
    def _fit_together(self) -> Columns:
        found = []
        included, excluded = set(self.include), set(self.exclude)
        for i, name in enumerate(self.exclude):
            if name in included:
                message = f"`{shown(name)}` is both included and excluded"
                found.append(Finding(message, "keep it in one of the lists", ("exclude", i)))
        for field in ("include", "exclude"):
            found += repeated(getattr(self, field), field)
        for source, target in self.rename.items():
            at = ("rename", source)
            if source in excluded or (included and source not in included):
                hint = "add it to `include`" if self.include else "remove it from `exclude`"
                message = f"`{shown(source)}` is renamed but not loaded"
                found.append(Finding(message, hint, at))
            if normalize(target).lower() in RESERVED_COLUMNS:
                message = f"`{shown(target)}` is reserved by lakeload or by query engines"
                found.append(Finding(message, "choose another name", at))
        found += _one_target_twice(self.rename)
        if found:
            raise refusals(found)
        return self

    def loads(self, name: str) -> bool:
        """Return whether a column of the source is loaded."""
        return name not in self.exclude and (not self.include or name in self.include)


def repeated(names: tuple[str, ...], field: str) -> list[Finding]:
    """Return a finding for each name that the list `field` has already."""
    seen: set[str] = set()
    found = []
    for i, name in enumerate(names):
        if name in seen:
            message = f"`{shown(name)}` is listed twice"
            found.append(Finding(message, "remove one of them", (field, i)))
        seen.add(name)
    return found


def _one_target_twice(rename: dict[str, str]) -> list[Finding]:
    owner: dict[str, str] = {}
    found = []
    for source, target in rename.items():
        first = owner.setdefault(normalize(target).lower(), source)
        if first != source:
            message = f"`{shown(first)}` and `{shown(source)}` would both be `{shown(target)}`"
            found.append(Finding(message, "choose another name", ("rename", source)))
    return found
