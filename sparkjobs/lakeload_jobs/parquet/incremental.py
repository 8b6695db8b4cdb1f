"""A load's side of `incremental: true`: the files it reads, and what its record and user are told.

docs/incremental.md has the guarantees; rules.loaded_files how they are kept.
"""

from __future__ import annotations

from dataclasses import replace

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.lake.new_files import Selection, Source, refuse_limit, select_files
from lakeload_jobs.lake.objects import Objects
from lakeload_jobs.lake.records import LoadRecord
from lakeload_jobs.lake.table_log import Opened
from lakeload_jobs.rules.input_files import FileState, NoFiles
from lakeload_jobs.rules.layout import TableLocation
from lakeload_jobs.sources.listing import list_inputs
from lakeload_jobs.sources.s3 import S3Source, s3_source

_SHOWN = 5


def select(spec: JobSpec, table: TableSpec, objects: Objects, opened: Opened) -> Selection | None:
    """Return the files this job has to load, None for a source that is loaded whole.

    Raises what listing raises, `InvalidInput` for `limit`, and `LoadFailed` for a state that does
    not belong to files.
    """
    if not table.input.incremental:
        return None
    refuse_limit(incremental=True, limit=spec.limit)
    s3 = s3_source(spec)
    may_be_empty = opened.state is not None and not spec.reload
    listed = _list_each(table, s3) if may_be_empty else list_inputs(table.input, s3)
    location = TableLocation(spec.destination.prefix, table.schema, table.table)
    source = Source(spec.pipeline, table.source, table.input.folder, location)
    return select_files(objects, source, opened, listed, reload=spec.reload)


def with_files(record: LoadRecord, selection: Selection | None) -> LoadRecord:
    """Return the record with the files it loads and the state it leaves."""
    if selection is None:
        return record
    return replace(record, state=selection.state, inputs=selection.inputs, known=selection.repeated)


def selection_notes(selection: Selection | None) -> tuple[str, ...]:
    """Return what the user is told of the choice."""
    if selection is None:
        return ()
    known = f"{selection.known:,} known"
    if not selection.files:
        return (f"no new files ({known})",)
    return (f"{_count(len(selection.files), 'file')} loaded ({known} before)",)


def selection_warnings(selection: Selection | None, *, reload: bool) -> tuple[str, ...]:
    """Return what may double rows: new versions of files, and a reload."""
    found = []
    if reload and selection is None:
        found.append("`--reload` changes nothing here: without `incremental` all is loaded always")
    elif reload and selection is not None:
        found.append(
            f"`--reload`: {_count(len(selection.files), 'file')} appended whatever had been loaded "
            f"before ({selection.known:,} of them had)"
        )
    elif selection is not None and selection.again:
        shown = ", ".join(f"`{path}`" for path in selection.again[:_SHOWN])
        more = len(selection.again) - _SHOWN
        found.append(
            f"loaded again, all rows, because the file has changed since it was loaded: {shown}"
            + (f" and {more:,} more" if more > 0 else "")
        )
    return tuple(found)


def _list_each(table: TableSpec, s3: S3Source) -> tuple[FileState, ...]:
    """List path by path: of a source that has been loaded before, any may be empty now."""
    found: dict[str, FileState] = {}
    for path in table.input.paths:
        try:
            files = list_inputs(replace(table.input, paths=(path,)), s3)
        except NoFiles:
            continue
        for file in files:
            found.setdefault(file.path, file)
    return tuple(found[path] for path in sorted(found))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
