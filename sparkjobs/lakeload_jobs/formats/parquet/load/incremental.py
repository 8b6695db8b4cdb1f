"""A load's side of `incremental: true`: the files it reads, and what its record and user are told.

docs/incremental.md has the guarantees; sources.files.bookmark how they are kept.
"""

from __future__ import annotations

from dataclasses import replace

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.table_log import Opened
from lakeload_jobs.sources.files.bookmark import refuse_limit
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.files.selection import Selection, Source, select_files
from lakeload_jobs.sources.files.spark.s3a import s3_source
from lakeload_jobs.storage.objects import Objects


def select(spec: JobSpec, table: TableSpec, objects: Objects, opened: Opened) -> Selection | None:
    """Return the files this job has to load, None for a source that is loaded whole.

    Raises what listing raises, `InvalidInput` for `limit`, and `LoadFailed` for a state that does
    not belong to files.
    """
    if not table.input.incremental:
        return None
    refuse_limit(incremental=True, limit=spec.options.limit)
    may_be_empty = opened.state is not None and not spec.options.reload
    listed = list_files(table.input, s3_source(spec).readers, may_be_empty=may_be_empty)
    location = TableLocation(spec.destination.prefix, table.schema, table.table)
    source = Source(spec.pipeline, table.source, table.input.folder, location)
    return select_files(objects, source, opened, listed, reload=spec.options.reload)


def with_files(record: LoadRecord, selection: Selection | None) -> LoadRecord:
    """Return the record with the files it loads and the state it leaves."""
    if selection is None:
        return record
    return replace(record, state=selection.state, inputs=selection.inputs, known=selection.repeated)
