"""One Iceberg table, from open to published (DESIGN section 6; docs/protocol-iceberg.md)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.contract.events import Enter
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.iceberg.bookmark import bookmark_of
from lakeload_jobs.formats.iceberg.load.branches import LOST, UNSURE, drop_branch, pause
from lakeload_jobs.formats.iceberg.load.catalog_settings import connect
from lakeload_jobs.formats.iceberg.load.counting import count
from lakeload_jobs.formats.iceberg.load.incremental import note_evidence
from lakeload_jobs.formats.iceberg.load.java import caused_by
from lakeload_jobs.formats.iceberg.load.opening import Again, Opened, Ready, open_load, ready
from lakeload_jobs.formats.iceberg.load.outcome import already, loaded, nothing_new
from lakeload_jobs.formats.iceberg.load.publish import Publish, Published, Staged, publish
from lakeload_jobs.formats.iceberg.load.stage import Stage, stage
from lakeload_jobs.formats.iceberg.load.tables import load as load_java
from lakeload_jobs.formats.iceberg.rules.branches import staging_branch
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState
from lakeload_jobs.session import configure
from lakeload_jobs.sources.base import Slice
from lakeload_jobs.sources.registry import source_of
from lakeload_jobs.storage.objects import Objects

logger = logging.getLogger(__name__)

_ROUNDS = 10


@dataclass(frozen=True)
class IcebergLoad:
    """One table of one attempt. `spark` has the catalog open."""

    spark: SparkSession
    spec: JobSpec
    table: TableSpec
    objects: Objects
    session: AwsSession
    enter: Enter
    notify: Callable[[str], None]
    """Told what takes long, in a sentence."""


def load_table(load: IcebergLoad) -> TableResult:
    """Load one table and publish it, again from the beginning where others' commits ask for it.

    Raises what stopped it; nothing is visible then, unless the error says that nobody knows.
    """
    started = time.monotonic()
    if load.table.mode == "UPSERT":
        load = replace(load, spark=_own_session(load))
    reason = ""
    for tries in range(_ROUNDS):
        try:
            result = _once(load, started, tries)
        except Again as again:
            reason = str(again)
        except (Py4JJavaError, PySparkException) as error:
            # A publish without an answer never comes here: it is looked for where it was sent.
            if not caused_by(error, *LOST, *UNSURE):
                raise
            reason = f"a commit to `{load.table.target}` was refused, or had no answer"
        else:
            return result
        load.notify(f"`{load.table.target}` is loaded again: {reason}")
        pause(tries + 2)
    raise LoadFailed(
        f"`{load.table.target}` was not loaded, {_ROUNDS} times over: {reason}",
        hint="run again when fewer loads commit to the table: nothing was committed",
        retryable=True,
    )


def _own_session(load: IcebergLoad) -> SparkSession:
    """A MERGE takes what its snapshot says of itself from the session's settings alone."""
    session = load.spark.newSession()
    configure(session)
    connect(session, load.spec.destination, load.session)
    return session


def _once(load: IcebergLoad, started: float, tries: int) -> TableResult:
    """Load once. Raises `Again` when it has to begin anew."""
    load.enter("open")
    spec, table = load.spec, load.table
    opened = open_load(load.spark, spec, table)
    if opened.already is not None and opened.facts is not None:
        seconds = time.monotonic() - started
        return already(table, opened.facts, opened.already.snapshot, seconds=seconds)
    # What replaces every row begins a new account.
    bookmark = bookmark_of(load.objects, opened.start.state, full_refresh=spec.options.full_refresh)
    found = source_of(spec, table).slice(bookmark)
    replaces = table.mode == "OVERWRITE" or (spec.options.full_refresh and table.mode == "UPSERT")
    if found.idle and not replaces:
        return nothing_new(table, seconds=time.monotonic() - started, notes=_notes(found))
    prepared = ready(load.spark, spec, table, opened, found)
    if prepared is None:
        note = "the source has no columns yet, so there is no table to make"
        return nothing_new(table, seconds=time.monotonic() - started, notes=(note,))
    return _write(load, prepared, found, started, tries, replaces=replaces)


def _write(
    load: IcebergLoad,
    prepared: Ready,
    found: Slice,
    started: float,
    tries: int,
    *,
    replaces: bool,
) -> TableResult:
    spec, table, opened = load.spec, load.table, prepared.opened
    given = _counted(load, prepared, replaces=replaces)
    published = _staged_and_published(load, given, opened, found, tries)
    if published.outcome == "AGAIN":
        raise Again(published.reason)
    seconds = time.monotonic() - started
    if published.outcome == "NO_OP" or published.snapshot is None:
        return already(table, published.facts, published.snapshot, seconds=seconds)
    java_table = load_java(load.spark, table.schema, table.table)
    bad = given.counted.bad_values
    counted = (f"{bad} values or records could not be read and became null (`on_bad_value`)",)
    return loaded(
        spec,
        table,
        java_table,
        published.snapshot,
        seconds=seconds,
        reader=given.prepared.rows.reader,
        notes=(*_notes(found), *prepared.notes),
        warnings=(
            *opened.start.warnings,
            *found.warnings,
            *prepared.warnings,
            *(counted if bad else ()),
        ),
    )


def _counted(load: IcebergLoad, prepared: Ready, *, replaces: bool) -> Stage:
    load.enter("count")
    spec, table, rows = load.spec, load.table, prepared.prepared
    counted = count(
        rows.frame,
        all_columns=bool(rows.columns.fields) and rows.rows.count_reads_all_columns,
        bounded=rows.key if table.mode == "UPSERT" and not replaces else (),
    )
    now = datetime.now(UTC)
    return Stage(
        spark=load.spark,
        spec=spec,
        table=table,
        prepared=rows,
        counted=counted,
        branch=staging_branch(now, spec.attempt_id),
        loaded=spec.destination.iceberg.branch,
        replaces=replaces,
    )


def _staged_and_published(
    load: IcebergLoad,
    given: Stage,
    opened: Opened,
    found: Slice,
    tries: int,
) -> Published:
    """Stage and publish; whatever stops it before the commit takes the staging branch with it."""
    load.enter("stage")
    spec, table = load.spec, load.table
    try:
        staged = stage(given)
        given.prepared.rows.check_unchanged()
        ledger = None
        if found.evidence is not None:
            name = spec.attempt_id if not tries else f"{spec.attempt_id}-{tries}"
            before = opened.start.state
            ledger = note_evidence(spec, table, load.objects, found.evidence, before, name)
        load.enter("commit")
    except BaseException:
        _drop(load, given.branch)
        raise
    return publish(_publish(load, given, opened, staged, found, ledger))


def _publish(
    load: IcebergLoad,
    given: Stage,
    opened: Opened,
    staged: Staged,
    found: Slice,
    ledger: str | None,
) -> Publish:
    spec, table, before = load.spec, load.table, opened.start.state
    # Where every row is replaced, those of an earlier job are gone too.
    earlier = before.rows_job if before and not given.replaces else None
    rows_job = spec.job_id if given.counted.rows else earlier

    def state(snapshot: int) -> PipelineState:
        return PipelineState(
            source=table.source,
            job=spec.job_id,
            snapshot=snapshot,
            fingerprint=table.fingerprint,
            columns={**opened.recorded, **given.prepared.mapping.column_map},
            state=found.change.after if found.change else None,
            ledger=ledger,
            rows_job=rows_job,
        )

    return Publish(
        spark=load.spark,
        schema=table.schema,
        table=table.table,
        branch=given.loaded,
        job=opened.job,
        start=opened.start,
        staged=staged,
        state=state,
        # What replaces every row leaves no file of an earlier account in the table.
        sets_state=found.keeps_state or given.replaces,
    )


def _notes(found: Slice) -> tuple[str, ...]:
    return (found.sentence,) if found.sentence else ()


def _drop(load: IcebergLoad, branch: str) -> None:
    """Drop the staging branch. What fails now must not hide why the load did; the next start of
    the table drops what is left."""
    try:
        drop_branch(load.spark, load.table.schema, load.table.table, branch)
    except (LakeloadError, Py4JError, OSError):
        logger.warning("the staging branch %s is left", branch, exc_info=True)
