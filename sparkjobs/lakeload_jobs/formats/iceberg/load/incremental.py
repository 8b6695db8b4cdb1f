"""`incremental: true` for Iceberg: a fold in the table's properties, the files in a ledger."""

from __future__ import annotations

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.bookmark import account_of
from lakeload_jobs.formats.iceberg.file_ledger import (
    LedgerEntry,
    ledger_key,
    next_number,
    write_entry,
)
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState
from lakeload_jobs.sources.files.bookmark import refuse_limit
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.files.selection import Selection, choose_files
from lakeload_jobs.sources.files.spark.s3a import s3_source
from lakeload_jobs.storage.objects import Objects


def select(
    spec: JobSpec, table: TableSpec, objects: Objects, state: PipelineState | None
) -> Selection | None:
    """Return the files this job has to load, None for a source that is loaded whole.

    Raises what listing raises, `InvalidInput` for `limit`, and `LoadFailed` for a state that does
    not belong to files or a ledger that cannot be read.
    """
    if not table.input.incremental:
        return None
    refuse_limit(incremental=True, limit=spec.options.limit)
    anew = spec.options.starts_over
    known = state is not None and state.state is not None
    may_be_empty = known and not anew
    listed = list_files(table.input, s3_source(spec).readers, may_be_empty=may_be_empty)
    # What replaces every row begins a new account.
    account = account_of(objects, state, full_refresh=spec.options.full_refresh)
    return choose_files(account, table.input.folder, listed, reload=spec.options.reload)


def note_files(
    spec: JobSpec,
    table: TableSpec,
    objects: Objects,
    selection: Selection,
    state: PipelineState | None,
    attempt: str,
) -> str:
    """Write down the files this job loads, and return the key for its state. Raises `AwsError`."""
    location = TableLocation(spec.destination.prefix, table.schema, table.table)
    newest = state.ledger if state is not None else None
    key = ledger_key(location, spec.pipeline, attempt)
    entry = LedgerEntry(
        number=next_number(objects, newest),
        previous=newest,
        pipeline=spec.pipeline,
        source=table.source,
        job_id=spec.job_id,
        inputs=selection.inputs,
        known=selection.repeated,
    )
    write_entry(objects, key, entry)
    return key
