"""Preparation of commands that start Spark: Java, Spark, settings and jars."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from lakeload.commands.start_failures import explained_by_machine
from lakeload.config.document import quoted
from lakeload.documents.cross import remote_findings
from lakeload.documents.load import PipelineDocument
from lakeload.launch.process import Installation
from lakeload.launch.properties import SparkSettings, check_conf, parse_conf
from lakeload.launch.run import Launcher, RunJob
from lakeload.launch.run_folder import RunFolder, create_run_folder, runs_directory
from lakeload.launch.scratch import remove_abandoned_scratch
from lakeload.launch.spec import Attempt, build_job_spec, new_attempt
from lakeload.launch.stop import StopRequests
from lakeload.launch.timings import Phase, Timings
from lakeload.machine.appcds import archive_key, find_archive
from lakeload.machine.cache import cache_directory, entry_script, jobs_package
from lakeload.machine.jars.pins import JARS, jar_sets_for, pinned
from lakeload.machine.java import find_java
from lakeload.machine.memory import available_memory, driver_memory
from lakeload.machine.spark import find_spark
from lakeload.runtimes import runtime_of
from lakeload.sources.registry import facts_of
from lakeload.ui.display import Phases, no_phases
from lakeload.ui.progress import PHASES, ProgressView
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.events import Event
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import format_of

logger = logging.getLogger(__name__)


def spark_settings(
    document: PipelineDocument, master: str | None, conf: Sequence[str]
) -> SparkSettings:
    """Return how Spark runs: the document, with flags over it, on this machine's memory.

    Raises `InvalidInput` for a flag that the document could not hold either.
    """
    spark = document.model.spark
    chosen = chosen_master(document, master)
    given = parse_conf(tuple(conf))
    check_conf(given)
    memory = driver_memory(spark.driver_memory, available_memory())
    return SparkSettings(chosen, memory, {**spark.conf, **given})


def chosen_master(document: PipelineDocument, master: str | None) -> str:
    """Return the master of the document, or the flag's. Raises `InvalidInput` for a flag that the
    document could not hold."""
    if master is not None:
        given_here = {
            "spark": {"master": master},
            "source": dict(document.model.source),
            "tables": document.model.tables,
        }
        for finding in remote_findings(given_here, document.destination.model):
            raise InvalidInput(f"`--master`: {finding.message}", hint=finding.hint)
    return master if master is not None else document.model.spark.master


def jar_sets(
    document: PipelineDocument, tables: Sequence[TableSpec], *, format_jars: bool
) -> tuple[str, ...]:
    """Return the sets of jars that a job of these tables needs; with `format_jars` those of the
    table format too."""
    model, reader = document.destination.model, document.model.spark.reader
    inputs = (table.input for table in tables)
    return jar_sets_for(inputs, model.table_format, reader, format_jars=format_jars)


def jar_sets_by_settings(
    document: PipelineDocument, destination: DestinationSpec, tables: Sequence[TableSpec]
) -> tuple[str, ...]:
    """Return the sets of jars that loads of these tables need, as far as the settings tell: an
    Iceberg table that exists may need those of its format too."""
    spec = build_job_spec(document, destination, tables, new_attempt(None), None)
    master = document.model.spark.master
    spec = replace(spec, runtime=runtime_of(master).traits_of(master))
    # It brings boto3, which takes longer than the first line of a sync may.
    from lakeload.formats.registry import commands_of

    needs_java = commands_of(destination.table_format).needs_java
    needed = any(needs_java(spec, table) for table in tables)
    return jar_sets(document, tables, format_jars=needed)


def java_needed(tables: Mapping[str, str], destination: DestinationSpec) -> str:
    """Return the sentence about tables, by their targets, for which Spark is started again, each
    with the reason as a clause."""
    name = format_of(destination).name.capitalize()
    return (
        f"{quoted([*tables], 3)} {'needs' if len(tables) == 1 else 'need'} {name}'s Java code "
        f"({next(iter(tables.values()))}): starting Spark again with it"
    )


def own_jars(tables: Sequence[TableSpec]) -> tuple[Path, ...]:
    """Return the jars that the documents of tables name, each once."""
    found = (jar for table in tables for jar in facts_of(table.input).jars)
    return tuple(dict.fromkeys(found))


def prepared(
    document: PipelineDocument,
    settings: SparkSettings,
    installation: Installation,
    tables: Sequence[TableSpec],
    attempt: Attempt,
    context: Context,
    *,
    format_jars: bool = True,
) -> tuple[SparkSettings, RunFolder]:
    """Return the settings with the jars that reading and writing the tables takes, fetched if need
    be, and their class data, and a folder for the attempt. Raises `MachineNotReady`."""
    sets = jar_sets(document, tables, format_jars=format_jars)
    jars = (*_fetched(document, sets, context), *own_jars(tables))
    archive = class_data_of(installation, jars, settings.master, context.environment)
    runs = runs_directory(context.environment)
    remove_abandoned_scratch(runs)
    folder = create_run_folder(runs, attempt.synced, attempt.attempt_id)
    logger.info("the run folder is %s", folder.path)
    return replace(settings, jars=jars, format_jars=format_jars, archive=archive), folder


def _fetched(
    document: PipelineDocument, features: Sequence[str], context: Context
) -> tuple[Path, ...]:
    jars = pinned(*features)
    if not jars:
        return ()
    from lakeload.machine.jars.fetch import Origin, fetch
    from lakeload.machine.jars.repository import REPOSITORY_PROPERTY
    from lakeload.ui.jars import FetchProgress

    origin = Origin(conf=document.model.spark.conf.get(REPOSITORY_PROPERTY))
    begun = context.phases.stop
    with FetchProgress(context.err, quiet=context.quiet, on_begin=begun) as progress:
        folder = cache_directory(context.environment) / JARS
        return fetch(jars, folder, context.environment, origin=origin, listener=progress)


@contextmanager
def launcher(
    installation: Installation,
    settings: SparkSettings,
    tables: Sequence[TableSpec],
    context: Context,
    *,
    doing: str = "loading",
    run: RunJob | None = None,
) -> Iterator[Launcher]:
    """Yield what starts the job of these tables; within the block its progress is shown. `run` is
    a driver that runs already."""
    context.phases.stop()
    names = [table.source for table in tables]
    first = "starting the job" if run else "starting Spark"
    with ProgressView(
        context.err, names, quiet=context.quiet, doing=doing, first=first
    ) as progress:

        def show(event: Event) -> None:
            context.timings.note(event)
            context.on_event(event)
            progress.show(event)

        environment, stop = context.environment, context.stop
        explain = explained_by_machine(environment, settings)
        yield Launcher(installation, settings, environment, stop, show, explain, run=run)


def _ignore(event: Event) -> None:
    """Report no event."""


@dataclass(frozen=True)
class Context:
    """The environment of a command, its progress output, its stop requests and its times."""

    environment: Mapping[str, str]
    stop: StopRequests
    err: Console
    quiet: bool = False
    timings: Timings = field(default_factory=Timings)
    phases: Phases = field(default_factory=no_phases)
    """The display of the phases before Spark starts."""
    on_event: Callable[[Event], None] = _ignore
    """Called with each event of the Spark job."""

    def begin(self, phase: Phase) -> None:
        """Begin a phase before Spark: its time, and what is shown of it."""
        self.timings.begin(phase)
        self.phases.begin(PHASES[phase])

    def note(self, text: str) -> None:
        """Say something that is not an error; silent with -q."""
        if not self.quiet:
            self.err.print(text, soft_wrap=True)


def find_installation(environment: Mapping[str, str]) -> Installation:
    """Find Java, Spark and the job's package. Raises `MachineNotReady`."""
    java, spark = find_java(environment), find_spark(environment)
    logger.info("Java %s (%s) in %s", java.version, java.vendor, java.home)
    logger.info("Spark %s in %s", spark.version, spark.home)
    return Installation(
        spark_home=spark.home,
        java_home=java.home,
        python=Path(sys.executable),
        package=jobs_package(cache_directory(environment)),
        entry=entry_script(),
        load_spark_defaults=not spark.ours,
    )


def class_data_of(
    installation: Installation, jars: Sequence[Path], master: str, environment: Mapping[str, str]
) -> Path | None:
    """Return the AppCDS archive for a driver with these jars, if one is there and fits."""
    if not runtime_of(master).traits.tasks_share_driver:
        return None
    key = archive_key(installation.java_home, installation.spark_home, jars, environment)
    return find_archive(cache_directory(environment), key)
