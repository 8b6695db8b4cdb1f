"""Ledger entries of an Iceberg load: evidence beside the table's properties."""

from __future__ import annotations

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.state import Evidence
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.file_ledger import (
    Ledger,
    LedgerEntry,
    ledger_key,
    write_entry,
)
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState
from lakeload_jobs.storage.objects import Objects


def note_evidence(
    spec: JobSpec,
    table: TableSpec,
    objects: Objects,
    evidence: Evidence,
    state: PipelineState | None,
    attempt: str,
) -> str:
    """Write down what this job has read, and return the key for its state. Raises `AwsError`."""
    location = TableLocation(spec.destination.prefix, table.schema, table.table)
    newest = state.ledger if state is not None else None
    key = ledger_key(location, spec.pipeline, attempt)
    entry = LedgerEntry(
        number=Ledger(objects, location, spec.pipeline).next_number(newest),
        previous=newest,
        pipeline=spec.pipeline,
        source=table.source,
        job_id=spec.job_id,
        inputs=evidence.inputs,
        known=evidence.known,
    )
    write_entry(objects, key, entry)
    return key
