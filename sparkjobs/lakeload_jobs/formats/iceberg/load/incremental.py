"""Ledger entries of an Iceberg load: evidence beside the table's properties."""

from __future__ import annotations

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.state import Evidence
from lakeload_jobs.formats.iceberg.file_ledger import (
    Ledger,
    LedgerEntry,
    ledger_key,
    write_entry,
)
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState


def note_evidence(
    ledger: Ledger,
    spec: JobSpec,
    table: TableSpec,
    evidence: Evidence,
    state: PipelineState | None,
    attempt: str,
) -> str:
    """Write down what this job has read, and return the key for its state. Raises `AwsError`."""
    newest = state.ledger if state is not None else None
    key = ledger_key(ledger.location, spec.pipeline, attempt)
    entry = LedgerEntry(
        number=ledger.next_number(newest),
        previous=newest,
        pipeline=spec.pipeline,
        source=table.source,
        job_id=spec.job_id,
        inputs=evidence.inputs,
        known=evidence.known,
    )
    write_entry(ledger.objects, key, entry)
    return key
