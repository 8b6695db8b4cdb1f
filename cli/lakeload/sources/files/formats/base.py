"""Interface of a text format in the command line: what inspection finds in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.sources.files.text.mostly_numbers import NumberCounts
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.files.typed.columns import FileSchema
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState

Confidence = Literal["HIGH", "MEDIUM", "LOW"]
OptionValue = str | bool | int | tuple[str, ...]


@dataclass(frozen=True)
class Guess:
    """A reader option that was detected, how certain it is, and why, as a clause."""

    option: str
    value: OptionValue
    confidence: Confidence
    reason: str
    other: str = ""
    """The most likely alternative, as a line of YAML; '' for the usual one of this option."""

    @property
    def instead(self) -> str:
        """The line of YAML that makes the reader do otherwise."""
        return self.other or _OTHERWISE.get(self.option, "") or _opposite(self)


_OTHERWISE = {
    "comment": 'comment: ""',
    "encoding": "encoding: windows-1252",
    "null_values": "null_values: []",
    "quote": "quote: '\"'",
    "records": "records: $[*]",
    "skip_rows": "skip_rows: 0",
}


def _opposite(guess: Guess) -> str:
    if guess.option == "separator":
        return "separator: ','" if guess.value != "," else "separator: ';'"
    return f"{guess.option}: {str(not guess.value).lower()}"


Rows: TypeAlias = tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class InspectedFile:
    """One file. Where it cannot be loaded, `error` says why, and the rest is what is known."""

    file: FileState
    format: FileFormatName | None = None
    compression: str = ""
    encoding: str = ""
    """Of a text file, as it is read with `guesses`."""
    layout: str = ""
    """How the values of a JSON file follow each other, as a clause."""
    guesses: tuple[Guess, ...] = ()
    """The reader options that were detected, defaults too."""
    options: dict[str, OptionValue] = field(default_factory=dict)
    """Those that a configuration needs."""
    rename: dict[str, str] = field(default_factory=dict)
    """What a configuration has to call columns that the file does not name as it should."""
    columns: dict[str, str] = field(default_factory=dict)
    """Source columns and the types that a load infers."""
    rows: Rows = ()
    """The first rows, as text."""
    footer: FileSchema | None = field(default=None, compare=False, repr=False)
    """Of a Parquet, ORC or Avro file."""
    evidence: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What the types of text files come from: `inference.TypeEvidence` of each column."""
    numbers: NumberCounts | None = field(default=None, compare=False, repr=False)
    """The numbers of each column of a text file."""
    dates: dict[str, str] = field(default_factory=dict)
    """The types of the strings of JSON that are dates, as all values that were looked at; '' for
    other columns with values."""
    rows_read: int = 0
    """Rows that the types come from; for formats with a footer the rows of the file."""
    complete: bool = True
    """Whether all rows were read; a file with types of its own needs no more than its footer."""
    warnings: tuple[str, ...] = ()
    error: LakeloadError | None = None

    @property
    def codec(self) -> str | None:
        """The encoding that was detected; None for UTF-8 and what a byte order mark says."""
        return next((str(one.value) for one in self.guesses if one.option == "encoding"), None)


class TextInspection(Protocol):
    """How files of a text format are told from others, and what they hold."""

    names: ClassVar[tuple[FileFormatName, ...]]
    """The formats that are told apart here."""

    def inspect(
        self, found: InspectedFile, start: bytes, files: FileBytes, *, whole: bool
    ) -> InspectedFile | None:
        """Return what a file holds; None where it is of no format of these. `found` is what is
        known of it, `start` its beginning in UTF-8, or with `whole` all of it.

        Raises `LoadFailed` and `AwsError`.
        """

    def takes_long(self, file: FileState, reading: TextReading, files: FileBytes) -> bool:
        """Whether to find the columns of a file takes as long as to load it."""
