"""One launch from a JobSpec to its end: folder, process, events; of a load, the decision too."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources

from lakeload.launch.command import Installation, submission
from lakeload.launch.inputs import input_bytes
from lakeload.launch.outcome import (
    Cause,
    Ending,
    Observed,
    Outcome,
    decide,
    probable_cause,
    read_result,
)
from lakeload.launch.process import PATIENCE, Running, StopTimeouts, read_log
from lakeload.launch.properties import (
    LaunchRequest,
    SparkSettings,
    executor_options,
    render,
    spark_properties,
)
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.events import Event
from lakeload_jobs.contract.spec import JobSpec
from lakeload_jobs.contract.traits import format_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Launcher:
    """What every launch of a command has in common."""

    installation: Installation
    settings: SparkSettings
    environment: Mapping[str, str]
    stop: StopRequests
    show: Callable[[Event], None]
    """What becomes of each event."""
    patience: StopTimeouts = PATIENCE


@dataclass(frozen=True)
class Ended:
    """How a launch ended, what its events told, and what the log suggests where no result does."""

    ending: Ending
    observed: Observed
    cause: Cause


def launch(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Outcome:
    """Load what `spec` names and return what became of it. Raises as `run_job` does."""
    ended = run_job(spec, folder, launcher)
    result = read_result(folder.result, spec.attempt_id)
    maybe = format_of(spec.destination).commit_unknown
    return decide(ended.ending, result, ended.observed, spec.tables, ended.cause, maybe=maybe)


def run_job(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Ended:
    """Run the job of `spec`, whichever it is; every event is shown.

    Raises `MachineLacks` when the process cannot be started, `InvalidInput` for properties that
    lakeload decides itself.
    """
    _write_inputs(spec, folder, launcher)
    started = submission(
        launcher.installation,
        folder,
        master=launcher.settings.master,
        pipeline=spec.pipeline,
        environment=launcher.environment,
    )
    with Running(started, folder, launcher.stop, launcher.patience) as running:
        for event in running.events():
            launcher.show(event)
        ending, observed = running.ending, running.observed
        if running.unreadable_events:
            logger.warning("%d lines of events.jsonl are no events", running.unreadable_events)
    cause = probable_cause(read_log(folder.log), ending.exit_status, observed.opened)
    return Ended(ending, observed, cause)


def _write_inputs(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> None:
    """Write spec.json, spark.conf and log4j's settings into the run folder."""
    traits = format_of(spec.destination)
    request = LaunchRequest(
        launcher.settings,
        folder,
        launcher.environment,
        cores=os.cpu_count() or 1,
        # Another job reads no input.
        input_bytes=input_bytes(spec.tables) if spec.job == "load" else None,
        session_settings=traits.session_settings,
        executor_options=executor_options(spec.destination) if traits.has_catalog else (),
    )
    properties = render(spark_properties(request))
    # Here, where the master is known for sure: a job told wrong would leave secrets unresolved.
    told = replace(spec, runtime=launcher.settings.runtime.traits)
    folder.write(folder.spec, json.dumps(to_json(told), indent=1))
    folder.write(folder.log_settings, log_settings())
    folder.write(folder.properties, properties)


def log_settings() -> str:
    """Return log4j's settings for a launch."""
    return resources.files("lakeload.launch").joinpath("log4j2.properties").read_text("utf-8")
