"""Interface of a format of text: how its files are read, with the options that they have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakeload_jobs.rows.arrow import Kind
from lakeload_jobs.sources.files.text.batches import ALL_COLUMNS, Columns
from lakeload_jobs.sources.files.text.inference import Values
from lakeload_jobs.sources.files.text.opening import is_splittable
from lakeload_jobs.sources.files.text.options import TextOptions
from lakeload_jobs.sources.files.text.splits import Declared, PartReader
from lakeload_jobs.sources.files.text.values import TextFormats
from lakeload_jobs.sources.files.united_columns import OTHER_TABLE_HINT
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.type_names import TimestampUnit, declared_type, text_type


@dataclass(frozen=True)
class TextReading(ABC):
    """How text files with some options are read. `written` are the options as they were written."""

    written: Mapping[str, str]

    @property
    @abstractmethod
    def options(self) -> TextOptions:
        """The options, with the defaults of those that are not written."""

    @property
    @abstractmethod
    def values(self) -> Values:
        """How values are read, and what they say of the type of their column."""

    def text_formats(self, **others: Any) -> TextFormats:
        """Return how values are written: dates and times as the options say, and `others`."""
        options = self.options
        return TextFormats(
            date_pattern=options.date_format,
            timestamp_pattern=options.timestamp_format,
            timestamp_ntz_pattern=options.timestamp_ntz_format,
            zone=options.time_zone,
            **others,
        )

    @property
    def infers(self) -> bool:
        """Whether values say a type at all."""
        return True

    @property
    def line_break(self) -> bytes:
        """What ends a record."""
        return b"\n"

    @property
    def keeps_order(self) -> bool:
        """Whether columns have an order, so that files say which columns they lack."""
        return True

    @abstractmethod
    def reader(
        self,
        files: FileBytes,
        loaded: Columns = ALL_COLUMNS,
        *,
        known: Collection[str] = (),
        sets_aside: bool = False,
        stored: Mapping[str, tuple[str, ...]] | None = None,
    ) -> PartReader:
        """Return what reads those columns of files that are `loaded`. `known` are the names that
        earlier loads have used; `sets_aside`: broken records are set aside.

        `stored` are the columns of files in whose place there are rejected records: in UTF-8, and
        without what comes before the first record. None: there are files.
        """

    def second_reader(
        self, reader: PartReader, schema: pa.Schema, declared: Declared
    ) -> PartReader:
        """Return what reads files again whose values are known to be of the types in `schema`."""
        return reader

    def can_be_cut(self, files: FileBytes, file: FileState) -> bool:
        """Whether any part of a file can be read by itself. Opens the file."""
        return is_splittable(files, file, self.options.encoding)

    def declared_type(self, name: str) -> tuple[Kind, TimestampUnit | None]:
        """Return a type of `columns.types`. Raises `UnknownType`."""
        return declared_type(name)

    def inferred_type(self, name: str) -> Kind:
        """Return a type that values say, by its name."""
        return text_type(name)

    def other_table_hint(self, names: Sequence[str], wanted: Sequence[str]) -> str:
        """Return what to do about a file with the columns `names`, none of which is `wanted`."""
        return OTHER_TABLE_HINT
