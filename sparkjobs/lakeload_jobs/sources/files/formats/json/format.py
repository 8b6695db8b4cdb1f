"""JSON and NDJSON: facts, options and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.sources.files.formats.base import TextFormat
from lakeload_jobs.sources.files.formats.json.options import (
    JSON_ALIASES,
    JSON_OPTIONS,
    read_json_options,
)
from lakeload_jobs.sources.files.text.options import OptionProblem

if TYPE_CHECKING:
    from lakeload_jobs.sources.files.text.reading import TextReading


class JsonFormat(TextFormat):
    """Values of JSON, of any layout: one, several, or a list of them."""

    name: ClassVar[FileFormatName] = "JSON"
    title = "JSON"
    endings = (".json", ".geojson")
    own_options: ClassVar[tuple[str, ...]] = (*JSON_OPTIONS, *JSON_ALIASES)
    lines = False
    """Whether each line is a record."""

    def value_problems(self, options: Mapping[str, str]) -> Sequence[OptionProblem]:
        """Return the values that options do not take."""
        return read_json_options(options)[1]

    def reading(self, options: Mapping[str, str], *, nested_as_text: bool = False) -> TextReading:
        """Return how JSON files with these options are read."""
        # With Arrow, which the documents alone do without.
        from lakeload_jobs.sources.files.formats.json.reader import JsonReading

        return JsonReading(options, self.lines, nested_as_text)


class NdjsonFormat(JsonFormat):
    """Values of JSON, one on each line."""

    name = "NDJSON"
    title = "NDJSON"
    endings = (".jsonl", ".ndjson")
    own_options = tuple(name for name in JsonFormat.own_options if name != "records")
    lines = True


JSON = JsonFormat()
NDJSON = NdjsonFormat()
