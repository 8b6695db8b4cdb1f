"""OpenLineage events of a job: START when tables begin, COMPLETE, FAIL or ABORT at the end.

The events are made and sent in another thread (`lineage_events`): the official client is imported
there, which takes longer than all that is done here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from lakeload.config.secret_names import absolute_path, absolute_reference
from lakeload.documents.extras import LINEAGE
from lakeload.documents.lineage import Lineage
from lakeload.launch.timings import WallTime
from lakeload.reporting.delivery import Delivery, Send
from lakeload.reporting.job import JobTimes, Measurement, Parent, ReportedJob
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.events import Event
from lakeload_jobs.contract.secrets import Secret, resolve_locally
from lakeload_jobs.contract.spec import TableSpec

NAMESPACE = "lakeload"
"""The namespace of jobs where nothing else names one."""
_CONFIGURED = re.compile(r"OPENLINEAGE_(URL|CONFIG|DISABLED|_TRANSPORT(__.*)?)")
_CONFIG_FILES = (Path("openlineage.yml"), Path("~/.openlineage/openlineage.yml"))
_NOTHING_NEW = "NO_OP"

State = Literal["START", "COMPLETE", "FAIL", "ABORT"]
_STATES: Mapping[str, State] = {
    "LOADED": "COMPLETE",
    "NO_OP": "COMPLETE",
    "LOADED_CATALOG_OUT_OF_DATE": "COMPLETE",
    "FAILED": "FAIL",
    "SKIPPED": "ABORT",
    "INTERRUPTED": "ABORT",
}
"""What the end of a table is in OpenLineage."""


@dataclass(frozen=True)
class Receiver:
    """Where events are sent: to `url`, into `file`, or as the client's own configuration says."""

    namespace: str
    url: str | None = None
    endpoint: str = ""
    token: Secret | None = None
    headers: Mapping[str, Secret] | None = None
    file: str | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"`{self.url or self.file or 'the configured receiver'}`"


@dataclass(frozen=True)
class Moment:
    """One event: of a table, or of the pipeline. `result` is the table's in the document of
    `sync`."""

    state: State
    at: datetime
    table: TableSpec | None = None
    result: Mapping[str, Any] | None = None
    error: str | None = None


def receiver_of(settings: Lineage, folder: Path, environment: Mapping[str, str]) -> Receiver:
    """Return where events are sent, with the values of secrets.

    Raises `MachineNotReady` where the client is not installed, and `InvalidInput` for a secret that
    is missing, and where nothing says where events are sent.
    """
    LINEAGE.check()
    configured = any(_CONFIGURED.fullmatch(name) for name in environment)
    configured = configured or any(path.expanduser().is_file() for path in _CONFIG_FILES)
    if settings.url is None and settings.file is None and not configured:
        raise InvalidInput(
            "`lineage` has neither `url` nor `file`, and `OPENLINEAGE_URL` is not set",
            hint="add `url` of the receiver",
        )
    secrets = {name: _value(name, settings, folder) for name in settings.references}
    headers = {name: secrets[f"headers.{name}"] for name in settings.headers or ()}
    file = None if settings.file is None else absolute_path(folder, settings.file)
    namespace = settings.namespace or environment.get("OPENLINEAGE_NAMESPACE") or NAMESPACE
    return Receiver(
        namespace, settings.url, settings.endpoint, secrets.get("token"), headers or None, file
    )


def _value(name: str, settings: Lineage, folder: Path) -> Secret:
    reference = absolute_reference(settings.references[name], folder)
    assert reference is not None, "only given ones are listed"  # noqa: S101
    value = resolve_locally(reference)
    if not value.reveal().isprintable():
        raise InvalidInput(
            f"`lineage.{name}`: the value in `{reference}` cannot be the value of an HTTP header",
            hint="remove line breaks and other control characters from it",
        )
    return value


def parents(environment: Mapping[str, str]) -> tuple[Parent, Parent] | None:
    """Return the run that started this one and its root, as `OPENLINEAGE_PARENT_ID` and
    `OPENLINEAGE_ROOT_PARENT_ID` name them; None where they do not."""
    parent = _parent(environment.get("OPENLINEAGE_PARENT_ID", ""))
    if parent is None:
        return None
    return parent, _parent(environment.get("OPENLINEAGE_ROOT_PARENT_ID", "")) or parent


_PARENT = re.compile(r"(.+?)/(.+)/([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")


def _parent(text: str) -> Parent | None:
    found = _PARENT.fullmatch(text)
    return Parent(found[1], found[2], found[3]) if found else None


class LineageReport:
    """The events of one job."""

    def __init__(
        self, job: ReportedJob, receiver: Receiver, environment: Mapping[str, str]
    ) -> None:
        self._job = job
        self._receiver = receiver
        self._parents = parents(environment)
        self._times = JobTimes()
        self._tables = {table.source: table for table in job.tables}
        self._begun: set[str] = set()
        self._pipeline_begun = False
        self._delivery: Delivery[Moment] = Delivery(self._connect)

    def on_event(self, event: Event) -> None:
        """Send START of a table whose rows are being read."""
        self._times.note(event)
        table = self._tables.get(event.table or "")
        # Until it is open, a table may have nothing new; its keys are compared later.
        if event.kind != "stage" or event.stage == "open" or table is None:
            return
        if not (self._job.only_news and table.max_deleted is not None):
            self._begin(table)

    def end(
        self,
        document: Mapping[str, Any],
        _wall_time: WallTime | None = None,
        _metrics: Sequence[Measurement] = (),
    ) -> None:
        """Send the end of each table and of the job, given the document of `sync`."""
        now = datetime.now(UTC)
        for result in document["tables"]:
            table = self._tables.get(result["table"])
            idle = self._job.only_news and result["status"] == _NOTHING_NEW
            if table is None or (idle and table.source not in self._begun):
                continue
            self._begin(table)
            times = self._times.tables.get(table.source)
            ended = times.ended if times and times.ended else now
            error = result["error"]["message"] if result["error"] else None
            self._delivery.put(Moment(_STATES[result["status"]], ended, table, result, error))
        named = {result["table"] for result in document["tables"]}
        for source in self._begun - named:
            # The driver ended before it could say what became of it.
            moment = Moment(_state(document), now, self._tables[source], error=_error(document))
            self._delivery.put(moment)
        if self._pipeline_begun or not self._job.only_news or document["error"]:
            self._begin_pipeline()
            self._delivery.put(Moment(_state(document), now, error=_error(document)))

    def finish(self, until: float) -> str | None:
        """Wait until all is sent, at most until a time of the monotonic clock; return a sentence
        about what is not."""
        self._delivery.finish(until)
        problem = self._delivery.problem
        return f"events of OpenLineage for {self._receiver.name}: {problem}" if problem else None

    def _begin(self, table: TableSpec) -> None:
        self._begin_pipeline()
        if table.source not in self._begun:
            self._begun.add(table.source)
            times = self._times.tables.get(table.source)
            self._delivery.put(
                Moment("START", times.started if times else self._job.started, table)
            )

    def _begin_pipeline(self) -> None:
        if not self._pipeline_begun:
            self._pipeline_begun = True
            self._delivery.put(Moment("START", self._job.started))

    def _connect(self) -> Send[Moment]:
        from lakeload.reporting.lineage_events import connect

        return connect(self._job, self._receiver, self._parents)


def _state(document: Mapping[str, Any]) -> State:
    if document["status"] == "INTERRUPTED":
        return "ABORT"
    return "COMPLETE" if document["exit_code"] in (0, 5) else "FAIL"


def _error(document: Mapping[str, Any]) -> str | None:
    """Return the error of the job; where only tables have one, how many and the first."""
    if document["error"]:
        return str(document["error"]["message"])
    errors = [table for table in document["tables"] if table["error"]]
    if not errors:
        return None
    first = f"`{errors[0]['target']}`: {errors[0]['error']['message']}"
    more = f" (and {len(errors) - 1} more tables with an error)" if errors[1:] else ""
    return f"{first}{more}"
