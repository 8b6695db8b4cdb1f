"""Metrics of a pipeline, from the documents of its jobs: in the text format of OpenMetrics, and as
measurements of one job for OpenTelemetry.

https://prometheus.io/docs/specs/om/open_metrics_spec/. Counters go on where an earlier process has
written the file, so that loads from cron add up too.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from lakeload.reporting.job import Measurement
from lakeload_jobs import __version__
from lakeload_jobs.contract.codec import parse_instant
from lakeload_jobs.contract.errors import ExitCode, Refused
from lakeload_jobs.contract.result import GOOD

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""Of the text over HTTP."""

MODE = 0o644
"""Of the file: node_exporter runs as another user."""

LOCK_SECONDS = 2.0
"""How long a load waits for another that writes a file of metrics in the same folder."""

Labels = tuple[tuple[str, str], ...]
Document = Mapping[str, Any]
"""The document of `sync --output json`."""


@dataclass(frozen=True)
class Family:
    """One metric. A counter's samples are named `NAME_total`; its unit is the end of its name."""

    name: str
    kind: Literal["counter", "gauge", "info"]
    labels: tuple[str, ...]
    about: str
    counted: str = ""
    """What a number without a unit counts, such as `row`."""

    @property
    def unit(self) -> str:
        """`seconds`, `bytes` or none."""
        end = self.name.rpartition("_")[2]
        return end if end in ("seconds", "bytes") else ""

    @property
    def measurement(self) -> tuple[str, str]:
        """Name and unit in OpenTelemetry. Prometheus makes the name of the family of them, where it
        takes in OTLP."""
        unit = {"seconds": "s", "bytes": "By", "": f"{{{self.counted}}}" if self.counted else ""}
        name = self.name.removesuffix(f"_{self.unit}") if self.unit else self.name
        name = name if name.count("_") > 1 else self.name
        return name.replace("_", ".", 2), unit[self.unit]

    @property
    def sample(self) -> str:
        """The name of its samples."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.kind, "")


def _family(
    kind: Literal["counter", "gauge"], name: str, about: str, *by: str, counted: str = ""
) -> Family:
    """Return a metric of a pipeline or of a table, as its name says, with further labels `by`."""
    of_table = name.startswith("lakeload_table_")
    labels = ("pipeline", "table", *by) if of_table else ("pipeline", *by)
    return Family(name, kind, labels, about, counted)


_counter, _gauge = partial(_family, "counter"), partial(_family, "gauge")

FAMILIES = {
    family.name: family
    for family in (
        Family("lakeload_build", "info", ("version",), "The version of lakeload."),
        _counter("lakeload_jobs", "Jobs by their status.", "status", counted="job"),
        _gauge("lakeload_job_exit_code", "Exit code of the last job."),
        _gauge(
            "lakeload_job_consecutive_failures",
            "Jobs that have failed since the last one with exit code 0.",
            counted="job",
        ),
        _gauge("lakeload_job_last_end_timestamp_seconds", "When the last job ended."),
        _gauge(
            "lakeload_job_last_success_timestamp_seconds",
            "When the last job with exit code 0 ended.",
        ),
        _counter("lakeload_job_duration_seconds", "Duration of jobs."),
        _counter("lakeload_job_phase_duration_seconds", "Duration of the phases of jobs.", "phase"),
        _counter("lakeload_job_cpu_seconds", "CPU time of jobs."),
        _gauge(
            "lakeload_job_peak_memory_bytes",
            "The largest resident memory of the processes of the last job.",
        ),
        _counter(
            "lakeload_job_requests",
            "Requests to AWS and to the catalog.",
            "service",
            "operation",
            counted="request",
        ),
        _counter("lakeload_table_loads", "Loads by their status.", "status", counted="load"),
        _counter("lakeload_table_rows", "Rows that were loaded.", counted="row"),
        _counter("lakeload_table_bytes", "Bytes that were written."),
        _counter("lakeload_table_files", "Files that were written.", counted="file"),
        _counter("lakeload_table_rejected_records", "Records set aside.", counted="record"),
        _counter("lakeload_table_deleted_rows", "Rows deleted in the source.", counted="row"),
        _counter("lakeload_table_duration_seconds", "Duration of loads."),
        _counter(
            "lakeload_table_stage_duration_seconds", "Duration of the stages of loads.", "stage"
        ),
        _gauge(
            "lakeload_table_position_timestamp_seconds",
            "Time of the newest file, or the greatest value of the cursor, that is loaded.",
        ),
        _gauge("lakeload_table_lag_seconds", "Age of the position when the last job ended."),
        _gauge(
            "lakeload_table_waiting_age_seconds",
            "Age of the oldest new data that waits (`commit_at`) when the last job ended.",
        ),
        _gauge("lakeload_table_waiting_bytes", "Size of the new files that wait (`commit_at`)."),
        _gauge(
            "lakeload_table_last_success_timestamp_seconds",
            "When the table was last loaded, or had nothing new.",
        ),
        _gauge(
            "lakeload_table_consecutive_failures",
            "Loads that have failed since the last one that succeeded.",
            counted="load",
        ),
    )
}
"""All metrics by name."""


class Metrics:
    """The metrics of one pipeline. They go on from `text`, where an earlier process wrote it."""

    def __init__(self, pipeline: str, text: str = "") -> None:
        self._pipeline = pipeline
        self._values: dict[tuple[str, Labels], float] = dict(_read(text, pipeline))

    def add(self, document: Document, targets: Sequence[str]) -> None:
        """Add a job. `targets` are its tables: a job that failed early does not name them."""
        self._values = {
            key: value for key, value in self._values.items() if key[0] != "lakeload_build"
        }
        self._set("lakeload_build", 1, version=__version__)
        ended = parse_instant(document["started_at"]).timestamp() + float(document["seconds"])
        self._add_job(document, ended)
        named = {table["target"] for table in document["tables"]}
        for table in document["tables"]:
            self._add_table(table, ended)
        for target in targets:
            if target not in named:
                self._failures("lakeload_table", document["status"], table=target)
        for target in {*named, *targets}:
            labels = self._labels("lakeload_table_lag_seconds", {"table": target})
            position = self._values.get(("lakeload_table_position_timestamp_seconds", labels))
            if position is not None:
                self._set("lakeload_table_lag_seconds", max(ended - position, 0), table=target)
        for times in document["timings"]["tables"]:
            target = _target(document, times["table"])
            for stage in times["stages"]:
                name = "lakeload_table_stage_duration_seconds"
                self._add(name, stage["seconds"], table=target, stage=stage["name"])

    def text(self) -> str:
        """Return the text of OpenMetrics."""
        lines: list[str] = []
        for family in FAMILIES.values():
            samples = sorted(labels for name, labels in self._values if name == family.name)
            if not samples:
                continue
            lines.append(f"# TYPE {family.name} {family.kind}")
            if family.unit:
                lines.append(f"# UNIT {family.name} {family.unit}")
            lines.append(f"# HELP {family.name} {family.about}")
            for labels in samples:
                shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
                value = self._values[family.name, labels]
                lines.append(f"{family.sample}{{{shown}}} {_number(value)}")
        return "\n".join([*lines, "# EOF", ""])

    def measurements(self, job: Metrics) -> tuple[Measurement, ...]:
        """Return what OpenTelemetry is sent after a job: the counters of that job alone, and the
        gauges, which know earlier ones."""
        values = {key: value for key, value in job._values.items() if _kind(key) == "counter"}
        values |= {key: value for key, value in self._values.items() if _kind(key) == "gauge"}
        found = []
        for (name, labels), value in sorted(values.items()):
            family = FAMILIES[name]
            shown = {f"lakeload.{label}": text for label, text in labels}
            found.append(Measurement(*family.measurement, family.about, shown, value))
        return tuple(found)

    def _add_job(self, document: Document, ended: float) -> None:
        self._add("lakeload_jobs", 1, status=document["status"])
        self._set("lakeload_job_exit_code", document["exit_code"])
        self._set("lakeload_job_last_end_timestamp_seconds", ended)
        if document["exit_code"] == ExitCode.OK:
            self._set("lakeload_job_last_success_timestamp_seconds", ended)
        self._failures("lakeload_job", document["status"])
        self._add("lakeload_job_duration_seconds", document["seconds"])
        for phase in document["timings"]["phases"]:
            self._add("lakeload_job_phase_duration_seconds", phase["seconds"], phase=phase["name"])
        usage = document["usage"]
        self._add("lakeload_job_cpu_seconds", usage["cpu_seconds"])
        self._set("lakeload_job_peak_memory_bytes", usage["peak_memory_bytes"])
        for kind, number in usage["requests"].items():
            service, _, operation = kind.partition(".")
            self._add("lakeload_job_requests", number, service=service, operation=operation)

    def _add_table(self, table: Mapping[str, Any], ended: float) -> None:
        target = table["target"]
        self._add("lakeload_table_loads", 1, table=target, status=table["status"])
        # The numbers of a job that an earlier attempt has committed are those of that one.
        new = 0 if table["already"] else 1
        self._add("lakeload_table_rows", new * table["rows"], table=target)
        self._add("lakeload_table_bytes", new * table["bytes"], table=target)
        files = max(table["file_count"], len(table["files"]))
        self._add("lakeload_table_files", new * files, table=target)
        self._add("lakeload_table_rejected_records", new * table["rejected"], table=target)
        self._add("lakeload_table_deleted_rows", new * table["deleted"], table=target)
        self._add("lakeload_table_duration_seconds", table["seconds"], table=target)
        if table["position"] is not None:
            at = parse_instant(table["position"]).timestamp()
            self._set("lakeload_table_position_timestamp_seconds", at, table=target)
        self._add_waiting(table, ended)
        status = "SUCCEEDED" if table["status"] in GOOD else table["status"]
        if status == "SUCCEEDED":
            self._set("lakeload_table_last_success_timestamp_seconds", ended, table=target)
        self._failures("lakeload_table", status, table=target)

    def _add_waiting(self, table: Mapping[str, Any], ended: float) -> None:
        """Note what waits; 0 where nothing does any more, and nothing where nothing ever did."""
        age, size, waiting = 0.0, 0, table["waiting"]
        if waiting is not None:
            age = max(ended - parse_instant(waiting["since"]).timestamp(), 0)
            size = waiting["bytes"] or 0
        found = {"lakeload_table_waiting_age_seconds": age, "lakeload_table_waiting_bytes": size}
        for name, value in found.items():
            key = (name, self._labels(name, {"table": table["target"]}))
            if waiting is not None or key in self._values:
                self._values[key] = value

    def _failures(self, of: str, status: str, **labels: str) -> None:
        """Count a failure. What a signal stopped has neither failed nor succeeded."""
        name = f"{of}_consecutive_failures"
        if status == "SUCCEEDED":
            self._set(name, 0, **labels)
        else:
            self._add(name, 0 if status == "INTERRUPTED" else 1, **labels)

    def _set(self, name: str, value: float, **labels: str) -> None:
        self._values[name, self._labels(name, labels)] = value

    def _add(self, name: str, value: float, **labels: str) -> None:
        key = (name, self._labels(name, labels))
        self._values[key] = self._values.get(key, 0) + value

    def _labels(self, name: str, labels: Mapping[str, str]) -> Labels:
        given = {"pipeline": self._pipeline, **labels}
        return tuple((label, given[label]) for label in FAMILIES[name].labels)


def _kind(key: tuple[str, Labels]) -> str:
    return FAMILIES[key[0]].kind


def read_file(path: Path) -> str | None:
    """Return the text of a file of metrics; None where there is none that can be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other loads from a file of metrics between reading and writing it. The folder carries
    the lock, so that no other file lies in it. One that is held for long is not waited for."""
    number, until = None, time.monotonic() + LOCK_SECONDS
    # A store of the network may have no locks: two loads at once are then the user's to avoid.
    with contextlib.suppress(OSError):
        number = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)
    try:
        yield
    finally:
        if number is not None:
            os.close(number)


def other_pipeline(text: str, pipeline: str) -> str | None:
    """Return the name of another pipeline that has written a text."""
    for line in text.splitlines():
        if (match := _SAMPLE.fullmatch(line)) and match[1].startswith("lakeload_"):
            labels = {name: _unescaped(value) for name, value in _LABEL.findall(match[2])}
            if labels.get("pipeline", pipeline) != pipeline:
                return labels["pipeline"]
    return None


def write_file(path: Path, text: str) -> None:
    """Replace a file of metrics at once. Raises `OSError`."""
    # node_exporter reads names that end in `.prom`.
    number, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), MODE)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _target(document: Document, source: str) -> str:
    found = (table["target"] for table in document["tables"] if table["table"] == source)
    return next(found, source)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))


_ESCAPES = {"\\": "\\\\", "\n": "\\n", '"': '\\"'}


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in text)


_SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)", re.ASCII)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)', re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def _read(text: str, pipeline: str) -> Iterator[tuple[tuple[str, Labels], float]]:
    """Yield what a text holds of a pipeline; other lines are left out."""
    samples = {family.sample: family for family in FAMILIES.values()}
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line)
        family = samples.get(match[1]) if match else None
        if match is None or family is None:
            continue
        labels = {name: _unescaped(value) for name, value in _LABEL.findall(match[2])}
        if tuple(labels) != family.labels or labels.get("pipeline", pipeline) != pipeline:
            continue
        with contextlib.suppress(ValueError):
            yield (family.name, tuple(labels.items())), float(match[3])


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], text)


class Monitor:
    """Records the metrics of the jobs of a pipeline. Nothing here fails a load: a failure is one
    warning."""

    def __init__(
        self, warn: Callable[[str], None], publish: Callable[[str], None] | None = None
    ) -> None:
        """`publish` takes the text of the metrics after each job."""
        self._warn = warn
        self._publish = publish
        self._text = ""
        self._measured: tuple[Measurement, ...] = ()

    def add_metrics(
        self, document: Document, targets: Sequence[str], path: Path | None
    ) -> tuple[Measurement, ...]:
        """Add a job to the metrics, given the document that `sync --output json` prints and its
        tables, and write them into a file. Return what OpenTelemetry is sent."""
        doing = f"writing the metrics file `{path}`" if path else "writing metrics"
        self._measured = ()
        try:
            self._add_metrics(document, targets, path)
        except Exception as error:
            logger.info("%s failed", doing, exc_info=True)
            reason = (getattr(error, "strerror", None) or type(error).__name__).lower()
            self._warn(f"{doing}: {getattr(error, 'message', None) or reason}")
        return self._measured

    def _add_metrics(self, document: Document, targets: Sequence[str], path: Path | None) -> None:
        pipeline, other = document["pipeline"], None
        job = Metrics(pipeline)
        job.add(document, targets)
        with locked(path) if path is not None else contextlib.nullcontext():
            if path is not None and (text := read_file(path)):
                other = other_pipeline(text, pipeline)
                self._text = self._text if other else text
            metrics = Metrics(pipeline, self._text)
            metrics.add(document, targets)
            self._text, self._measured = metrics.text(), metrics.measurements(job)
            if self._publish is not None:
                self._publish(self._text)
            if other is not None:
                raise Refused(
                    f"it has the metrics of pipeline `{other}`: give each pipeline a file of its "
                    "own, or remove this one"
                )
            if path is not None:
                write_file(path, self._text)
