"""Messages about a pipeline: which are due after a job, and what they say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from lakeload.documents.notify import Notify, NotifyEvent
from lakeload.history.day import HistoryDay, HistoryJob, Notified, OpenEvent, of_job
from lakeload.history.status import TableStatus, statuses
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.result import GOOD
from lakeload_jobs.core.sizes import counted

_MOST_TABLES = 10
"""Tables that the text of a message names."""


_ORDER: tuple[OpenEvent | None, ...] = (None, "STALE", "PARTIAL", "FAILED")
"""What may be open. One that is worse is a message of its own."""


@dataclass(frozen=True)
class Due:
    """What is due after a job: the events that its message is about, and what to record when it is
    delivered; None: nothing."""

    events: tuple[NotifyEvent, ...]
    notified: Notified | None


def due_after(
    document: Mapping[str, Any],
    day: HistoryDay,
    freshness: Mapping[str, timedelta | None],
    settings: Notify,
    now: datetime,
) -> Due:
    """Return what is due after a job, given the document of `sync`, the state after it, and the
    tables of the pipeline with their `freshness`."""
    before = day.notified or Notified(now, None, {}, {})
    columns = _columns(document) if "SCHEMA_CHANGED" in settings.on else {}
    tables = statuses(day, freshness, None, now, all_tables=False)
    state = _state(document, before, tables)
    if state == "STALE" and "STALE" not in settings.on:
        state = None
    elif state is not None and state not in settings.on and "STALE" in settings.on:
        # Who does not want to hear of a failure hears when data is too old for it.
        state = "STALE" if any(table.stale for table in tables) else state
    found: list[NotifyEvent] = []
    if state is None and before.open is not None:
        found.append("RECOVERED")
    elif state is not None and _ORDER.index(state) > _ORDER.index(before.open):
        found.append(state)
    if any(before.columns.get(name, digest) != digest for name, digest in columns.items()):
        found.append("SCHEMA_CHANGED")
    if any(table["rejected"] and not table["already"] for table in document["tables"]):
        found.append("REJECTED")
    events = tuple(
        event
        for event in found
        # One message was sent, so that its all-clear is too.
        if event in settings.on and (event == "RECOVERED" or _is_over(event, before, settings, now))
    )
    after = replace(
        before,
        open=None if state is None else state if state in events else before.open,
        sent={**before.sent, **dict.fromkeys(events, now)},
        columns={**before.columns, **columns},
    )
    return Due(events, replace(after, at=now) if after != before else None)


def _state(
    document: Mapping[str, Any], before: Notified, tables: Sequence[TableStatus]
) -> OpenEvent | None:
    """Return what is wrong after a job."""
    words = {table.status for table in tables}
    if document["status"] == "INTERRUPTED" or (document["exit_code"] == 0 and "FAILED" in words):
        # A job of some tables (`--table`) does not end what is wrong with others.
        return before.open
    if document["exit_code"] != 0:
        good = any(table["status"] in GOOD for table in document["tables"])
        return "PARTIAL" if good else "FAILED"
    return "STALE" if "STALE" in words else None


def _is_over(event: str, before: Notified, settings: Notify, now: datetime) -> bool:
    last = before.sent.get(event)
    return last is None or now - last >= settings.quiet


def _columns(document: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of the columns of each table that the job loaded."""
    found = {}
    for table in document["tables"]:
        columns = [(one["name"], one["type"]) for one in table["columns"] if one["source"]]
        if columns and not table["already"]:
            text = json.dumps(sorted(columns))
            found[table["target"]] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return found


_HEADLINES: Mapping[NotifyEvent, str] = {
    "FAILED": "failed: nothing was loaded",
    "PARTIAL": "failed in part",
    "RECOVERED": "works again",
    "SCHEMA_CHANGED": "loaded other columns than before",
    "REJECTED": "set records aside",
    "STALE": "has tables that are stale",
}


def message(
    document: Mapping[str, Any],
    events: Sequence[NotifyEvent],
    stale: Sequence[str],
    command: str,
) -> tuple[str, dict[str, Any]]:
    """Return what a message says, as text and as a document; `command` shows more."""
    recorded = of_job(document, ())
    job: HistoryJob | None = recorded.jobs[0] if recorded.jobs else None
    # Errors of the job history are masked and cut.
    tables = job.tables if job is not None else ()
    rows = sum(table.rows for table in tables)
    error = job.error if job is not None else None
    pipeline, job_id = document["pipeline"], document["job_id"]
    lines = [f"lakeload: pipeline {pipeline} {' and '.join(_HEADLINES[one] for one in events)}"]
    if error is not None:
        lines.append(error.message)
    for table in tables[:_MOST_TABLES]:
        parts = [f"{table.target}: {table.status}, {counted(table.rows, 'row')}"]
        parts += [f"{counted(table.rejected, 'record')} set aside"] if table.rejected else []
        parts += [table.error.message] if table.error is not None else []
        lines.append(", ".join(parts))
    if len(tables) > _MOST_TABLES:
        lines.append(f"and {counted(len(tables) - _MOST_TABLES, 'table')} more")
    if "STALE" in events:
        lines.append(f"stale: {', '.join(stale[:_MOST_TABLES])}")
    lines += [f"job {job_id}, {counted(rows, 'row')}", command]
    return "\n".join(lines), {
        "events": list(events),
        "pipeline": pipeline,
        "job_id": job_id,
        "status": document["status"],
        "exit_code": document["exit_code"],
        "rows": rows,
        "error": to_json(error),
        "tables": [
            {
                "target": table.target,
                "status": table.status,
                "rows": table.rows,
                "rejected": table.rejected,
                "error": to_json(table.error),
            }
            for table in tables
        ],
        "stale": list(stale),
        "command": command,
    }
