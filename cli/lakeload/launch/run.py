"""One launch from a JobSpec to its end: folder, process, events; of a load, the decision too."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from lakeload.launch.command import Installation, submission
from lakeload.launch.inputs import input_bytes
from lakeload.launch.jvm import executor_options
from lakeload.launch.log_diagnosis import Cause, probable_cause
from lakeload.launch.log_file import read_log
from lakeload.launch.outcome import (
    MAYBE_COMMITTED,
    MAYBE_IN,
    Ending,
    Observed,
    Outcome,
    decide,
)
from lakeload.launch.process import PATIENCE, Patience, Running
from lakeload.launch.properties import render, spark_properties
from lakeload.launch.result_file import read_result
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.events import Event
from lakeload_jobs.contract.spec import JobSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SparkSettings:
    """How Spark runs: the master, the driver's heap such as `4096m`, further properties, jars."""

    master: str
    memory: str
    conf: Mapping[str, str]
    jars: tuple[Path, ...] = ()
    archive: Path | None = None
    """The class data of the driver's class path, where there is any."""


@dataclass(frozen=True)
class Ended:
    """How a launch ended, what its events told, and what the log suggests where no result does."""

    ending: Ending
    observed: Observed
    cause: Cause


def launch(
    spec: JobSpec,
    folder: RunFolder,
    installation: Installation,
    settings: SparkSettings,
    *,
    environment: Mapping[str, str],
    stop: StopRequests,
    show: Callable[[Event], None],
    patience: Patience = PATIENCE,
) -> Outcome:
    """Load what `spec` names and return what became of it. Raises as `run_job` does."""
    ended = run_job(
        spec,
        folder,
        installation,
        settings,
        environment=environment,
        stop=stop,
        show=show,
        patience=patience,
    )
    result = read_result(folder.result, spec.attempt_id)
    iceberg = spec.destination.table_format == "ICEBERG"
    maybe = MAYBE_IN if iceberg else MAYBE_COMMITTED
    return decide(ended.ending, result, ended.observed, spec.tables, ended.cause, maybe=maybe)


def run_job(
    spec: JobSpec,
    folder: RunFolder,
    installation: Installation,
    settings: SparkSettings,
    *,
    environment: Mapping[str, str],
    stop: StopRequests,
    show: Callable[[Event], None],
    patience: Patience = PATIENCE,
) -> Ended:
    """Run the job of `spec`, whichever it is; every event goes through `show`.

    Raises `MachineLacks` when the process cannot be started, `InvalidInput` for properties that
    lakeload decides itself.
    """
    write_inputs(spec, folder, settings, environment)
    started = submission(
        installation,
        folder,
        master=settings.master,
        pipeline=spec.pipeline,
        environment=environment,
    )
    with Running(started, folder, stop, patience) as running:
        for event in running.events():
            show(event)
        ending, observed = running.ending, running.observed
        if running.unreadable_events:
            logger.warning("%d lines of events.jsonl are no events", running.unreadable_events)
    cause = probable_cause(read_log(folder.log), ending.exit_status, observed.opened)
    return Ended(ending, observed, cause)


def write_inputs(
    spec: JobSpec, folder: RunFolder, settings: SparkSettings, environment: Mapping[str, str]
) -> None:
    """Write spec.json, spark.conf and log4j's settings into the run folder."""
    properties = spark_properties(
        master=settings.master,
        memory=settings.memory,
        log_settings=folder.log_settings,
        scratch=folder.path,
        extra=settings.conf,
        cores=os.cpu_count() or 1,
        jars=settings.jars,
        iceberg=spec.destination.table_format == "ICEBERG",
        executor_options=(
            executor_options(spec.destination) if spec.destination.table_format == "ICEBERG" else ()
        ),
        archive=settings.archive,
        # Another job reads no input.
        input_bytes=input_bytes(spec.tables) if spec.job == "load" else None,
        environment=environment,
    )
    folder.write(folder.spec, json.dumps(to_json(spec), indent=1))
    folder.write(folder.log_settings, _log_settings())
    folder.write(folder.properties, render(properties))


def _log_settings() -> str:
    return resources.files("lakeload.launch").joinpath("log4j2.properties").read_text("utf-8")
