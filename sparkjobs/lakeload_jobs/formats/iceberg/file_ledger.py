"""Stored list of the files that a pipeline has loaded into an Iceberg table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.state import Bookmark, Evidence, RejectedRecords, check_format
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState
from lakeload_jobs.storage.objects import Objects


def bookmark_of(
    ledger: Ledger,
    state: PipelineState | None,
    *,
    full_refresh: bool,
    rejected: Callable[[str], RejectedRecords],
) -> Bookmark:
    """Return the bookmark; `full_refresh` replaces every row and begins a new one.

    Costs a GET where a ledger is there. Raises `AwsError`, and `LoadFailed` for a ledger that
    cannot be read.
    """
    newest = state.ledger if state is not None else None
    return Bookmark(
        state=None if full_refresh or state is None else state.state,
        first_run=state is None or full_refresh,
        next_number=ledger.next_number(newest),
        evidence=lambda since: ledger.evidence(newest, since),
        rejected=rejected,
    )


VERSION = 1


@dataclass(frozen=True)
class LedgerEntry:
    """The evidence of one job. `number` counts from 1; `previous` is the key of the one before."""

    number: int
    previous: str | None
    pipeline: str
    source: str
    job_id: str
    inputs: tuple[Any, ...]
    known: tuple[Any, ...] = ()
    version: int = VERSION


def ledger_key(location: TableLocation, pipeline: str, attempt: str) -> str:
    """Return the key of an attempt's object."""
    return f"{ledger_folder(location, pipeline)}{attempt}.json"


def ledger_folder(location: TableLocation, pipeline: str) -> str:
    """Return where a pipeline's objects lie: `{prefix}/_lakeload/{schema}/{table}/ledger/…/`."""
    folder = location.log_path.removesuffix("log/")
    return f"{folder}ledger/{quote(pipeline, safe='')}/"


def write_entry(objects: Objects, key: str, entry: LedgerEntry) -> None:
    """Write an entry once. Raises `AwsError`, and `LoadFailed` when the key is taken."""
    body = json.dumps(to_json(entry), separators=(",", ":")).encode()
    if not objects.put_if_absent(key, body) and objects.get(key) != body:
        raise LoadFailed(
            f"`{objects.url(key)}` already exists and belongs to another attempt",
            hint="run again",
            retryable=True,
        )


@dataclass(frozen=True)
class Ledger:
    """The entries of a pipeline for a table. Keys of entries come from the table's properties and
    from entries: those of other tables, or of other objects, are not followed."""

    objects: Objects
    location: TableLocation
    pipeline: str
    _newest: dict[str, LedgerEntry] = field(default_factory=dict)
    """The entry that a load goes on from, by its key: no entry is ever changed."""

    def entry(self, key: str, before: int | None = None) -> LedgerEntry:
        """Read one entry, whose number is less than `before`. Raises `AwsError`, `NewerFormat`, and
        `LoadFailed` for one that is gone, damaged or not of this table and pipeline."""
        url = self.objects.url(key)
        self._check_place(key, url)
        body = self.objects.get(key)
        try:
            if body is None:
                raise ValueError("it is gone")
            data = json.loads(body)
            check_format(data, VERSION, f"the list of loaded files `{url}`", "version")
            entry = from_json(LedgerEntry, data)
            if entry.pipeline != self.pipeline:
                raise ValueError(f"it is one of the pipeline `{entry.pipeline}`")
            if before is not None and entry.number >= before:
                raise ValueError(f"it has the number {entry.number}, and comes before {before}")
        except (ValueError, RecursionError, CodecError) as error:
            raise LoadFailed(
                f"the list of loaded files `{url}` cannot be read: {error}",
                hint="restore the object as it was (bucket versioning keeps it), or remove this "
                "pipeline's rows with `lakeload reset` and load everything again",
            ) from error
        return entry

    def evidence(self, newest: str | None, since: int) -> tuple[Evidence, ...]:
        """Return what all entries from number `since` on noted, the oldest first: a GET for each.
        Raises as `entry` does."""
        found: list[Evidence] = []
        key, before = newest, None
        while key is not None:
            entry = self._begun_with(key) if before is None else self.entry(key, before)
            if entry.number < since:
                break
            found.append(Evidence(entry.inputs, entry.known))
            key, before = entry.previous, entry.number
        return tuple(reversed(found))

    def next_number(self, newest: str | None) -> int:
        """Return the number of the entry to come. Raises as `entry` does."""
        return 1 if newest is None else self._begun_with(newest).number + 1

    def _begun_with(self, newest: str) -> LedgerEntry:
        """Return the newest entry, which is read once."""
        if newest not in self._newest:
            self._newest[newest] = self.entry(newest)
        return self._newest[newest]

    def _check_place(self, key: str, url: str) -> None:
        # The table stays where it is when the destination gets another `prefix`.
        folder = ledger_folder(replace(self.location, prefix=""), self.pipeline)
        if not f"/{key.rpartition('/')[0]}/".endswith(f"/{folder}"):
            raise LoadFailed(
                f"the list of loaded files `{url}` is not one of the table "
                f"`{self.location.data_path}`, whose lists lie in `{folder}`",
                hint="if the table was renamed or copied, give it its old name again; else restore "
                "its property from an earlier metadata file",
            )
