"""CSV: facts, options and how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakeload_jobs.sources.files.formats.base import TextFormat
from lakeload_jobs.sources.files.formats.csv.options import (
    CSV_ALIASES,
    CSV_OPTIONS,
    read_csv_options,
)
from lakeload_jobs.sources.files.text.options import OptionProblem

if TYPE_CHECKING:
    from lakeload_jobs.sources.files.text.reading import TextReading


class CsvFormat(TextFormat):
    """Values with separators between them, one record after the other."""

    name = "CSV"
    title = "CSV"
    endings = (".csv", ".tsv")
    usual_options = {"header": True}  # noqa: RUF012
    often_set = ("separator", "quote", "encoding", "null_values")
    own_options = (*CSV_OPTIONS, *CSV_ALIASES)

    def value_problems(self, options: Mapping[str, str]) -> Sequence[OptionProblem]:
        """Return the values that options do not take, and those that make no sense together."""
        return read_csv_options(options)[1]

    def reading(self, options: Mapping[str, str], *, nested_as_text: bool = False) -> TextReading:
        """Return how CSV files with these options are read; their values are never nested."""
        # With Arrow, which the documents alone do without.
        from lakeload_jobs.sources.files.formats.csv.reader import CsvReading

        return CsvReading(options)


CSV = CsvFormat()
