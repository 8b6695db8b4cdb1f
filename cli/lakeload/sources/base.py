"""Interface of a source type: its settings, and the spec that follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, get_args

from lakeload.config.model import Finding, Model
from lakeload.config.scalars import Text
from lakeload.sources.datasets import Dataset
from lakeload.sources.report import NOTHING_KNOWN, SourceReport
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    JdbcInput,
    JobSpec,
    Mode,
    ReaderChoice,
    RejectLimit,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.base import EarlierColumns

if TYPE_CHECKING:
    from lakeload_jobs.sources.paths.file_state import FileState
    from lakeload_jobs.sources.readers import SourceReaders

Numbering = Literal[
    "footers", "counted in the database", "counting pass", "one partition", "not counted"
]
"""Where a load takes the numbers of `_supa_index` from; rows that are not counted leave gaps."""


class SourceSettings(Model):
    """Where the data comes from."""

    type: str
    """A `Literal` in each type of source: its name."""


class TableSettings(Model):
    """What a table says of its source."""

    table: Text
    """The source table's name; for FILES a name of your choice, dots included."""

    @property
    def is_glob(self) -> bool:
        """Whether it stands for all tables whose names match."""
        return False

    @property
    def finds_key(self) -> bool:
        """Whether the source knows which columns identify a row, unless the document says it."""
        return False

    @property
    def takes_found_key(self) -> bool:
        """Whether what the source knows is its key: an empty `primary_key` is one, too."""
        return self.finds_key and "primary_key" not in self.model_fields_set

    @property
    def cursor_is_column(self) -> bool:
        """Whether rows have the column that `cursor` names, so that it orders their versions."""
        return True

    @property
    def source_schema(self) -> str | None:
        """The schema that the table has in the source; None where the source has no schemas."""
        return None

    def key_needed_by(self, mode: Mode) -> str | None:
        """Return the setting that needs a key; None where no setting does."""
        return "mode: UPSERT" if mode == "UPSERT" else None

    @property
    def delete_limit(self) -> RejectLimit | None:
        """How many rows may be deleted because the source no longer has their keys; None where they
        are not compared."""
        return None

    @property
    def source_table(self) -> str:
        """The table's name in the source, without its schema."""
        return self.table


@dataclass(frozen=True)
class InputFound:
    """Files and bytes of one table's input, and the local patterns that cannot be read."""

    files: int = 0
    bytes: int = 0
    missing: tuple[str, ...] = ()
    why: LoadFailed | None = None
    """What a load would fail with at the first of them."""
    complete: bool = False
    """Whether these are all: others, only the source could count."""

    @property
    def size(self) -> int | None:
        """The bytes of all; None where they are not known."""
        return self.bytes if self.complete else None


@dataclass(frozen=True)
class InputFacts:
    """What follows from the input of a table alone, without a look at it."""

    datasets: tuple[Dataset, ...] = ()
    """What it reads, as lineage names it."""
    objects: tuple[str, ...] = ()
    """The patterns of the objects in S3 that it reads."""
    has_credentials: bool = False
    """Whether another identity than the destination's reads it."""
    database: JdbcInput | None = None
    """The table of a database that it is; None for any other source."""
    records: str | None = None
    """The option that selects some of the records of a file."""
    starts_from: bool = False
    """Whether a load can start from a value of the table's cursor."""
    reader: str | None = "jvm"
    """Who would read it: `jvm` (Spark) or `direct`; None where only a look into it tells."""
    jar_sets: frozenset[str] = frozenset()
    """The sets of jars that Spark needs to read it."""
    jars: tuple[Path, ...] = ()
    """The user's own jars that Spark needs to read it."""
    casts: bool = False
    """Whether it is read as the types of `columns.types` without Spark."""
    numbering: Numbering = "not counted"
    """Where a load would take the numbers of its rows from."""
    one_partition: int = 0
    """Up to so many bytes a single file is one partition, whose rows need no count."""
    warnings: tuple[str, ...] = ()
    """What a load does to the source that its owner may not want, and what is not proven."""


@dataclass(frozen=True)
class ColumnsRequest:
    """The load whose columns are asked for. `earlier` is what earlier loads made of the columns;
    `files` are those that it reads, None where they are not listed yet."""

    spec: JobSpec
    table: TableSpec
    earlier: EarlierColumns
    files: tuple[FileState, ...] | None = None


@dataclass(frozen=True)
class SourceColumns:
    """The columns of a source: `names` are all, `types` are Spark's names of those that are loaded.

    `complete`: they come from all `rows`; else from so many of the first ones.
    """

    names: tuple[str, ...]
    types: Mapping[str, str]
    rows: int
    complete: bool = True
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class SampleRows:
    """The first rows of a source, as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class SourceCheck:
    """One check of `test-connection`: `run` returns a detail worth showing, '' for none, or raises
    a `LakeloadError`. `needs` are checks without whose success this one proves nothing."""

    name: str
    proves: str
    run: Callable[[], str]
    needs: tuple[str, ...] = ()


S = TypeVar("S", bound=SourceSettings)
T = TypeVar("T", bound=TableSettings)
I = TypeVar("I")  # noqa: E741


class InputType(Generic[I]):
    """What can be asked of the input of a table, which the job is told as `I`."""

    cursor_reads: ClassVar[bool] = False
    """Whether `cursor` of a table decides which rows a load reads."""

    def facts(self, read: I, reader: ReaderChoice = "AUTO") -> InputFacts:
        """Return what is known without a look at it. `reader`: who is to read."""
        return InputFacts()

    def count_files(self, read: I) -> InputFound:
        """Count what of it is stored on this machine."""
        return InputFound()

    def absent(self, read: I) -> tuple[str, ...]:
        """Return what names the input where none of it is there, so that no load can succeed."""
        return ()

    def local_files(self, read: I) -> tuple[FileState, ...]:
        """Return the files of this machine that it reads; none where some are elsewhere."""
        return ()

    def inspect(
        self,
        read: I,
        readers: SourceReaders,
        options: RunOptions,
        *,
        table: TableSpec,
        known: bool,
        bookmark: Callable[[], Bookmark] | None,
    ) -> SourceReport:
        """List it as the job would, with the identity that reads, and choose as it would. `read` is
        the input of `table`.

        `known`: the pipeline may have loaded all there is. `bookmark` None: nobody knows what was
        loaded. Raises what the job would raise.
        """
        return NOTHING_KNOWN

    def read_columns(
        self, read: I, request: ColumnsRequest, readers: SourceReaders
    ) -> SourceColumns | None:
        """Return the columns that the load would find, None where only Spark can tell.

        Raises what the load would raise for input that cannot be read.
        """
        return None

    def read_sample(self, read: I, readers: SourceReaders) -> SampleRows | None:
        """Return the first rows, None where only Spark reads them. Raises as `read_columns`."""
        return None

    def checks(
        self, tables: Sequence[tuple[TableSpec, I]], readers: SourceReaders
    ) -> tuple[SourceCheck, ...]:
        """Return what `test-connection` checks of the source of these tables."""
        return ()


class SourceType(InputType[I], ABC, Generic[S, T, I]):
    """One type of source: what documents say of it, and what that means."""

    settings: ClassVar[type[SourceSettings]]
    """What stands under `source`."""
    table: ClassVar[type[TableSettings]]
    """What each table has beside the settings that all tables have."""
    sets_aside: ClassVar[bool] = False
    """Whether records can be set aside (`on_bad_value: QUARANTINE`), and be read again."""
    round_limits: ClassVar[tuple[str, ...]] = ()
    """The limits of `round_limit` that it knows."""
    commit_thresholds: ClassVar[tuple[str, ...]] = ("age",)
    """The thresholds of `commit_at` that it knows."""

    @property
    def name(self) -> str:
        """What `source.type` says."""
        (name,) = get_args(self.settings.model_fields["type"].annotation)
        return str(name)

    def findings(self, source: Any, tables: Sequence[tuple[int, T]]) -> Iterator[Finding]:
        """Yield what no single setting can tell. `source` is what stands there, valid or not;
        `tables` are those that are valid, with their places."""
        yield from ()

    def references(self, source: Any) -> Mapping[str, SecretReference]:
        """Return the secrets that reading takes, by their paths. `source` may be invalid."""
        return {}

    def remote_findings(self, tables: Sequence[tuple[int, T]], master: str) -> Iterator[Finding]:
        """Yield what tasks on other machines than this one cannot read."""
        yield from ()

    @abstractmethod
    def written(self, source: S, table: T) -> I:
        """Return what a table is read from as the document has it: paths as they are written, and
        nothing of who reads."""

    @abstractmethod
    def identity(self, written: I) -> Mapping[str, Any]:
        """Return the settings that decide which rows are read, each by name.

        Fingerprints in the logs cover them: one that comes later takes part only where it is given.
        """

    @abstractmethod
    def resolved(self, written: I, source: S, folder: Path) -> I:
        """Return the same for the job: paths absolute, `folder` being the document's, and who
        reads."""

    def find_tables(
        self,
        source: S,
        tables: Sequence[T],
        folder: Path,
        readers: Callable[[], SourceReaders],
        *,
        keys: bool,
    ) -> Sequence[T]:
        """Return the tables with those that globs find in their place, and with `keys` what the
        source knows of their keys. `readers` is called only where the source has to be read.

        Raises as reading does, and `InvalidInput` for a glob that finds nothing.
        """
        return tables

    def without_rounds(self, read: I) -> tuple[str, str] | None:
        """Return why a table cannot be loaded in rounds, as a clause, and what to do about it; None
        for a table that can."""
        return "it is loaded whole each time", "remove the line"

    def loads_once(self, read: I, *, replaces: bool) -> str:
        """Return the setting with which each row is loaded once, as an action, for a table that is
        read whole and appended. `replaces`: the table's format can replace rows."""
        if replaces:
            return "set `mode: OVERWRITE`, which replaces the rows of earlier loads"
        return "empty the table with `lakeload reset` before a load"
