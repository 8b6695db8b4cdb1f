"""Interface of a source in the job: Source → Slice → Rows.

A `Source` says what is new since the table's bookmark; the `Slice` is that answer, given before a
row is read; its `Rows` are read. Formats write rows and keep the state that a source wants kept;
neither looks into the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from lakeload_jobs.contract.errors import Interrupted, LakeloadError, LoadFailed
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange
from lakeload_jobs.core.comments import NO_COMMENTS, Comments
from lakeload_jobs.rows.failures import failure_in

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Reader = Literal["jvm", "direct"]
Spellings = tuple[tuple[str, str], ...]
Keys = Callable[[Sequence[str]], "DataFrame"]
"""Returns columns of a source, by their names there, in the types of `Rows.schema`."""
CheckType = Callable[[str, str], None]
"""Reads a column of the source as a type of `columns.types`. Raises `BadValuesFound`, or what
reading with that setting raises."""

_SHOWN = 10


@dataclass(frozen=True)
class EarlierColumns:
    """What earlier loads have made of the columns of a source, by their names there: the Spark
    types that they have in the table, and the `targets` that the column map has."""

    types: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str]:
        """The column of the table that each name is."""
        return {name: name for name in self.types} | dict(self.targets)


NO_COLUMNS = EarlierColumns()


class Source(Protocol):
    """One table's input, in one run."""

    @property
    def incremental(self) -> bool:
        """Whether loads go on from where the last one ended, and do not read all each time."""

    def slice(self, bookmark: Bookmark) -> Slice:
        """Return what a load has to read, going on from `bookmark`.

        Raises `LakeloadError` for input that is missing or refused, and for a state that is not
        this source's.
        """

    def close(self) -> None:
        """Give back what slices hold, such as connections. Called when the load has ended."""


class Slice(Protocol):
    """What one load reads, known before it reads."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing new to read."""

    @property
    def records_anyway(self) -> bool:
        """Whether an idle slice is worth a commit without rows: it makes the next run quicker."""

    @property
    def must_record(self) -> bool:
        """Whether an idle slice has something that a commit without rows has to remember."""

    @property
    def sentence(self) -> str:
        """What is new, for people; '' where everything is read each time."""

    @property
    def more(self) -> bool:
        """Whether a limit leaves files or rows that are new for a later load."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may not be meant, such as rows that are appended once more."""

    @property
    def bytes(self) -> int | None:
        """How much is to be read, as far as that is known."""

    @property
    def change(self) -> StateChange | None:
        """The change of the pipeline's state, where it is known before the read; None where nothing
        is kept, or only `Rows.finish` knows it."""

    def noted(self, rejected_from: Collection[str]) -> Evidence | None:
        """Return what to note beside the state, None for nothing. `rejected_from` names the parts
        of the source, such as files, of which some records were set aside."""

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Return the rows. A source keeps to the types of `earlier` columns where it can.

        Raises `LakeloadError` for input that cannot be read and settings it does not bear out.
        """


class AllRows:
    """Base of a slice that reads everything each time: nothing is remembered between loads."""

    idle: bool = False
    records_anyway: bool = False
    must_record: bool = False
    more: bool = False
    sentence: str = ""
    warnings: tuple[str, ...] = ()
    bytes: int | None = None
    change: StateChange | None = None

    def noted(self, rejected_from: Collection[str]) -> Evidence | None:
        """Return None: nothing is remembered of what was read."""


def unchecked(*given: object) -> None:
    """Do nothing: what `Rows` does where a source has nothing to say."""


@dataclass(frozen=True)
class Rows:
    """The rows of a slice, ready to be read."""

    spark: SparkSession
    """The session in which Spark reads or evaluates what Arrow does not."""
    schema: StructType
    """The columns of the batches; they may also have the helper columns of `rows.tracking`."""
    names: tuple[str, ...]
    """The source's columns; none where the source has none, and so no rows."""
    splits: Splits
    only_spark: str = ""
    """Why Spark reads the source, as a clause; '' where Python does, inside the tasks."""
    spellings: Spellings = ()
    """Other spellings of `names` that are in the source, each with the name."""
    repeatable: bool = True
    """Whether a second read gives the same rows in the same parts. Where it does not, no pass
    counts them and `_supa_index` is sparse."""
    count_reads_all_columns: bool = False
    """Whether a pass over fewer columns could count other rows, or miss one that is bad."""
    keys: Keys | None = None
    """Returns columns of every row that the source has, also of those that this load does not read:
    the rows of one moment, with those of `splits`. None where nothing returns them."""
    comments: Comments = NO_COMMENTS
    """The comments that the source has, by its names of columns."""
    warnings: tuple[str, ...] = ()
    """What may not be meant, known when the rows were opened."""
    check_type: CheckType | None = None
    """Checks whether a column can be read as another type. None where `columns.types` does nothing
    but cast the values."""
    check_unchanged: Callable[[], None] = unchecked
    """Raises `LoadFailed` when the source is not what it was when the slice was taken. Called when
    all has been read, before the commit."""
    check_read: Callable[[int | None], None] = unchecked
    """Raises `LoadFailed` where Spark reads other rows than the source says it has, or hides that
    it is damaged. Called before repeatable rows are written, with the rows that there are, None
    where they were not counted."""
    check_values: Callable[[], None] = unchecked
    """Raises `LoadFailed` with the first bad values of all rows and how many there are, where
    values turn out to be bad while rows are read, and `ReadAgain` where whole files are set aside
    that turn out to be unreadable. Called when a task has failed for some."""
    finish: Callable[[Sequence[Any]], StateChange | None] = unchecked
    """Returns the change of the state that only the read could tell; None where `Slice.change`
    holds. It is given what the read of each part returned, in their order: those attempts at tasks
    whose output is about to be committed, and no other. Empty where rows are repeatable."""

    @property
    def reader(self) -> Reader:
        """Who reads the source."""
        return "jvm" if self.only_spark else "direct"

    @property
    def counts(self) -> tuple[int, ...] | None:
        """The rows of each part, where they are known without reading it."""
        return self.splits.counts


@dataclass(frozen=True)
class Splits:
    """Rows as Arrow record batches, in parts that tasks read on their own.

    `parts` and `read` travel to the tasks, so both can be pickled and hold references to secrets,
    never a secret. `read` yields the batches of one part, with those columns of `Rows.names` that
    the table loads, in the types of `Rows.schema`. What the iterator returns when it ends (the
    value of its StopIteration; JSON) is told to `Rows.finish`.

    `counts` are the rows of each part where that is known without reading them.
    """

    parts: tuple[Any, ...]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    counts: tuple[int, ...] | None = None
    unfinished: Unfinished | None = None
    """Where Spark has to do something with what `read` yields."""
    frame: DataFrame | None = None
    """Where Spark hands over the rows: part n is partition n of this frame, and `read` is given its
    batches in place of the part. It stays on the driver."""
    of_columns: Callable[[Sequence[str]], Callable[[Any], Iterator[pa.RecordBatch]]] | None = None
    """Returns what reads some columns alone, at least one; None where that is no quicker."""
    at_once: bool = False
    """Whether the tasks of all parts run at the same time, so that `read` may wait for the others.
    For rows that are not repeatable."""
    size: int | None = None
    """About how many bytes all parts have when they are unpacked; None where it is not known."""


def check_part(number: int, counted: int, rows: int) -> None:
    """Raise `LoadFailed` where a part has other rows than were counted."""
    if rows != counted:
        raise LoadFailed(
            f"the source changed while it was read: partition {number} had {counted} rows when "
            f"counted and {rows} when loaded",
            hint="load only complete files that no process writes to",
            retryable=True,
        )


@dataclass(frozen=True)
class Unfinished:
    """What splits yield, in the types `schema`, and how Spark makes the rows of it. `check` raises
    `BadValuesFound` with all values of which it cannot."""

    schema: StructType
    finish: Callable[[DataFrame], DataFrame]
    check: Callable[[DataFrame], None]


@dataclass(frozen=True)
class BadValue:
    """A bad value or record: the file or table that is its `source`, its `place` there, such as
    `, row 2`, and what is wrong: `: column `at`: …`."""

    source: str
    place: str
    text: str

    @property
    def where(self) -> str:
        """The place, as the beginning of a sentence."""
        return f"reading `{self.source}`{self.place}" if self.source else "reading the source"

    def __str__(self) -> str:
        """As a sentence."""
        return f"{self.where}{self.text}"


def place_text(group: int | None, row: int | None) -> str:
    """Return where in a file a row is, as messages say it; '' where it is not known."""
    places = ((group, "row group"), (row, "row"))
    return "".join(f", {what} {number}" for number, what in places if number is not None)


class BadValuesFound(LoadFailed):
    """A task came upon bad values; what other tasks would find it cannot know. `first` says it of
    the first one."""

    first: BadValue | None = None

    @classmethod
    def of(cls, found: Sequence[BadValue], count: int, *, hint: str | None) -> Self:
        """Return the failure for `count` bad values or records, of which `found` are the first:
        several are a table."""
        message = str(found[0]) if len(found) == 1 else _table(found, count)
        if count > len(found) == 1:
            message = f"{message}; and {count - 1:,} more"
        error = cls(message, hint=hint)
        error.first = found[0]
        return error


def _table(found: Sequence[BadValue], count: int) -> str:
    lines = [f"{count:,} values or records cannot be loaded:"]
    source = None
    for bad in found:
        if bad.source != source:
            source = bad.source
            lines.append(f"  {replace(bad, place='').where}:")
        lines.append(f"    {(bad.place + bad.text).lstrip(':, ')}")
    if (more := count - len(found)) > 0:
        lines.append(f"  and {more:,} more")
    return "\n".join(lines)


class UnreadableFile(LoadFailed):
    """A file of which no record can be read for what is in it: it is damaged, of another format, or
    packed in a way that is not read. `why` is a clause. `on_bad_value: QUARANTINE` sets it aside.
    """

    def __init__(self, path: str, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"reading `{path}`: {why}", hint=hint)
        self.path = path
        self.why = why


def set_aside_warnings(faults: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return what to report of the files that are set aside, given their paths and reasons."""
    shown = [f"`{path}` was set aside as a whole: {why}" for path, why in faults[:_SHOWN]]
    more = len(faults) - len(shown)
    return (*shown, *((f"{more:,} more files were set aside as a whole",) if more else ()))


class ReadAgain(Exception):
    """The slice has to be taken and opened again, for this reason: what it sets aside was not known
    before. Nothing is committed."""


_RAISED_IN_SQL = "[USER_RAISED_EXCEPTION]"
"""Spark's condition of `raise_error`, with which casts fail."""


@contextmanager
def with_all_bad_values(rows: Rows) -> Iterator[None]:
    """Report the bad values of all rows in place of those of the task that failed first. Raises as
    the block does, `LoadFailed`, or `ReadAgain`."""
    try:
        yield
    except Interrupted:
        raise
    except Exception as error:
        if _is_about_values(error):
            rows.check_values()
        raise


def _is_about_values(error: Exception) -> bool:
    if isinstance(error, BadValuesFound | UnreadableFile):
        return True
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - Java has died: its errors have no text then
        return False
    if _RAISED_IN_SQL in text:
        return True
    failure = failure_in(text)
    names = (BadValuesFound.__name__, UnreadableFile.__name__)
    return failure is not None and failure.type in names


@contextmanager
def explained_by_change(check_unchanged: Callable[[], None]) -> Iterator[None]:
    """Report that the source changed in place of any failure of the block that follows from it: a
    file that is cut off is damaged to whoever reads it. Raises as the block does, or `LoadFailed`.
    """
    try:
        yield
    except Interrupted:
        raise
    except Exception as error:
        try:
            check_unchanged()
        except LoadFailed as change:
            raise change from error
        except LakeloadError:
            pass  # It cannot be asked for now, and is not what went wrong first.
        raise
