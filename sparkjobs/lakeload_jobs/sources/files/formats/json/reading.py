"""How JSON files are read, with the options that they have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from lakeload_jobs.rows.arrow import Column, Kind
from lakeload_jobs.sources.files.text.batches import ALL_COLUMNS, Columns
from lakeload_jobs.sources.files.text.inference import Infer
from lakeload_jobs.sources.files.text.json_files import JsonReader
from lakeload_jobs.sources.files.text.json_values import JsonValues, json_type, texts
from lakeload_jobs.sources.files.text.options import JsonOptions, read_json_options
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.files.text.values import TextFormats
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.type_names import TimestampUnit, UnknownType, declared_type


@dataclass(frozen=True)
class JsonReading(TextReading):
    """How JSON files with some options are read. `lines`: each record is a line, else files hold
    one value or more, or a list. `nested_as_text`: objects and lists are loaded as they are
    written."""

    lines: bool = False
    nested_as_text: bool = False

    @cached_property
    def options(self) -> JsonOptions:
        """The options."""
        return read_json_options(self.written)[0]

    @property
    def encoding(self) -> str | None:
        """The encoding that is set."""
        return self.options.encoding

    @property
    def infer(self) -> Infer:
        """Which types values may say."""
        return self.options.infer

    @cached_property
    def values(self) -> JsonValues:
        """How values are read."""
        options = self.options
        formats = TextFormats(
            date_pattern=options.date_format,
            timestamp_pattern=options.timestamp_format,
            timestamp_ntz_pattern=options.timestamp_ntz_format,
            zone=options.time_zone,
            binary="BASE64",
        )
        return JsonValues(formats, options.infer, self.nested_as_text)

    @property
    def keeps_order(self) -> bool:
        """Return False: the order of keys says nothing, and records may lack any."""
        return False

    def reader(
        self,
        files: FileBytes,
        loaded: Columns = ALL_COLUMNS,
        *,
        known: Collection[str] = (),
        sets_aside: bool = False,
        stored: Mapping[str, tuple[str, ...]] | None = None,
    ) -> JsonReader:
        """Return what reads files, or rejected records, whatever was around them."""
        options = self.options
        if stored is not None:
            options = replace(options, encoding=None, records=())
        return JsonReader(files, options, self.lines, loaded, sets_aside)

    def can_be_cut(self, files: FileBytes, file: FileState) -> bool:
        """Whether each line is a record, in a text that can be read from any byte."""
        return self.lines and super().can_be_cut(files, file)

    def declared_type(self, name: str) -> tuple[Kind, TimestampUnit | None]:
        """Return a type of `columns.types`, nested ones included. Raises `UnknownType`."""
        try:
            return declared_type(name)
        except UnknownType:
            return json_type(name), None

    def inferred_type(self, name: str) -> Kind:
        """Return a type that values say, nested ones included."""
        return json_type(name)

    def as_text(self, column: Column) -> Column:
        """Return values as text, to be shown."""
        return texts(column)
