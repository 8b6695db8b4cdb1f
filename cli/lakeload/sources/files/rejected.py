"""The rejected records of an earlier job, in the place of a table's files (`--retry-rejected`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakeload.sources.base import InputFound, Numbering
from lakeload.sources.datasets import Dataset
from lakeload.sources.files.source_type import FilesSourceType
from lakeload.sources.report import NOTHING_KNOWN, SourceReport
from lakeload_jobs.contract.spec import ReaderChoice, RejectedInput, RunOptions, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.position import position_of

if TYPE_CHECKING:
    from lakeload_jobs.sources.readers import SourceReaders


class RejectedSourceType(FilesSourceType):
    """Records that are in the side table: nothing of what the files lie in is asked."""

    @property
    def name(self) -> str:
        """What `type` says of an input; no document names it."""
        return "REJECTED"

    def jar_sets(self, read: Any, reader: ReaderChoice) -> frozenset[str]:
        """Return none."""
        return frozenset()

    def has_credentials(self, read: Any) -> bool:
        """Return False: they are read as the table is."""
        return False

    def objects(self, read: Any) -> tuple[str, ...]:
        """Return none."""
        return ()

    def datasets(self, read: Any) -> tuple[Dataset, ...]:
        """Return what the records were read from first."""
        given: RejectedInput = read
        return super().datasets(given.files)

    def look(self, read: Any) -> InputFound:
        """Return nothing: no file is read."""
        return InputFound()

    def size(self, read: Any) -> int | None:
        """Return None: nobody has counted them."""
        return None

    def absent(self, read: Any) -> tuple[str, ...]:
        """Return none: what is there, the table knows."""
        return ()

    def inspect(
        self,
        read: Any,
        readers: SourceReaders,
        options: RunOptions,
        *,
        table: TableSpec,
        known: bool,
        bookmark: Callable[[], Bookmark] | None,
    ) -> SourceReport:
        """Say where no record is left to be read again."""
        given: RejectedInput = read
        if bookmark is None:
            return NOTHING_KNOWN
        mark = bookmark()
        found = mark.rejected(given.job)
        if found.status == "THERE":
            return NOTHING_KNOWN
        unknown = found.status == "UNKNOWN"
        return SourceReport(
            sentence=found.sentence(given.job),
            idle=True,
            position=position_of(mark.state),
            bytes=0,
            tells_age=True,
            files=(),
            unknown_job=given.job if unknown else "",
        )

    def read_columns(self, read: Any, request: Any, readers: SourceReaders) -> None:
        """Return None: Spark reads the side table."""

    def read_sample(self, read: Any, files: Any, readers: SourceReaders) -> None:
        """Return None."""

    def numbering(self, read: Any, found: InputFound) -> Numbering:
        """Return that the records are counted, as those of text files are."""
        return "counting pass"

    def only_jvm(self, read: Any) -> bool:
        """Return False."""
        return False

    def casts(self, read: Any) -> bool:
        """Return what holds for the files."""
        given: RejectedInput = read
        return super().casts(given.files)


REJECTED = RejectedSourceType()
