"""`lakeload sync`: load a pipeline's tables, exactly once, through one Spark job."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import (
    Conf,
    DestinationFile,
    JobId,
    Limit,
    Master,
    Output,
    PipelineFile,
    Reload,
    Schema,
    Tables,
    interval_of,
    parsed_duration,
)
from lakeload.config.document import quoted
from lakeload.config.secret_names import absolute_path
from lakeload.documents.durations import parse_duration
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from lakeload.commands.reports import Reports
    from lakeload.commands.sync_once import LoadJob, Synced
    from lakeload.commands.sync_rounds import Round, Schedule
    from lakeload.documents.load import PipelineDocument
    from lakeload.documents.named_files import NamedFiles
    from lakeload.documents.pipeline import Pipeline
    from lakeload.launch.spec import Attempt
    from lakeload.launch.timings import WallTime
    from lakeload.ui.json_documents import MissingArchive
    from lakeload.ui.summary import Summary
    from lakeload_jobs.contract.spec import RunOptions, TableSpec

IDLE_REPORT_SECONDS = 60.0
"""How often rounds without anything new send their metrics."""


def sync(
    pipeline: PipelineFile,
    destination: DestinationFile = None,
    table: Tables = None,
    job_id: JobId = None,
    master: Master = None,
    conf: Conf = None,
    limit: Limit = None,
    reload: Reload = False,
    full_refresh: Annotated[
        bool,
        typer.Option(
            "--full-refresh",
            help="OVERWRITE and UPSERT: replace the table with all files, in one snapshot.",
        ),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="VALUE",
            help="Load the rows of databases from this value of `cursor` on, also those loaded.",
            show_default=False,
        ),
    ] = None,
    retry_rejected: Annotated[
        str | None,
        typer.Option(
            "--retry-rejected",
            metavar="JOB",
            help=(
                "Load the records that this job rejected, with today's settings, instead of files."
            ),
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, as `lakeload plan` does.")
    ] = False,
    schema: Schema = None,
    timings: Annotated[
        bool, typer.Option("--timings", help="Show the wall time of each phase and each table.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="INTERVAL",
            help="Stay running and load what is new this often, such as PT5M or 30s; overrides "
            "`upload_interval`.",
            show_default=False,
        ),
    ] = None,
    max_rounds: Annotated[
        int | None,
        typer.Option("--max-rounds", metavar="N", min=1, help="With an interval: end after N."),
    ] = None,
    until_idle: Annotated[
        bool,
        typer.Option("--until-idle", help="With an interval: end when there is nothing new."),
    ] = False,
    stop_within: Annotated[
        str,
        typer.Option(
            "--stop-within",
            metavar="DURATION",
            help="With an interval: how long tables may take to commit after a stop signal.",
        ),
    ] = "PT25S",
    health_file: Annotated[
        Path | None,
        typer.Option(
            "--health-file",
            metavar="FILE",
            help="With an interval: touch this file each second while waiting or loading.",
            show_default=False,
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="With an interval: serve /metrics and /healthz over HTTP, as on 127.0.0.1:9464.",
            show_default=False,
        ),
    ] = None,
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics-file",
            metavar="FILE",
            help="Write metrics into this file after each job, in the text format of OpenMetrics; "
            "overrides `metrics_file`.",
            show_default=False,
        ),
    ] = None,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Load the tables of a pipeline: all rows of a table or none, each job once.

    The job's id is the first line on stderr. If a table fails, the others are still
    loaded. Rerun the same command with `--job-id` and that id to load the rest.
    """
    from lakeload.commands.source_tables import with_found_tables
    from lakeload.commands.spark_job import Context
    from lakeload.documents.load import load_pipeline
    from lakeload.documents.spec import table_specs
    from lakeload.launch.spec import (
        check_options,
        new_attempt,
        retry_tables,
        run_options,
        select_tables,
    )
    from lakeload.launch.stop import StopRequests
    from lakeload.launch.timings import Timings, process_started
    from lakeload.ui.display import Phases
    from lakeload.ui.progress import PHASES

    if schema is not None and not dry_run:
        raise InvalidInput(
            "`--schema` and `--no-schema` go with `--dry-run`", hint="add `--dry-run`"
        )
    if timings and dry_run:
        raise InvalidInput("`--timings` needs a load", hint="remove `--dry-run`")
    once = {
        "--dry-run": dry_run,
        "--timings": timings,
        "--job-id": job_id is not None,
        "--reload": reload,
        "--full-refresh": full_refresh,
        "--limit": limit is not None,
        "--from": since is not None,
        "--retry-rejected": retry_rejected is not None,
    }
    for_once = [name for name, is_set in once.items() if is_set]
    flags = _Rounds(every, max_rounds, until_idle, stop_within, health_file, listen)
    flags.check(for_once)
    times = Timings(process_started())
    phases = Phases(console.err, PHASES["documents"], quiet=console.silent())

    def read() -> LoadJob:
        document = load_pipeline(pipeline, os.environ, destination)
        attempt = new_attempt(job_id)
        # What is wrong with the options is said before the source is asked.
        tables = None if document.has_globs else chosen_tables(document)
        if for_once or flags.interval(document.model) is None:
            console.note(f"job {attempt.job_id}")
        found = with_found_tables(document, "sync", keys=True, phases=phases)
        if tables is None or found is not document:
            tables = chosen_tables(found)
        return job_of(found, attempt, tables)

    def look(job: LoadJob) -> LoadJob:
        document = with_found_tables(job.document, "sync", keys=True)
        if document is job.document:
            return job
        return job_of(document, job.attempt, chosen_tables(document))

    def options_of(document: PipelineDocument) -> RunOptions:
        return run_options(
            document, reload=reload, full_refresh=full_refresh, limit=limit, since=since
        )

    def chosen_tables(document: PipelineDocument) -> tuple[TableSpec, ...]:
        options = options_of(document)
        tables = select_tables(table_specs(document, options), table or ())
        if retry_rejected is not None:
            tables = retry_tables(tables, retry_rejected, options)
        check_options(tables, document.destination.model.table_format, options)
        return tables

    def job_of(
        document: PipelineDocument, attempt: Attempt, tables: tuple[TableSpec, ...]
    ) -> LoadJob:
        times.begin("machine")
        # Importing boto3 takes longer than all of the above, so it is done only now.
        from lakeload.commands.reports import check_reports
        from lakeload.commands.sync_once import LoadJob

        if not dry_run:
            check_reports(document, os.environ)
        interval = None if {*for_once} - {"--dry-run"} else flags.interval(document.model)
        options = options_of(document)
        return LoadJob(document, tables, attempt, options, master, conf or (), interval=interval)

    with StopRequests() as stop, phases:
        times.begin("documents")
        job = read()
        context = Context(os.environ, stop, console.err, console.quiet(), times, phases)
        recorder = _Recorder(metrics_file)
        limited = any(table.round_limit is not None for table in job.tables)
        schedule = None if for_once else flags.schedule(job.document.model, limited=limited)
        if schedule is not None:
            from lakeload.commands.sync_rounds import Rounds

            show = functools.partial(
                _show_round,
                output=output,
                recorder=recorder,
                idle=schedule.interval is None,
            )
            with recorder.listening(listen, job) as on_alive, recorder.ending():
                rounds = Rounds(read, look, show, replace(schedule, on_alive=on_alive), context)
                raise typer.Exit(rounds.run(job))
        context.begin("machine")
        from lakeload.commands.sync_once import sync_once

        if dry_run:
            from lakeload.commands.plan_once import show_plan

            show_plan(job, context, output, schema=schema)
        from lakeload.commands.reports import Reports

        started = time.monotonic()
        reports = Reports(job, os.environ, only_news=False)
        synced = sync_once(job, replace(context, on_event=reports.on_event))
        # What is shown from here on is decided: a signal changes neither it nor the exit code.
        stop.hold()
        phases.stop()
        # A load that failed has more urgent things to say.
        archive_for = synced.archive_for if synced.outcome.exit_code is ExitCode.OK else None
        hint = None
        if archive_for is not None:
            hint = _missing_archive(archive_for, job.document.files, output)
        summary = recorder.summary(
            job, synced, time.monotonic() - started, times.finish(), hint, timings=timings
        )
        _show(summary, output)
        if left := [table.table for table in synced.outcome.tables if table.more]:
            console.note(
                f"`round_limit` left new files or rows of {quoted(left, 10)} for the next load"
            )
        recorder.record(job, synced, summary, reports)
        raise typer.Exit(synced.outcome.exit_code)


@dataclass(frozen=True)
class _Rounds:
    """The flags of loads at an interval."""

    every: str | None
    max_rounds: int | None
    until_idle: bool
    stop_within: str
    health_file: Path | None
    listen: str | None

    def check(self, for_once: list[str]) -> None:
        """Raise `InvalidInput` for flags of rounds beside those that are for one load."""
        if for_once and (given := self._given):
            raise InvalidInput(
                f"`{given[0]}` and `{for_once[0]}` cannot be used together",
                hint=f"remove `{for_once[0]}`, or load once without `{given[0]}`",
            )

    def interval(self, pipeline: Pipeline) -> timedelta | None:
        """Return the interval, by the flag or the pipeline. Raises `InvalidInput`."""
        return interval_of(self.every, pipeline)

    def schedule(self, pipeline: Pipeline, *, limited: bool) -> Schedule | None:
        """Return when rounds begin; None where all is loaded at once, without an interval and with
        no table `limited`. Raises `InvalidInput`."""
        interval = self.interval(pipeline)
        if interval is None:
            if self._given:
                raise InvalidInput(
                    f"`{self._given[0]}` needs an interval",
                    hint=f"add `--every PT5M`, or remove `{self._given[0]}`",
                )
            if not limited:
                return None
        from lakeload.commands.sync_rounds import Schedule

        within = parsed_duration("--stop-within", self.stop_within, parse_duration).total_seconds()
        return Schedule(interval, self.max_rounds, self.until_idle, self.health_file, within)

    @property
    def _given(self) -> list[str]:
        """The flags that were given."""
        flags = {
            "--every": self.every is not None,
            "--max-rounds": self.max_rounds is not None,
            "--until-idle": self.until_idle,
            "--health-file": self.health_file is not None,
            "--listen": self.listen is not None,
        }
        return [name for name, is_set in flags.items() if is_set]


class _Recorder:
    """Makes the summaries of jobs, and records each where the pipeline or a flag says."""

    def __init__(self, metrics_file: Path | None) -> None:
        from lakeload.launch.run_folder import runs_directory
        from lakeload.launch.usage import CommandUsage
        from lakeload.monitoring.history import JobHistory
        from lakeload.monitoring.metrics import Monitor

        self._metrics_file = metrics_file
        self._usage = CommandUsage()
        self._monitor = Monitor(_warn)
        self._reported = time.monotonic()
        self._history = JobHistory(runs_directory(os.environ), _warn)

    @contextmanager
    def listening(self, address: str | None, job: LoadJob) -> Iterator[Callable[[], None]]:
        """Serve metrics and signs of life while the block runs, and return what takes a sign of
        life. Raises `InvalidInput` for an address that cannot be listened on."""
        if address is None:
            yield lambda: None
            return
        from lakeload.monitoring.endpoint import Endpoint
        from lakeload.monitoring.metrics import Monitor, read_file

        path = self._path(job)
        with Endpoint(address, read_file(path) if path else None) as endpoint:
            console.note(f"listening on port {endpoint.port}: /metrics and /healthz")
            self._monitor = Monitor(_warn, endpoint.publish)
            yield endpoint.alive

    def summary(
        self,
        job: LoadJob,
        synced: Synced,
        seconds: float,
        wall_time: WallTime,
        hint: MissingArchive | None = None,
        *,
        timings: bool = False,
    ) -> Summary:
        """Return all that is known of a job that has just ended."""
        from lakeload.ui.summary import Summary

        return Summary(
            job.attempt.job_id,
            job.attempt.attempt_id,
            job.document.model.name,
            job.document.destination.model.bucket,
            job.attempt.synced,
            seconds,
            synced.outcome,
            synced.log,
            wall_time,
            self._usage.take(),
            timings,
            hint,
        )

    def record(
        self,
        job: LoadJob,
        synced: Synced,
        summary: Summary,
        reports: Reports,
        *,
        rounds: bool = False,
        idle: bool = False,
    ) -> None:
        """Record a job that was shown, and send its reports; those of rounds that are `idle` at
        most once a minute."""
        from lakeload.ui.summary import to_document

        document = to_document(summary)
        targets = [table.target for table in job.tables]
        metrics = self._monitor.add_metrics(dict(document), targets, self._path(job))
        if job.document.model.history:
            connections = synced.connections
            self._history.begin(
                dict(document), targets, job.destination, connections, rounds=rounds
            )
        if not idle or time.monotonic() > self._reported + IDLE_REPORT_SECONDS:
            self._reported = time.monotonic()
            reports.end(document, summary.wall_time, metrics)
        self._history.finish(last=False)
        if job.document.model.notify is not None:
            from lakeload.commands.notifications import notify

            notify(job, synced, document, self._history, _warn)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Record what is left after the block."""
        try:
            yield
        finally:
            self._history.finish()

    def _path(self, job: LoadJob) -> Path | None:
        """Return the file of the metrics."""
        written = job.document.model.metrics_file
        if self._metrics_file is not None or written is None:
            return self._metrics_file
        return Path(absolute_path(job.document.path.parent, written))


def _warn(text: str) -> None:
    """Warn on stderr of what fails no load."""
    from lakeload.ui.errors import say

    if not console.quiet():
        say(console.err, "warning", text)


def _show_round(done: Round, *, output: OutputFormat, recorder: _Recorder, idle: bool) -> None:
    """Show a round, and record it: all of it in JSON, a document a line; in text what is new, or
    failed, and with `idle` what is not."""
    from lakeload.ui.summary import show_remarks

    summary = recorder.summary(done.job, done.synced, done.seconds, done.wall_time)
    if not done.idle:
        console.note(f"round {done.number}: job {done.job.attempt.job_id}")
    if output is OutputFormat.JSON or not done.idle or idle:
        _show(summary, output, done.number)
    elif done.number == 1:
        if not any(table.waiting for table in done.outcome.tables):
            console.note("nothing new")
        if not console.quiet():
            show_remarks(summary, console.err)
    idle = done.idle and not idle
    recorder.record(done.job, done.synced, summary, done.reports, rounds=True, idle=idle)


def _show(summary: Summary, output: OutputFormat, number: int | None = None) -> None:
    """Show the summary; `number` is that of a round."""
    from lakeload.ui.summary import show_text, show_what_next, to_document

    document = to_document(summary)
    if output is OutputFormat.JSON and number is not None:
        console.show_json_line({**document, "round": number})
        show_what_next(summary, console.err)
    elif output is OutputFormat.JSON:
        console.show_json(document)
        show_what_next(summary, console.err)
    else:
        show_text(summary, console.out, console.err, quiet=console.quiet())


def _missing_archive(
    features: tuple[str, ...], files: NamedFiles, output: OutputFormat
) -> MissingArchive | None:
    """Return how to build the AppCDS archive that a load did not have: always in JSON, else once
    for sets of jars."""
    from lakeload.commands.appcds_archive import saves_seconds
    from lakeload.machine.appcds import is_first_hint
    from lakeload.machine.cache import cache_directory

    if output is not OutputFormat.JSON and (
        console.quiet() or not is_first_hint(cache_directory(os.environ), features)
    ):
        return None
    return {"command": files.command("jars fetch"), "saves_seconds": saves_seconds(features)}
