"""Report of a table's files, from their listing and what of it is new."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakeload.sources.report import IncrementalPlan, SourceReport
from lakeload_jobs.contract.result import NewData
from lakeload_jobs.sources.position import position_of

if TYPE_CHECKING:
    from lakeload_jobs.sources.files.selection import Selection
    from lakeload_jobs.sources.paths.file_state import FileState


def report_of_files(listed: tuple[FileState, ...]) -> SourceReport:
    """Return the report of files that are all read."""
    return SourceReport(bytes=_size(listed), listed=listed, files=listed)


def report_of_selection(
    listed: tuple[FileState, ...], selection: Selection, *, reload: bool
) -> SourceReport:
    """Return the report of files of which only new ones are read."""
    return replace(
        report_of_files(listed),
        sentence=selection.sentence,
        idle=not selection.files,
        records_anyway=selection.moves_state,
        position=position_of(selection.state.before),
        bytes=selection.bytes,
        tells_age=True,
        new=_new_data((*selection.files, *selection.later)),
        files=selection.files,
        incremental=IncrementalPlan(
            new_files=len(selection.files),
            new_bytes=selection.bytes,
            known_files=selection.known,
            loaded=selection.loaded,
            changed=len(selection.again),
            skipped=len(selection.skipped),
            state_bytes=len(json.dumps(selection.state.after)),
            reload=reload,
            later_files=len(selection.later),
            later_bytes=_size(selection.later),
        ),
    )


def _new_data(files: Sequence[FileState]) -> NewData | None:
    if not files:
        return None
    oldest = min(file.modified for file in files) / 1e9
    return NewData(datetime.fromtimestamp(oldest, UTC), _size(files))


def _size(files: Sequence[FileState]) -> int:
    return sum(file.size for file in files)
