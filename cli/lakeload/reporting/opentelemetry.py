"""Trace and metrics of a job for OpenTelemetry, sent over OTLP at its end.

They are made and sent in another thread (`otlp`), where the libraries are imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from lakeload.config.secret_names import masked
from lakeload.documents.extras import OPENTELEMETRY
from lakeload.launch.timings import WallTime
from lakeload.reporting.delivery import Delivery, Send
from lakeload.reporting.job import JobTimes, ReportedJob, TableTimes
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.events import Event

Signal = Literal["traces", "metrics"]
SIGNALS: tuple[Signal, ...] = ("traces", "metrics")
_PROTOCOL = "http/protobuf"
_ENDPOINT = "http://localhost:4318"
"""Where OTLP over HTTP is sent by default."""


@dataclass(frozen=True)
class FinishedJob:
    """What a signal is made of: the document of `sync`, and when what took how long."""

    signal: Signal
    document: Mapping[str, Any]
    ended: datetime
    wall_time: WallTime
    tables: Mapping[str, TableTimes]


def check_opentelemetry(environment: Mapping[str, str]) -> None:
    """Raise `MachineNotReady` where the libraries are not installed, and `InvalidInput` for a
    protocol that is not spoken."""
    OPENTELEMETRY.check()
    names = ("OTEL_EXPORTER_OTLP_PROTOCOL", *(_of(signal, "PROTOCOL") for signal in SIGNALS))
    for name in names:
        protocol = environment.get(name) or _PROTOCOL
        if protocol != _PROTOCOL:
            raise InvalidInput(
                f"`{name}` is `{protocol}`, and lakeload sends `{_PROTOCOL}`",
                hint=f"set {name}={_PROTOCOL}, and the endpoint to port 4318 of the collector",
            )


def _of(signal: Signal, name: str) -> str:
    return f"OTEL_EXPORTER_OTLP_{signal.upper()}_{name}"


def signals(environment: Mapping[str, str]) -> tuple[Signal, ...]:
    """Return what is sent: nothing with `OTEL_SDK_DISABLED`, and no signal whose exporter is
    `none`."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ()
    return tuple(
        signal
        for signal in SIGNALS
        if environment.get(f"OTEL_{signal.upper()}_EXPORTER", "").lower() != "none"
    )


class OpenTelemetryReport:
    """Trace and metrics of one job."""

    def __init__(self, job: ReportedJob, environment: Mapping[str, str]) -> None:
        self._job = job
        self._environment = environment
        self._times = JobTimes()
        self._delivery: Delivery[FinishedJob] = Delivery(self._connect)

    def on_event(self, event: Event) -> None:
        """Note when a stage of a table begins, and when a table ends."""
        self._times.note(event)

    def end(self, document: Mapping[str, Any], wall_time: WallTime) -> None:
        """Send trace and metrics, given the document of `sync` and the time of its phases."""
        ended = datetime.now(UTC)
        for signal in signals(self._environment):
            tables = self._times.tables
            self._delivery.put(FinishedJob(signal, document, ended, wall_time, tables))

    def finish(self, until: float) -> str | None:
        """Wait until all is sent, at most until a time of the monotonic clock; return a sentence
        about what is not."""
        self._delivery.finish(until)
        problem = self._delivery.problem
        endpoint = self._environment.get("OTEL_EXPORTER_OTLP_ENDPOINT") or _ENDPOINT
        return f"traces and metrics for `{masked(endpoint)}`: {problem}" if problem else None

    def _connect(self) -> Send[FinishedJob]:
        from lakeload.reporting.otlp import connect

        return connect(self._job, self._environment)
