"""Trace and metrics of a job for OpenTelemetry, sent over OTLP at its end.

They are made and sent in another thread (`otlp`), where the libraries are imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from lakeload.config.secret_names import masked
from lakeload.documents.extras import OPENTELEMETRY
from lakeload.launch.timings import WallTime
from lakeload.reporting.delivery import Delivery, Send
from lakeload.reporting.job import JobTimes, Measurement, ReportedJob, TableTimes
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.events import Event

Signal = Literal["traces", "metrics"]
SIGNALS: tuple[Signal, ...] = ("traces", "metrics")
_PROTOCOL = "http/protobuf"
_ENDPOINT = "http://localhost:4318"
"""Where OTLP over HTTP is sent by default."""


@dataclass(frozen=True)
class FinishedJob:
    """What a signal is made of: the document of `sync`, what took how long, and the metrics."""

    signal: Signal
    document: Mapping[str, Any]
    ended: datetime
    wall_time: WallTime
    tables: Mapping[str, TableTimes]
    metrics: Sequence[Measurement]


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


def is_idle(document: Mapping[str, Any]) -> bool:
    """Return whether a job found nothing new."""
    tables = document["tables"]
    return document["error"] is None and all(one["status"] == "NO_OP" for one in tables)


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

    def end(
        self, document: Mapping[str, Any], wall_time: WallTime, metrics: Sequence[Measurement]
    ) -> None:
        """Send trace and metrics, given the document of `sync` and the time of its phases. A round
        without anything new is no trace."""
        ended = datetime.now(UTC)
        idle = self._job.only_news and is_idle(document)
        for signal in signals(self._environment):
            if metrics if signal == "metrics" else not idle:
                tables = self._times.tables
                self._delivery.put(FinishedJob(signal, document, ended, wall_time, tables, metrics))

    def finish(self, until: float) -> str | None:
        """Wait until all is sent, at most until a time of the monotonic clock; return a sentence
        about what is not."""
        self._delivery.finish(until)
        if (problem := self._delivery.problem) is None:
            return None
        given = signals(self._environment)
        endpoints = dict.fromkeys(f"`{masked(self._endpoint(signal))}`" for signal in given)
        return f"{' and '.join(given)} for {' and '.join(endpoints)}: {problem}"

    def _endpoint(self, signal: Signal) -> str:
        """Return where a signal is sent."""
        own = self._environment.get(_of(signal, "ENDPOINT"))
        return own or self._environment.get("OTEL_EXPORTER_OTLP_ENDPOINT") or _ENDPOINT

    def _connect(self) -> Send[FinishedJob]:
        from lakeload.reporting.otlp import connect

        return connect(self._job, self._environment)
