"""What a job is told by the log of its table: before it loads, and after its commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.formats.parquet.log.history import Outcome
from lakeload_jobs.formats.parquet.log.records import Column, LoadRecord
from lakeload_jobs.formats.parquet.log.roll_forward import Pending


@dataclass(frozen=True)
class Opened:
    """What a job must know before it loads. `already` set: report it and stop."""

    next_number: int
    already: LoadRecord | None
    first_run: bool
    column_map: dict[str, str]
    """Source name → target name as this pipeline recorded it; empty on the first run."""
    columns: tuple[Column, ...]
    """All columns the table has, of all pipelines."""
    state: Any = None
    settled: tuple[Pending, ...] = ()
    """Unfinished jobs of others that were brought to an end just now."""
    catalog_error: LakeloadError | None = None
    """Why the catalog still lags behind some job that is done; the next run tries again."""
    warnings: tuple[str, ...] = ()
    """What is allowed and may not be meant."""


@dataclass(frozen=True)
class Committed:
    """A job that is in: `already` when another attempt of the same job brought it in."""

    number: int
    record: LoadRecord
    already: bool
    outcome: Outcome
    catalog_error: LakeloadError | None = None
    """Step 6 failed: the data is in, the catalog does not show all of it yet."""
