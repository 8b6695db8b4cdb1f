"""One launch from a JobSpec to its end, and the outcome of a load or a maintenance."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from lakeload.config.document import quoted
from lakeload.launch.outcome import (
    Cause,
    Ending,
    Observed,
    Outcome,
    ResultProblem,
    decide,
    native_end,
    probable_cause,
    read_result,
)
from lakeload.launch.process import (
    PATIENCE,
    Installation,
    Running,
    StopTimeouts,
    read_log,
    spark_defaults,
    submission,
)
from lakeload.launch.properties import (
    LaunchRequest,
    SparkSettings,
    executor_options,
    render,
    spark_properties,
)
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.scratch import scratch_folders
from lakeload.launch.stop import AGAIN, StopRequests
from lakeload.runtimes import Submission
from lakeload.sources.registry import facts_of, source_of
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import (
    ExitCode,
    Interrupted,
    LakeloadError,
    MachineNotReady,
    Refused,
    shared_exit,
)
from lakeload_jobs.contract.events import Event
from lakeload_jobs.contract.maintain import MaintainResult, TableMaintenance
from lakeload_jobs.contract.result import ErrorInfo, RunResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.traits import catalog_of, format_of, vends
from lakeload_jobs.core.os_user import stand_in_name
from lakeload_jobs.sources.files.files_in_use import take_left_in_use

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
    explain: Callable[[Cause], Cause] = field(default=lambda cause: cause)
    """Adds to the cause of a job that never started what this machine has to do with it."""
    patience: StopTimeouts = PATIENCE
    run: RunJob | None = None
    """What runs a job; None starts a driver for this one alone."""


@dataclass(frozen=True)
class Ended:
    """How a launch ended, what its events told, and what the log suggests where no result does."""

    ending: Ending
    observed: Observed
    cause: Cause


RunJob = Callable[[JobSpec, RunFolder, Launcher], Ended]


def launch(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Outcome:
    """Load what `spec` names and return what became of it. Raises as `run_job` does."""
    ended = (launcher.run or run_job)(spec, folder, launcher)
    result = read_result(RunResult, folder.result, spec.attempt_id)
    maybe = format_of(spec.destination).commit_unknown
    outcome = decide(ended.ending, result, ended.observed, spec.tables, ended.cause, maybe=maybe)
    if isinstance(result, ResultProblem):
        return outcome
    return replace(outcome, usage=result.usage, needs_java=result.needs_java or {})


def run_job(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Ended:
    """Run the job of `spec`, whichever it is; every event is shown.

    Raises `MachineNotReady` when the process cannot be started, `InvalidInput` for properties that
    lakeload decides itself.
    """
    # Another job than a load reads no input.
    size = jvm_bytes(spec) if spec.job == "load" else None
    started = prepare_driver(spec, folder, launcher, size)
    write_spec(spec, folder, launcher)
    with Running(started, folder, launcher.stop, launcher.patience) as running:
        for event in running.events():
            launcher.show(event)
        if running.unreadable_events:
            logger.warning("%d lines of events.jsonl are not events", running.unreadable_events)
    return ended_driver(running, folder, launcher)


def ended_driver(running: Running, folder: RunFolder, launcher: Launcher) -> Ended:
    """Return how a driver ended, and its probable cause; `folder` is that of the driver."""
    ending, observed = running.ending, running.observed
    files = take_left_in_use(folder.files_in_use)
    shutil.rmtree(folder.files_in_use, ignore_errors=True)
    cause = native_end(ending.exit_status, observed.opened, files) or probable_cause(
        read_log(folder.log), ending.exit_status, observed.opened
    )
    if not observed.opened and ending.exit_status != 0 and ending.stopped_by is None:
        cause = launcher.explain(cause)
    return Ended(ending, observed, cause)


def _check_user(user: str, settings: SparkSettings) -> None:
    """Raise `MachineNotReady` where executors would log in by the name of a user without one."""
    if user and not settings.runtime.starts_without_user_name:
        raise MachineNotReady(
            f"this process runs as {user}, which has no entry in /etc/passwd, and executors of "
            f"the master `{settings.master}` do not start without one",
            hint="run lakeload as a user with an entry, or set `spark: {master: 'local[*]'}`",
        )


def prepare_driver(
    spec: JobSpec,
    folder: RunFolder,
    launcher: Launcher,
    jvm_bytes: int | None,
    jobs: Path | None = None,
) -> Submission:
    """Return how the driver starts, for `spec`, or for the jobs that arrive through the pipe
    `jobs`. Raises as `run_job` does."""
    installation, environment = launcher.installation, launcher.environment
    conf = {**spark_defaults(installation, environment), **launcher.settings.conf}
    scratch = scratch_folders(folder, environment, conf)
    user = stand_in_name()
    _check_user(user, launcher.settings)
    traits = format_of(spec.destination)
    with_jars = bool(traits.jar_sets) and launcher.settings.format_jars
    request = LaunchRequest(
        launcher.settings,
        folder,
        environment,
        cores=os.cpu_count() or 1,
        jvm_bytes=jvm_bytes,
        session_settings=traits.session_settings if with_jars else {},
        executor_options=executor_options(spec.destination) if with_jars else (),
        scratch=scratch,
        user=user,
    )
    return written_submission(request, installation, environment, spec.pipeline, jobs)


def written_submission(
    request: LaunchRequest,
    installation: Installation,
    environment: Mapping[str, str],
    pipeline: str,
    jobs: Path | None = None,
) -> Submission:
    """Write spark.conf and log4j's settings into the run folder, and return how the driver
    starts."""
    folder = request.folder
    properties = render(spark_properties(request))
    log_settings = resources.files("lakeload.launch").joinpath("log4j2.properties")
    folder.write(folder.log_settings, log_settings.read_text("utf-8"))
    folder.write(folder.properties, properties)
    return submission(
        installation,
        folder,
        master=request.settings.master,
        pipeline=pipeline,
        environment=environment,
        scratch=request.scratch,
        user=request.user,
        jobs=jobs,
    )


def write_spec(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> None:
    """Write spec.json into the run folder."""
    # Here, where the master is known for sure: with a wrong one the job would leave secrets
    # unresolved.
    settings = launcher.settings
    runtime = settings.runtime.traits_of(settings.master)
    spec = replace(spec, runtime=runtime, format_jars=settings.format_jars)
    folder.write(folder.spec, json.dumps(to_json(spec), indent=1))


def jvm_bytes(spec: JobSpec) -> int | None:
    """Return the bytes of input whose rows will pass through the JVM, as far as the documents tell;
    None where those of a table are not known here."""
    by_jvm = [table for table in spec.tables if not _without_jvm(spec, table)]
    sizes = [source_of(table.input).count_files(table.input).size for table in by_jvm]
    return None if None in sizes else sum(filter(None, sizes))


def _without_jvm(spec: JobSpec, table: TableSpec) -> bool:
    """Return whether rows probably go from reader to encoder within one Python process."""
    facts = facts_of(table.input)
    if table.mode not in format_of(spec.destination).split_modes or spec.reader == "JVM":
        return False
    if (catalog := catalog_of(spec.destination)) is not None and vends(catalog):
        # Spark writes the files of such Iceberg tables.
        return False
    if table.where is not None or table.deleted_when is not None:
        return False
    if table.max_deleted is not None:
        # Spark compares the keys.
        return False
    if table.columns.types and not facts.casts:
        return False
    return facts.reader != "jvm"


def refuse_without_any_input(tables: Sequence[TableSpec]) -> None:
    """Raise `Refused` when every table lacks its input: Spark need not start for that.

    Where only some lack it, those fail in the job and the others are loaded.
    """
    absent = [source_of(table.input).absent(table.input) for table in tables]
    if not tables or not all(absent):
        return
    first = tables[0]
    more = f", and none for {len(absent) - 1} other tables" if len(absent) > 1 else ""
    raise Refused(
        f"no input files for table `{first.source}`: {quoted(absent[0])}{more}",
        hint="relative paths start at the folder of the pipeline's file",
    )


@dataclass(frozen=True)
class Maintained:
    """The end of a maintenance: what is shown, and the exit code."""

    exit_code: ExitCode
    tables: tuple[TableMaintenance, ...] = ()
    error: ErrorInfo | None = None

    @property
    def status(self) -> str:
        """SUCCEEDED, FAILED or INTERRUPTED, for the JSON document."""
        if self.exit_code in (ExitCode.OK, ExitCode.FOLLOW_UP_FAILED) and self.error is None:
            return "SUCCEEDED"
        return "INTERRUPTED" if self.exit_code == ExitCode.INTERRUPTED else "FAILED"


def launch_maintenance(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Maintained:
    """Maintain the tables that `spec` names. Raises as `run_job` does."""
    ended = run_job(spec, folder, launcher)
    return decide_maintenance(ended, read_result(MaintainResult, folder.result, spec.attempt_id))


def maintained(tables: Iterable[TableMaintenance]) -> Maintained:
    """Return the outcome of tables that were all worked on."""
    found = tuple(tables)
    return Maintained(exit_code_of(found), found)


def refused(error: LakeloadError) -> Maintained:
    """Return the outcome of a maintenance that ended before any table was looked at."""
    return Maintained(error.exit_code, (), ErrorInfo.of(error))


def decide_maintenance(ended: Ended, result: MaintainResult | ResultProblem) -> Maintained:
    """Return the outcome; success takes two signals that agree, as that of a load does."""
    ending = ended.ending
    tables = result.tables if isinstance(result, MaintainResult) else ()
    whole = isinstance(result, MaintainResult) and result.error is None
    if ending.stopped_by is not None and not whole:
        stopped = Interrupted(f"stopped by {ending.stopped_by.name}", hint=AGAIN)
        return Maintained(stopped.exit_code, tables, ErrorInfo.of(stopped))
    if isinstance(result, ResultProblem):
        ran_well = ending.exit_status == 0 or not result.missing
        message, hint, code = result.message, result.hint, ExitCode.TABLE_FAILED
        if not ran_well:
            cause = ended.cause
            message, code = f"the Spark job crashed: {cause.message}", cause.exit_code
            hint = cause.hint or AGAIN
        return Maintained(code, (), ErrorInfo("NoResult", message, int(code), hint))
    if result.error is not None:
        return Maintained(ExitCode(result.error.exit_code), tables, result.error)
    # A stop that came when all was done ends the JVM, and changes nothing else.
    if result.status == "SUCCEEDED" and ending.exit_status != 0 and ending.stopped_by is None:
        code = ExitCode.FOLLOW_UP_FAILED
        message = f"the job reported success but Spark ended with status {ending.exit_status}"
        return Maintained(code, tables, ErrorInfo("ResultMismatch", message, int(code)))
    return Maintained(exit_code_of(tables), tables)


def exit_code_of(tables: Iterable[TableMaintenance]) -> ExitCode:
    """Return the code that all failures share, else 1; 5 where other commits came first."""
    found = tuple(tables)
    steps = [step for table in found for step in table.steps]
    failed = [table.error for table in found if table.error]
    failed += [step.error for step in steps if step.status == "FAILED" and step.error]
    if failed:
        return shared_exit(error.exit_code for error in failed)
    lost = any(step.status == "CONFLICT" for step in steps)
    return ExitCode.FOLLOW_UP_FAILED if lost else ExitCode.OK
