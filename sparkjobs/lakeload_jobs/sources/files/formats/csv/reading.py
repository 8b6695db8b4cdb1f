"""How CSV files are read, with the options that they have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from lakeload_jobs.sources.files.text.batches import ALL_COLUMNS, Columns
from lakeload_jobs.sources.files.text.csv_files import CsvReader, other_table_hint
from lakeload_jobs.sources.files.text.inference import Infer
from lakeload_jobs.sources.files.text.options import CsvOptions, read_csv_options
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.files.text.splits import Declared, PieceReader, TextValues
from lakeload_jobs.sources.files.text.values import TextFormats, reads_alike
from lakeload_jobs.sources.paths.file_bytes import FileBytes


@dataclass(frozen=True)
class CsvReading(TextReading):
    """How CSV files with some options are read."""

    @cached_property
    def options(self) -> CsvOptions:
        """The options."""
        return read_csv_options(self.written)[0]

    @property
    def encoding(self) -> str | None:
        """The encoding that is set."""
        return self.options.encoding

    @property
    def infer(self) -> Infer:
        """Which types values may say."""
        return self.options.infer

    @property
    def infers(self) -> bool:
        """Whether values say a type: with STRINGS all are text."""
        return self.infer != "STRINGS"

    @property
    def line_break(self) -> bytes:
        """What ends a record."""
        return self.options.line_break.encode() or b"\n"

    @cached_property
    def values(self) -> TextValues:
        """How values are read."""
        options = self.options
        return TextValues(
            TextFormats(
                # With backslash escapes null is known by how it is written.
                null_texts=() if options.backslash_escapes else options.null_values,
                empty_is_text=options.backslash_escapes,
                nan_words=(options.nan_value,),
                infinity_words=(options.positive_infinity,),
                minus_infinity_words=(options.negative_infinity,),
                decimal_mark=options.decimal_mark,
                thousands_mark=options.thousands_mark,
                date_pattern=options.date_format,
                timestamp_pattern=options.timestamp_format,
                timestamp_ntz_pattern=options.timestamp_ntz_format,
                zone=options.time_zone,
            )
        )

    def reader(
        self,
        files: FileBytes,
        loaded: Columns = ALL_COLUMNS,
        *,
        known: Collection[str] = (),
        sets_aside: bool = False,
        stored: Mapping[str, tuple[str, ...]] | None = None,
    ) -> CsvReader:
        """Return what reads files, or rejected records, of which the first is no header."""
        options = self.options if stored is None else replace(self.options, encoding=None)
        return CsvReader(files, options, frozenset(known), loaded, stored or {})

    def second_reader(
        self, reader: PieceReader, schema: pa.Schema, declared: Declared
    ) -> PieceReader:
        """Return what lets Arrow read columns whose values it reads alike."""
        if not isinstance(reader, CsvReader):
            return reader
        kinds = {
            column.name: column.type
            for column in schema
            if reads_alike(column.type, declared.formats.get(column.name, self.values.formats))
        }
        return replace(reader, kinds=kinds)

    def other_table_hint(self, names: Sequence[str], wanted: Sequence[str]) -> str:
        """Return what to do about a file of another table: its separator may be another."""
        options = self.options
        return other_table_hint(names, wanted, options.separator, has_header=options.header)
