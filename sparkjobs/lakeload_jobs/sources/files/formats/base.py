"""Interface of a format of source files: what both programs ask in place of comparing its name.

A format is `TextFormat`, whose files are text and whose values say the types of columns, or
`TypedFormat`, whose files say them. The facts need no Arrow, which the documents alone do without:
methods that open files import what reads them when they are called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.sources.files.text.options import OptionProblem

if TYPE_CHECKING:
    from lakeload_jobs.sources.files.text.reading import TextReading
    from lakeload_jobs.sources.files.typed.columns import Column, FileSchema
    from lakeload_jobs.sources.files.typed.rows import FormatReader
    from lakeload_jobs.sources.paths.file_bytes import FileBytes
    from lakeload_jobs.sources.paths.file_state import FileState

SessionSetting = Callable[[str], str]
"""Returns a property of the Spark session, '' for one that it does not have."""

LISTING_OPTIONS = (
    *("basePath", "modifiedAfter", "modifiedBefore", "pathGlobFilter"),
    "recursiveFileLookup",
)
"""Options that choose files, whatever their format."""

_REFUSED = {
    "mode": "`on_bad_value` says what happens to bad values",
    "columnnameofcorruptrecord": "`on_bad_value: NULL` counts bad records in the result",
    "ignorecorruptfiles": "it would skip rows silently; fix or exclude the file",
    "ignoremissingfiles": "it would skip rows silently",
    "path": "name the files in the table's `path`",
    "paths": "name the files in the table's `path`",
    "multiline": "`format: JSON` reads records of many lines, `format: NDJSON` one on each",
    "compression": "the content decides",
}


class FileFormat(ABC):
    """One format of source files."""

    name: ClassVar[FileFormatName]
    title: ClassVar[str]
    """The name in sentences."""
    endings: ClassVar[tuple[str, ...]]
    """How names of its files end, but for the ending of what packed them."""
    usual_options: ClassVar[Mapping[str, bool]] = {}
    """Options that a new configuration has where no file was looked at."""
    often_set: ClassVar[tuple[str, ...]] = ()
    """Options that a new configuration names in a comment."""
    magic: ClassVar[bytes] = b""
    """How each file begins; b'' where only its text tells."""
    has_types: ClassVar[bool]
    """Whether files say the types of their columns and how many rows they have."""
    own_options: ClassVar[tuple[str, ...]]
    """The reader options of the format, as documented: Spark ignores one that it does not know, so
    `delimeter` would silently do nothing."""
    spark_options: ClassVar[tuple[str, ...]] = ()
    """Further ones, with which Spark reads the files."""
    spark_jars: ClassVar[frozenset[str]] = frozenset()
    """The sets of jars that Spark's reader takes."""
    spark_reads: ClassVar[bool] = False
    """Whether Spark's reader is one of those that read the files without such an option."""

    @property
    def options(self) -> tuple[str, ...]:
        """All reader options. Names are compared without case, as Spark does."""
        return tuple(sorted({*LISTING_OPTIONS, *self.own_options, *self.spark_options}))

    def only_spark(self, options: Mapping[str, str]) -> str | None:
        """Return an option that only Spark's reader knows; None where there is none."""
        own = {name.lower() for name in self.spark_options}
        return next((option for option in options if option.lower() in own), None)

    def option_problems(self, options: Mapping[str, str]) -> list[OptionProblem]:
        """Return every option that the format does not have, and every value that one does not
        take."""
        known = {name.lower() for name in self.options}
        problems = []
        for option in options:
            name = option.lower()
            if name in known:
                continue
            if name in _REFUSED:
                message = f"the reader option `{option}` belongs to lakeload"
                hint: str | None = _REFUSED[name]
            else:
                message = f"{self.name} has no reader option `{option}`"
                hint = did_you_mean(option, self.options)
            problems.append(OptionProblem(option, message, hint))
        return [*problems, *self.value_problems(options)]

    @abstractmethod
    def value_problems(self, options: Mapping[str, str]) -> Sequence[OptionProblem]:
        """Return the values that options of the format do not take."""


class TextFormat(FileFormat):
    """A format of text: each value is read once for the type of its column, then as that type."""

    has_types = False

    @abstractmethod
    def reading(self, options: Mapping[str, str], *, nested_as_text: bool = False) -> TextReading:
        """Return how files with these options are read, and where they can be cut.
        `nested_as_text`: nested values stay as they are written."""


class TypedFormat(FileFormat):
    """A format whose files say their columns and types, and of which parts they are."""

    has_types = True
    counting_reads: ClassVar[bool] = False
    """Whether a file has to be read to its end to know how many rows it has."""

    @abstractmethod
    def schemas(
        self,
        files: Sequence[FileState],
        opener: FileBytes,
        *,
        sets_aside: bool = False,
        counts: bool = True,
        setting: SessionSetting | None = None,
    ) -> tuple[FileSchema, ...]:
        """Return what each file says of its columns and of the parts that can be read by
        themselves. With `sets_aside` a file that cannot be read has a `fault`. `counts` is False
        where nobody needs the parts of files of a format that is `counting_reads`. `setting` is of
        the session whose tasks read them; None is Spark as it starts.

        Raises `UnreadableFile`, `LoadFailed` and `AwsError`.
        """

    @abstractmethod
    def reader(self, opener: FileBytes, *, exact: bool = True, whole: bool = True) -> FormatReader:
        """Return what reads parts of files; it travels to the tasks. `exact` is False where digits
        that a type does not have may be cut off, and `whole` where the first rows of a part are
        enough."""

    def damage_hint(self, columns: Sequence[Column]) -> str:
        """Return what to do about a file whose `columns` Arrow cannot decode."""
        return "check the file"

    def value_problems(self, options: Mapping[str, str]) -> Sequence[OptionProblem]:
        """Return the values that options of the format do not take."""
        return [
            OptionProblem(
                option,
                f"the reader option `{option}: {value}` has no such value",
                f"it is {' or '.join(_ON_LOSS)}",
            )
            for option, value in options.items()
            if option.lower() == "on_loss" and str(value).upper() not in _ON_LOSS
        ]


_ON_LOSS = ("FAIL", "TRUNCATE")
