"""What each job of an Iceberg table has read: objects that name the one before.

An Iceberg table's properties keep the pipeline's state and the key of the newest object; the
objects keep the evidence, and are read only where the state does not tell. An object is written
before the publish that names it: one that no publish names counts for nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.state import Evidence
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.storage.objects import Objects

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
            f"`{objects.url(key)}` is there already and is another attempt's",
            hint="run again",
            retryable=True,
        )


def read_entry(objects: Objects, key: str) -> LedgerEntry:
    """Read one entry. Raises `AwsError`, and `LoadFailed` for one that is gone or damaged."""
    body = objects.get(key)
    try:
        if body is None:
            raise ValueError("it is gone")
        return from_json(LedgerEntry, json.loads(body))
    except (ValueError, CodecError) as error:
        raise LoadFailed(
            f"the list of loaded files `{objects.url(key)}` cannot be read: {error}",
            hint="restore the object, or load everything again with `--reload`",
        ) from error


def read_evidence(objects: Objects, newest: str | None, since: int) -> tuple[Evidence, ...]:
    """Return what all entries from number `since` on noted, the oldest first: a GET for each.
    Raises as `read_entry` does."""
    found: list[Evidence] = []
    key = newest
    while key is not None:
        entry = read_entry(objects, key)
        if entry.number < since:
            break
        found.append(Evidence(entry.inputs, entry.known))
        key = entry.previous
    return tuple(reversed(found))


def next_number(objects: Objects, newest: str | None) -> int:
    """Return the number of the entry to come. Raises as `read_entry` does."""
    return 1 if newest is None else read_entry(objects, newest).number + 1
