"""Messages of `notify` after a job: what is due is sent, and recorded in the job history."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from lakeload.commands.sync_once import LoadJob, Synced
from lakeload.documents.spec import table_specs
from lakeload.history.status import freshness_of, statuses
from lakeload.monitoring.history import JobHistory
from lakeload.monitoring.notifications import due_after, message
from lakeload.reporting.delivery import END_SECONDS, Delivery
from lakeload.reporting.webhook import connect, payload, webhook_of
from lakeload_jobs.contract.errors import LakeloadError

logger = logging.getLogger(__name__)


def notify(
    job: LoadJob,
    synced: Synced,
    document: Mapping[str, Any],
    history: JobHistory,
    warn: Callable[[str], None],
) -> None:
    """Send what is due after a job that the history has, given the document of `sync`. Nothing
    here fails a load: a failure is a warning, and the next job sends what is still due."""
    try:
        problem = _send(job, synced, document, history)
    except LakeloadError as error:
        problem = error.message
    except Exception as error:
        logger.info("notifying failed", exc_info=True)
        problem = type(error).__name__
    if problem is not None:
        warn(f"the message of `notify` was not delivered: {problem}")


def _send(
    job: LoadJob, synced: Synced, document: Mapping[str, Any], history: JobHistory
) -> str | None:
    model, settings = job.document.model, job.document.model.notify
    if settings is None:
        return None
    freshness = freshness_of(table_specs(job.document), model)
    day, now = history.state(model.name, job.destination), datetime.now(UTC)
    due = due_after(document, day, freshness, settings, now)
    if due.events:
        found = statuses(day, freshness, None, now, all_tables=False)
        stale = [table.target for table in found if table.stale]
        command = job.document.files.command("runs", "--failed")
        text, said = message(document, due.events, stale, command)
        url = webhook_of(settings, job.document.path.parent)
        delivery: Delivery[bytes] = Delivery(lambda: connect(url))
        delivery.put(payload(settings.form, text, said))
        delivery.finish(time.monotonic() + END_SECONDS)
        if delivery.reason is not None:
            return delivery.reason
    if due.notified is not None:
        history.note(model.name, due.notified, job.destination, synced.connections)
        history.finish(last=False)
    return None
