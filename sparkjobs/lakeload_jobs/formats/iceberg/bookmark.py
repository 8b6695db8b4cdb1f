"""What an Iceberg table keeps of one pipeline's loads."""

from __future__ import annotations

from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.formats.iceberg.file_ledger import next_number, read_evidence
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState
from lakeload_jobs.storage.objects import Objects


def bookmark_of(objects: Objects, state: PipelineState | None, *, full_refresh: bool) -> Bookmark:
    """Return the bookmark; `full_refresh` replaces every row and begins a new one.

    Costs a GET where a ledger is there. Raises `AwsError`, and `LoadFailed` for a ledger that
    cannot be read.
    """
    newest = state.ledger if state is not None else None
    return Bookmark(
        state=None if full_refresh or state is None else state.state,
        first_run=state is None or full_refresh,
        next_number=next_number(objects, newest),
        evidence=lambda since: read_evidence(objects, newest, since),
    )
