"""Preconditions of a job on a Parquet table, from its commit log and settings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lakeload_jobs.contract.codec import format_instant
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import (
    AppendAgain,
    DestinationSpec,
    PartitionStrategy,
    TableHandling,
)
from lakeload_jobs.core.authors import started_by
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import PARTITION_KEY
from lakeload_jobs.formats.parquet.log.commit_log import EarlierJob, History
from lakeload_jobs.formats.parquet.log.records import FenceRecord, GlueTarget, LoadRecord, Record


def glue_target(destination: DestinationSpec, location: TableLocation) -> GlueTarget | None:
    """Return the table's name in Glue, None when the destination does not use Glue.

    The database is the schema: it holds the prefix already, and both are in lower case.
    """
    parquet = destination.parquet
    if not parquet.update_glue_catalog:
        return None
    partitioned = parquet.partition_strategy != "NONE"
    return GlueTarget(
        database=location.schema,
        table=location.table,
        partition_key=PARTITION_KEY if partitioned else None,
        projection=partitioned and parquet.partition_projection,
    )


_ANEW = (
    "or load into a new table: give the pipeline another `name` and another `namespace`; or "
    "restore the setting, empty the table with `lakeload reset`, change the setting again and load "
    "everything"
)


@dataclass(frozen=True)
class TableSettings:
    """How one load lays out its table and lists it in Glue."""

    glue: GlueTarget | None
    partition_strategy: PartitionStrategy


def table_settings(destination: DestinationSpec, location: TableLocation) -> TableSettings:
    """Return the settings of the destination for one of its tables."""
    strategy = destination.parquet.partition_strategy
    return TableSettings(glue_target(destination, location), strategy)


def check_table(history: History, job: LoadAttempt, target: str) -> None:
    """Raise `InvalidInput` when the table was last loaded under settings that exclude the job's.

    Whichever pipeline it was: Glue has one table for all of them.
    """
    loaded = [(known.latest, name) for name, known in history.pipelines.items() if known.latest]
    if not loaded or job.settings is None:
        return
    number, name = max(loaded)
    known = history.pipelines[name]
    was = TableSettings(known.glue, known.partition_strategy or job.settings.partition_strategy)
    _compare(was, f"pipeline `{name}`, record {number}", job.settings, target)


def _compare(was: TableSettings, whose: str, now: TableSettings, target: str) -> None:
    """`whose` load of the table it was."""
    if was.glue is None and now.glue is None:
        return
    if now.glue is None:
        raise InvalidInput(
            f"`{target}` is loaded with AWS Glue ({whose}), and `update_glue_catalog` is false "
            "now: Glue would not show new rows",
            hint=f"restore `update_glue_catalog: true`; {_ANEW}",
        )
    if was.glue is None:
        raise InvalidInput(
            f"`{target}` is loaded without AWS Glue ({whose}), and `update_glue_catalog` is true "
            "now: Glue would not show the existing rows",
            hint=f"restore `update_glue_catalog: false`; {_ANEW}",
        )
    if was.partition_strategy != now.partition_strategy:
        raise InvalidInput(
            f"`{target}` has partitions by {was.partition_strategy} in AWS Glue ({whose}), and "
            f"`partition_strategy` is {now.partition_strategy} now: their folders would "
            "overlap, and Athena would read rows twice",
            hint=f"restore `partition_strategy: {was.partition_strategy}`; {_ANEW}",
        )
    if was.glue.projection != now.glue.projection:
        raise InvalidInput(
            f"the partitions of `{target}` are {_kind(was.glue)} in AWS Glue ({whose}), and would "
            f"be {_kind(now.glue)} now: queries would miss those of one kind",
            hint=f"restore `partition_projection: {str(was.glue.projection).lower()}`; {_ANEW}",
        )


def _kind(glue: GlueTarget) -> str:
    return "computed by Athena" if glue.projection else "registered"


_NEW_ID = "choose another `--job-id`"
_OTHER_NAME = "give one of them another `name` or `namespace`"


class Conflict(LoadFailed):
    """Another job took this one's place; nothing of this one was loaded. Run it again."""


@dataclass(frozen=True)
class LoadAttempt:
    """One attempt at loading one source table into one target."""

    pipeline: str
    job_id: str
    attempt_id: str
    fingerprint: str
    source: str
    table_handling: TableHandling
    settings: TableSettings | None = None
    """What it must have in common with all loads of the table; None: with none."""
    append_again: AppendAgain | None = None
    """What becomes of it after another load of the same rows; None: it has no such rows."""


def earlier_load(history: History, job: LoadAttempt, target: str) -> EarlierJob | None:
    """Return this very job where the log has it done.

    Raises `InvalidInput` when its id is spent: voided, or another pipeline's in this table.
    """
    earlier = history.find_job(job.job_id)
    if earlier is None:
        return None
    if earlier.pipeline != job.pipeline:
        raise _foreign_id(job, earlier.pipeline, target)
    if earlier.void:
        raise InvalidInput(
            f"job `{job.job_id}` was discarded or reset for `{target}` (record "
            f"{earlier.number}): the job id cannot be reused",
            hint=_NEW_ID,
        )
    return earlier


def check_same_load(job: LoadAttempt, record: LoadRecord) -> None:
    """Raise `InvalidInput` when the id was used for another load: other settings, other data."""
    if record.fingerprint == job.fingerprint:
        return
    raise InvalidInput(
        f"job `{job.job_id}` has loaded `{record.target.table}` at "
        f"{format_instant(record.created_at)} with other settings (fingerprint "
        f"{record.fingerprint[:12]}, now {job.fingerprint[:12]})",
        hint=f"{_NEW_ID}, or restore the settings of that run",
    )


def check_owner(history: History, job: LoadAttempt, target: str) -> None:
    """Raise `InvalidInput` when this pipeline loads another source table into this target."""
    known = history.pipelines.get(job.pipeline)
    if known is not None and known.latest is not None and known.source != job.source:
        raise _other_source(job, known.source, target)


def check_not_resetting(history: History, job: LoadAttempt, target: str) -> None:
    """Raise `LoadFailed` while a reset of this pipeline has not removed everything yet."""
    if (number := history.resetting.get(job.pipeline)) is not None:
        raise unfinished_reset(job.pipeline, number, target)


def unfinished_reset(pipeline: str, number: int, target: str) -> LoadFailed:
    """Return the error of a table out of which not all rows of a pipeline are removed yet."""
    return LoadFailed(
        f"pipeline `{pipeline}` is being reset in `{target}` (record {number}), and the "
        "reset is not complete",
        hint="run `lakeload reset` for the same table to finish it",
    )


def is_first_run(history: History, job: LoadAttempt) -> bool:
    """Return whether this pipeline has nothing in the table yet."""
    known = history.pipelines.get(job.pipeline)
    return known is None or known.latest is None


def check_first_run(history: History, job: LoadAttempt, target: str) -> None:
    """Raise `LoadFailed` when another pipeline loads into this target (`table_handling: FAIL`)."""
    others = sorted(name for name, known in history.pipelines.items() if known.latest is not None)
    if others:
        raise _occupied(job, f"pipeline `{others[0]}` loads into `{target}` already", history)


def shared_source(history: History, job: LoadAttempt, target: str) -> tuple[str, ...]:
    """Return a warning where a first run loads what another pipeline loads into this table too.

    Two pipelines may do so on purpose, with other files under one name; a pipeline that was
    renamed begins anew and doubles every row.
    """
    return tuple(
        f"pipeline `{name}` loads `{job.source}` into `{target}` too: if it is this pipeline under "
        "its former `name`, this load appends its rows again"
        for name in _same_source(history, job)
    )


def not_empty(job: LoadAttempt, path: str) -> LoadFailed:
    """Return the error of a first run that finds files no log knows (`table_handling: FAIL`)."""
    return _occupied(job, f"`{path}` contains files that lakeload did not write")


def holds_destination(job: LoadAttempt, path: str) -> LoadFailed:
    """Return the error of a first run into a folder that is the prefix of another destination:
    whoever reads the table by its folder would read the tables of that one too."""
    return LoadFailed(
        f"this is the first run of pipeline `{job.pipeline}` into a table whose folder `{path}` is "
        "the `prefix` of another destination, with tables in it",
        hint="load into another `name`",
    )


def check_passed(
    job: LoadAttempt,
    other: Record,
    *,
    first_run: bool,
    sets_state: bool,
    uploads: Collection[str] = (),
    retries: str | None = None,
    deletes: bool = False,
) -> None:
    """Raise when the record that took our number forbids us to go on with the next one.

    `uploads` are the ids of ours, `retries` is the job whose rejected records we have read,
    `deletes`: we have compared keys with those of the table. The same job by another attempt is not
    for here: its outcome is ours.
    """
    if isinstance(other, FenceRecord):
        if other.resets == job.pipeline:
            raise Conflict(
                f"pipeline `{job.pipeline}` was reset in this table while job `{job.job_id}` was "
                "loading",
                hint="run again if the table is to be loaded again",
                retryable=True,
            )
        if job.attempt_id in other.attempts or not set(other.uploads).isdisjoint(uploads):
            raise Conflict(
                f"this attempt was fenced off during its load: {other.reason}",
                hint="run again, and clean up only uploads that are older than your longest load",
                retryable=True,
            )
        return
    target = other.target.table
    theirs = f"job `{other.job_id}`{started_by(other.author, other.started_at)}"
    if other.job_id == job.job_id and other.pipeline != job.pipeline:
        raise _foreign_id(job, other.pipeline, target)
    if other.pipeline == job.pipeline and other.source != job.source:
        raise _other_source(job, other.source, target)
    if other.pipeline != job.pipeline and first_run and job.table_handling == "FAIL":
        raise _occupied(
            job, f"{theirs} of pipeline `{other.pipeline}` has just loaded into `{target}`"
        )
    if other.pipeline == job.pipeline and sets_state and other.state is not None:
        raise Conflict(
            f"{theirs} of the same pipeline has advanced the state of `{target}` while job "
            f"`{job.job_id}` was loading: both would load the same rows",
            hint="run again: the load continues from the new state",
            retryable=True,
        )
    again = job.append_again
    if other.pipeline == job.pipeline and again is not None and again.policy == "FAIL":
        raise Conflict(
            f"{theirs} of the same pipeline has loaded `{target}` while job "
            f"`{job.job_id}` was loading the same rows (`on_append_again: FAIL`)",
            hint="no action is needed; `lakeload runs` shows the result",
        )
    if other.pipeline == job.pipeline and deletes:
        raise Conflict(
            f"{theirs} of the same pipeline was committed to `{target}` while job "
            f"`{job.job_id}` compared the keys of the source with those of the table",
            hint="run again: nothing was committed",
            retryable=True,
        )
    if other.pipeline == job.pipeline and retries is not None and other.retried == retries:
        raise Conflict(
            f"{theirs} has loaded the rejected records of job `{retries}` into "
            f"`{target}` while job `{job.job_id}` was loading them",
            hint="no action is needed; `lakeload runs` shows the result",
        )
    if job.settings is not None:
        was = TableSettings(other.glue, other.partition_strategy)
        _compare(was, f"pipeline `{other.pipeline}`", job.settings, target)


def _foreign_id(job: LoadAttempt, pipeline: str, target: str) -> InvalidInput:
    return InvalidInput(
        f"job id `{job.job_id}` of pipeline `{job.pipeline}` is already a job of pipeline "
        f"`{pipeline}` in `{target}`",
        hint=_NEW_ID,
    )


def _other_source(job: LoadAttempt, source: str, target: str) -> InvalidInput:
    return InvalidInput(
        f"pipeline `{job.pipeline}` loads `{source}` into `{target}`; `{job.source}` cannot "
        "be loaded into the same table",
        hint=_OTHER_NAME,
    )


def _same_source(history: History, job: LoadAttempt) -> list[str]:
    return sorted(
        name
        for name, known in history.pipelines.items()
        if known.latest is not None and known.source == job.source and name != job.pipeline
    )


def _occupied(job: LoadAttempt, why: str, history: History | None = None) -> LoadFailed:
    hint = "set `table_handling: APPEND` to add to it, or load into another `name`"
    if history is not None and (former := _same_source(history, job)):
        hint = (
            f"`{former[0]}` loads `{job.source}` too: if it is this pipeline under its former "
            f"name, restore `name: {former[0]}` of the pipeline, for under another name every row "
            f"would be loaded again; otherwise {hint}"
        )
    return LoadFailed(
        f"this is the first run of pipeline `{job.pipeline}` into a table that is not empty: {why}",
        hint=hint,
    )
