"""Columns of text whose values are mostly numbers, and the first value that is none.

Values are counted while all of a column are numbers. From then on a few of a batch are looked at,
which is enough to know whether most are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pyarrow as pa

from lakeload_jobs.core.type_conflicts import types_setting
from lakeload_jobs.rows.arrow import Column, pc
from lakeload_jobs.sources.files.text.batches import TextBatch
from lakeload_jobs.sources.files.text.inference import TypeEvidence, Values, undeclared_formats
from lakeload_jobs.sources.files.text.values import (
    Positions,
    TextFormats,
    is_value,
    parse_text,
    shortened,
    without_null_texts,
)
from lakeload_jobs.sources.type_names import text_type

_MOSTLY = 0.8
_LIKELY = 0.5
"""Below this share of numbers a column is left alone."""
_BEGINNING = "^[+-]?.?[0-9]"
_SAMPLE = 32
"""Values of a batch that are looked at."""
_ENOUGH = 4 * _SAMPLE
_SHOWN = 3
"""Columns that are named of those that one line makes text."""
_KINDS = ("", "bigint", "decimal(38,0)", "double")
"""Types of numbers; most columns of two of them are of the later one."""


@dataclass(frozen=True)
class OtherValue:
    """A value that is no number of its column's type. `text` is how it is written, and `content` is
    that without the quotes of JSON, which a declared type does not mind."""

    text: str
    content: str
    path: str
    line: int


@dataclass(frozen=True)
class MostlyNumbers:
    """How many values of a column are numbers, of what type, and the first value that is not."""

    values: float = 0
    numbers: float = 0
    sampled: int = 0
    kind: str = ""
    other: OtherValue | None = None

    def merged(self, later: MostlyNumbers) -> MostlyNumbers:
        """Return what was seen here and then in later rows."""
        return MostlyNumbers(
            self.values + later.values,
            self.numbers + later.numbers,
            self.sampled + later.sampled,
            max(self.kind, later.kind, key=_KINDS.index),
            self.other or later.other,
        )

    @property
    def is_likely(self) -> bool:
        """Whether the column is looked at any further."""
        return self.values < _SAMPLE or self.numbers >= _LIKELY * self.values

    def moved(self, lines: int) -> MostlyNumbers:
        """Return it as found so many lines further down."""
        if self.other is None:
            return self
        return replace(self, other=replace(self.other, line=self.other.line + lines))

    def warning(self, name: str, formats: TextFormats) -> str:
        """Return what to say of a column that is text, '' unless most of its values are numbers."""
        if self.other is None or self.numbers < _MOSTLY * self.values:
            return ""
        content, double = self.other.content, pa.float64()
        at = f"`{shortened(self.other.text)}` in `{self.other.path}`, line {self.other.line:,},"
        said = f"column `{name}` is text: most of its values are numbers, and {at}"
        if is_value(content, double, formats) and not is_value(
            content, double, undeclared_formats(formats)
        ):
            setting = types_setting({name: "double"})
            return f"{said} has more digits than a `double`; `{setting}` rounds it"
        setting = f"`{types_setting({name: self.kind})}`"
        if is_value(content, text_type(self.kind), formats):
            return f"{said} is text; with {setting} it is a number"
        return f"{said} is no `{self.kind}`; with {setting} it is a bad value"


@dataclass
class NumberCounts:
    """The numbers of each column of a file, or of a part of it, as it is read."""

    path: str
    values: Values
    columns: dict[str, MostlyNumbers] = field(default_factory=dict)

    def add(self, batch: TextBatch, name: str, evidence: TypeEvidence) -> None:
        """Take a column of a batch that `evidence` has taken."""
        kind = evidence.number_type
        seen = self.columns.get(name, MostlyNumbers())
        if kind:
            self.columns[name] = MostlyNumbers(evidence.values, evidence.values, kind=kind)
        elif seen.sampled < _ENOUGH and seen.is_likely:
            self.columns[name] = seen.merged(self._look(batch, name, seen))

    def _look(self, batch: TextBatch, name: str, seen: MostlyNumbers) -> MostlyNumbers:
        """Look at some values of a batch, and find the first that is no number."""
        # Strings of JSON keep their quotes, and are no numbers.
        column = batch.rows.column(name).view(pa.string())
        column = without_null_texts(column, self.values.formats.typed_null_texts)
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        if not len(rows):
            return MostlyNumbers()
        places = np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.int64))
        sample = column.take(pa.array(rows[places]))
        begin = pc.mean(pc.match_substring_regex(sample, _BEGINNING)).as_py()
        if begin < _LIKELY and not seen.values and len(rows) >= _SAMPLE:
            return MostlyNumbers(len(rows), 0, len(sample))
        kind, bad = self._best_type(sample)
        numbers = len(rows) * (1 - len(bad) / len(sample))
        looked = MostlyNumbers(len(rows), numbers, len(sample), kind)
        if seen.other is not None or not seen.merged(looked).is_likely:
            return looked
        kind, bad = self._best_type(column)
        other = self._other(batch, name, int(bad[0])) if len(bad) else None
        return replace(looked, kind=kind, other=other)

    def _other(self, batch: TextBatch, name: str, row: int) -> OtherValue:
        value = batch.rows.column(name).slice(row, 1)
        content = self.values.as_text(value)
        (line,) = batch.lines([row])
        return OtherValue(value.view(pa.string())[0].as_py(), content[0].as_py(), self.path, line)

    def _best_type(self, column: Column) -> tuple[str, Positions]:
        """Return the type that most values are of, the first of several, and the rows of the
        others."""
        exact = undeclared_formats(self.values.formats)
        bad = {kind: parse_text(column, text_type(kind), exact)[1] for kind in _KINDS[1:]}
        return min(bad.items(), key=lambda item: len(item[1]))


def number_warnings(
    names: Sequence[str], counts: Sequence[Mapping[str, MostlyNumbers]], formats: TextFormats
) -> tuple[str, ...]:
    """Return what to say of columns of text whose values are mostly numbers. `counts` are those of
    the files, and of their parts, in order."""
    places: dict[tuple[str, int], list[str]] = {}
    warnings: dict[str, str] = {}
    for name in names:
        seen = [columns[name] for columns in counts if name in columns]
        merged = reduce(MostlyNumbers.merged, seen, MostlyNumbers())
        if (warning := merged.warning(name, formats)) and merged.other:
            warnings[name] = warning
            places.setdefault((merged.other.path, merged.other.line), []).append(name)
    for (_, line), (first, *others) in places.items():
        if len(others) < _SHOWN:
            continue
        # A line such as the second one of a header.
        shown = ", ".join(f"`{shortened(name)}`" for name in others[:_SHOWN])
        more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
        warnings[first] += f"; line {line:,} does the same to {shown}{more}"
        warnings = {name: text for name, text in warnings.items() if name not in others}
    return tuple(warnings.values())
