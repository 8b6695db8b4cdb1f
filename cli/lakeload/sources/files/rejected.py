"""The rejected records of an earlier job, in the place of a table's files (`--retry-rejected`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakeload.sources.base import InputFacts, InputType
from lakeload.sources.files.source_type import FILES
from lakeload.sources.report import NOTHING_KNOWN, SourceReport
from lakeload_jobs.contract.spec import ReaderChoice, RejectedInput, RunOptions, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.position import position_of

if TYPE_CHECKING:
    from lakeload_jobs.sources.readers import SourceReaders


class RejectedRecordsType(InputType[RejectedInput]):
    """Records that are in the side table: nothing of what the files lie in is asked."""

    def facts(self, read: RejectedInput, reader: ReaderChoice = "AUTO") -> InputFacts:
        """Return what the records were read from first, and that they are counted as text is."""
        files = FILES.facts(read.files, reader)
        return InputFacts(
            datasets=files.datasets, reader=None, casts=files.casts, numbering="counting pass"
        )

    def inspect(
        self,
        read: RejectedInput,
        readers: SourceReaders,
        options: RunOptions,
        *,
        table: TableSpec,
        known: bool,
        bookmark: Callable[[], Bookmark] | None,
    ) -> SourceReport:
        """Say where no record is left to be read again."""
        if bookmark is None:
            return NOTHING_KNOWN
        mark = bookmark()
        found = mark.rejected(read.job)
        if found.status == "THERE":
            return NOTHING_KNOWN
        unknown = found.status == "UNKNOWN"
        return SourceReport(
            sentence=found.sentence(read.job),
            idle=True,
            position=position_of(mark.state),
            bytes=0,
            tells_age=True,
            files=(),
            unknown_job=read.job if unknown else "",
        )


REJECTED = RejectedRecordsType()
