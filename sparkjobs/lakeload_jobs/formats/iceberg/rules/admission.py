"""Preconditions of a job, from the table's history and properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum

from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed
from lakeload_jobs.core.append_again import LastLoad, append_again_warnings
from lakeload_jobs.formats.iceberg.rules.facts import (
    CREATED_BY,
    JOBS,
    JOBS_REMEMBERED,
    PROPERTIES_FORMAT,
    SEQ,
    STATE_FORMAT,
    STATE_PREFIX,
    SUMMARY_FINGERPRINT,
    SUMMARY_JOB,
    SUMMARY_PIPELINE,
    SUMMARY_RETRIED,
    PipelineState,
    TableAttempt,
    TableFacts,
    belongs,
    branch_with_rows,
    head_of,
    job_key,
    lineage,
    pipelines_of,
    publish_count,
    remembered_jobs,
    retry_key,
    state_of,
)
from lakeload_jobs.formats.iceberg.rules.summaries import loaded_rows
from lakeload_jobs.formats.iceberg.rules.writers import (
    metadata_columns,
    unmergeable_columns,
    unwritable,
)

_SOURCE_SNAPSHOT = "source-snapshot-id"
"""Iceberg's own: the snapshot of which a cherry-picked one is a copy."""


class JobFound(Enum):
    """Whether a job's rows are in a branch."""

    IN = "IN"
    NOT_IN = "NOT_IN"
    ASK_THE_DATA = "ASK_THE_DATA"
    """The metadata cannot tell: the job is in exactly if the branch has rows of its
    `_supa_job_id`. A table without that column cannot be asked: `without_the_data` decides."""


@dataclass(frozen=True)
class JobAnswer:
    """What the metadata says of one job, and the snapshot it says it of."""

    found: JobFound
    snapshot: int | None = None

    def without_the_data(self) -> JobFound:
        """Return the answer for a table that cannot be asked: the properties are believed."""
        if self.found is not JobFound.ASK_THE_DATA:
            return self.found
        return JobFound.NOT_IN if self.snapshot is None else JobFound.IN


def find_job(facts: TableFacts, branch: str, pipeline: str, job_id: str) -> JobAnswer:
    """Say whether a branch has a pipeline's job.

    I4: a remembered job counts only while its snapshot is in the branch's lineage: after a rollback
    by hand its rows are gone, and it may be loaded again. I6: the list keeps the latest
    `JOBS_REMEMBERED`; when it is full, a job that is not in it may have been forgotten.
    """
    if (seen := _in_summaries(facts, branch, pipeline, job_id)) is not None:
        return JobAnswer(JobFound.IN, seen)
    return _remembered(facts, branch, job_key(pipeline, job_id))


def find_retry(facts: TableFacts, branch: str, pipeline: str, job_id: str) -> JobAnswer:
    """Say whether a branch has a load of the rejected records of a job, as `find_job` does."""
    for number in lineage(facts, branch).ids:
        summary = facts.snapshots[number].summary
        if (summary.get(SUMMARY_PIPELINE), summary.get(SUMMARY_RETRIED)) == (pipeline, job_id):
            return JobAnswer(JobFound.IN, number)
    return _remembered(facts, branch, retry_key(pipeline, job_id))


def has_retry(facts: TableFacts, branch: str, pipeline: str, job_id: str) -> bool:
    """Return whether the rejected records of a job were read again, as far as the list of jobs
    goes back. A load of which nobody can say whether it was rolled back counts."""
    answer = find_retry(facts, branch, pipeline, job_id)
    return answer.found is not JobFound.NOT_IN and answer.snapshot is not None


def _remembered(facts: TableFacts, branch: str, key: str) -> JobAnswer:
    jobs = remembered_jobs(facts)
    snapshot = jobs.get(key)
    if snapshot is None:
        full = len(jobs) >= JOBS_REMEMBERED
        return JobAnswer(JobFound.ASK_THE_DATA if full else JobFound.NOT_IN)
    if (copy := _copy_of(facts, branch, snapshot)) is not None:
        return JobAnswer(JobFound.IN, copy)
    there = belongs(facts, branch, snapshot)
    if there is None:
        return JobAnswer(JobFound.ASK_THE_DATA, snapshot)
    return JobAnswer(JobFound.IN if there else JobFound.NOT_IN, snapshot)


def next_properties(
    facts: TableFacts,
    pipeline: str,
    job_id: str,
    snapshot: int,
    state: PipelineState,
    *,
    sets_state: bool = True,
    retries: str | None = None,
) -> dict[str, str]:
    """Return the properties that a publish sets, from the metadata its transaction is based on.

    A job that does not set the pipeline's state (`sets_state` false) leaves one that is there as
    it is, with the snapshot it belongs to: moved to a newer snapshot it would outlive the rollback
    of its own rows, and taken from the job's start it would go back (I1, I2, I8).

    A job that `retries` is remembered twice, and counted twice: the list then holds fewer jobs.
    """
    own = [job_key(pipeline, job_id)]
    if retries is not None:
        own.append(retry_key(pipeline, retries))
    jobs = {key: known for key, known in remembered_jobs(facts).items() if key not in own}
    latest = [*jobs.items(), *((key, snapshot) for key in own)][-JOBS_REMEMBERED:]
    kept = None if sets_state else state_of(facts, pipeline)
    if kept is not None and kept.state is not None:
        state = replace(kept, columns=state.columns)
    return {
        JOBS: ",".join(f"{key}:{number}" for key, number in latest),
        SEQ: str(publish_count(facts) + len(own)),
        PROPERTIES_FORMAT: str(STATE_FORMAT),
        STATE_PREFIX + pipeline: state.to_property(),
    }


def jobs_in_summaries(facts: TableFacts, branch: str) -> Mapping[tuple[str, str], int]:
    """Return (pipeline, job id) → snapshot for the snapshots of a branch that lakeload made."""
    found: dict[tuple[str, str], int] = {}
    for number in lineage(facts, branch).ids:
        summary = facts.snapshots[number].summary
        pipeline, job = summary.get(SUMMARY_PIPELINE), summary.get(SUMMARY_JOB)
        if pipeline is not None and job is not None:
            found.setdefault((pipeline, job), number)
    return found


def _in_summaries(facts: TableFacts, branch: str, pipeline: str, job_id: str) -> int | None:
    return jobs_in_summaries(facts, branch).get((pipeline, job_id))


def _copy_of(facts: TableFacts, branch: str, snapshot: int) -> int | None:
    """Return the snapshot of the branch that somebody cherry-picked from one rolled back."""
    for number in lineage(facts, branch).ids:
        if facts.snapshots[number].summary.get(_SOURCE_SNAPSHOT) == str(snapshot):
            return number
    return None


def rolled_back(
    facts: TableFacts, branch: str, job: TableAttempt, state: PipelineState
) -> LoadFailed:
    """Return the error of a state whose snapshot the branch no longer has."""
    head = head_of(facts, branch)
    now = f"is at snapshot {_named(facts, head)}" if head is not None else "is empty"
    return LoadFailed(
        f"pipeline `{job.pipeline}` has loaded `{job.target}` up to its job `{state.job}`, "
        f"snapshot {_named(facts, state.snapshot)}, and branch `{branch}` {now} without "
        "that snapshot: the table was rolled back, and an incremental load would skip the "
        "rows that are gone",
        hint=f"{_bring_back(facts, branch, job, state)}{_load_anew(job)}",
    )


def _bring_back(facts: TableFacts, branch: str, job: TableAttempt, state: PipelineState) -> str:
    """Say how to undo the rollback, where that takes away nothing published since."""
    branch = branch_with_rows(facts, branch)
    head = facts.refs.get(branch)
    at: int | None = state.snapshot
    while at is not None and at != head and at in facts.snapshots:
        at = facts.snapshots[at].parent
    if state.snapshot not in facts.snapshots or at != head:
        return ""
    table = f"lake.{job.target}"
    if branch == "main":
        call = f"CALL lake.system.set_current_snapshot('{job.target}', {state.snapshot})"
    else:
        call = f"ALTER TABLE {table} REPLACE BRANCH `{branch}` AS OF VERSION {state.snapshot}"
    return f"to undo the rollback, run `{call}` in Spark; to keep it, "


def _load_anew(job: TableAttempt) -> str:
    if job.mode == "APPEND":
        return (
            f"remove the remaining rows of `{job.target}` with `lakeload reset` and load "
            "everything again (`--reload` loads everything and keeps the remaining rows)"
        )
    return "load everything again with `--full-refresh`, which replaces the table in one snapshot"


def _named(facts: TableFacts, number: int | None) -> str:
    snapshot = facts.snapshots.get(number) if number is not None else None
    if snapshot is None:
        return f"{number} (expired)"
    made = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
    return f"{number} of {made:%Y-%m-%d %H:%M:%S} UTC"


_NEW_ID = "choose another `--job-id`"
_OTHER_NAME = "give one of them another `name` or `namespace`"


@dataclass(frozen=True)
class Start:
    """What a start saw of the table; a publish compares the table with it."""

    head: int | None
    seq: int
    state: PipelineState | None
    first_run: bool
    uuid: str | None = None
    """None: there was no table."""
    listed: int | None = None
    """The snapshot that the list of jobs had for this very job: one that is rolled back."""
    ask_rows_of: str | None = None
    """The state is believed only if the branch has rows whose `_supa_job_id` is this: its own
    snapshot is expired, so nothing else tells whether it was rolled back (I5). The load asks, and
    hands the answer to `check_state_rows` before it reads anything."""
    warnings: tuple[str, ...] = ()


def open_table(facts: TableFacts | None, branch: str, job: TableAttempt) -> Start:
    """Return what a publish will compare with, from one read of the metadata; None is no table.

    To be called when `find_job` did not find the job. Raises `InvalidInput` when the pipeline loads
    another source into this table or the job's id is taken, `LoadFailed` when a first run meets a
    table that is not its own (`table_handling: FAIL`, I11) or the pipeline's state belongs to
    a snapshot that was rolled back (I5), or nothing can write or merge what the table asks for.
    """
    if facts is None:
        return Start(None, 0, None, first_run=True)
    check_same_load(facts, branch, job)
    check_writable(facts, job)
    state = state_of(facts, job.pipeline)
    check_owner(state, job)
    if state is None and job.table_handling == "FAIL":
        check_first_run(facts, branch, job)
    return Start(
        head=head_of(facts, branch),
        seq=publish_count(facts),
        state=state,
        first_run=state is None,
        uuid=facts.uuid,
        listed=remembered_jobs(facts).get(job_key(job.pipeline, job.job_id)),
        ask_rows_of=_question(facts, branch, job, state),
        warnings=_shared_source(facts, job)
        if state is None
        else append_again_warnings(job.append_again, _last_load(facts, branch, state), job.source),
    )


def _last_load(facts: TableFacts, branch: str, state: PipelineState) -> LastLoad | None:
    """Return the pipeline's newest load; None where it was rolled back."""
    if belongs(facts, branch, state.snapshot) is False:
        return None
    snapshot = facts.snapshots.get(state.snapshot)
    if snapshot is None:
        return LastLoad(state.job)
    at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
    return LastLoad(state.job, at, loaded_rows(snapshot.summary))


def check_same_load(facts: TableFacts, branch: str, job: TableAttempt) -> None:
    """Raise `InvalidInput` when the job's id was used for another load in this table.

    With other settings it would be other data; by another pipeline, the rows of both would have one
    `_supa_job_id`, and the data could not be asked about either. Jobs whose snapshot is rolled back
    do not count.
    """
    state = state_of(facts, job.pipeline)
    if state is not None and state.job == job.job_id:
        if belongs(facts, branch, state.snapshot) is not False:
            _check_settings(job, state.fingerprint)
        return
    for (pipeline, job_id), number in jobs_in_summaries(facts, branch).items():
        if job_id != job.job_id:
            continue
        if pipeline != job.pipeline:
            raise _foreign_id(job, pipeline)
        _check_settings(job, facts.snapshots[number].summary.get(SUMMARY_FINGERPRINT))
    jobs = remembered_jobs(facts)
    for pipeline in pipelines_of(facts):
        number_of = jobs.get(job_key(pipeline, job.job_id))
        if pipeline != job.pipeline and number_of is not None:
            if belongs(facts, branch, number_of) is False:
                continue
            raise _foreign_id(job, pipeline)


def check_writable(facts: TableFacts, job: TableAttempt) -> None:
    """Raise `LoadFailed` for a table to which loads do not commit, or whose files or rows Spark
    cannot write as it asks for."""
    merges = job.mode == "UPSERT"
    problem: str | None
    if facts.format_version == 1:
        problem = "it has format version 1, to which loads do not commit"
        alter = f"ALTER TABLE lake.{job.target} SET TBLPROPERTIES ('format-version' = '2')"
        hint = f"raise its version: `{alter}` in Spark"
    elif problem := unwritable(facts.properties):
        hint = "set the table's property to a codec such as `zstd`"
    elif merges and (names := metadata_columns(facts.columns)):
        problem = unmergeable_columns(names)
        hint = f"rename the column in the table: {_renamed(job.target, names[0])}"
    else:
        return
    raise LoadFailed(f"`{job.target}` cannot be loaded: {problem}", hint=hint)


def _renamed(target: str, name: str) -> str:
    return f"`ALTER TABLE lake.{target} RENAME COLUMN {name} TO source{name}` in Spark"


def check_owner(state: PipelineState | None, job: TableAttempt) -> None:
    """Raise `InvalidInput` when this pipeline loads another source table into this target."""
    if state is not None and state.source != job.source:
        raise InvalidInput(
            f"pipeline `{job.pipeline}` loads `{state.source}` into `{job.target}`; "
            f"`{job.source}` cannot be loaded into the same table",
            hint=_OTHER_NAME,
        )


def check_first_run(facts: TableFacts, branch: str, job: TableAttempt) -> None:
    """Raise `LoadFailed` unless the table is an empty one that this pipeline has made (I11).

    A run that was killed between creating the table and its first publish leaves such a table
    behind; a table of anybody else may be about to be loaded, also while it is empty.
    """
    if others := [name for name in pipelines_of(facts) if name != job.pipeline]:
        raise _occupied(facts, job, f"pipeline `{others[0]}` loads into it")
    creator = facts.properties.get(CREATED_BY)
    if creator is None:
        raise _occupied(facts, job, "lakeload did not create it")
    if creator != job.pipeline:
        raise _occupied(facts, job, f"pipeline `{creator}` has created it for its own first load")
    if not is_empty(facts, branch):
        raise _occupied(facts, job, "it holds rows that lakeload did not write")


def is_empty(facts: TableFacts, branch: str) -> bool:
    """Return whether a branch has no rows: no snapshot, or one whose summary counts none."""
    head = head_of(facts, branch)
    if head is None:
        return True
    snapshot = facts.snapshots.get(head)
    return snapshot is not None and snapshot.summary.get("total-records") == "0"


def check_only_pipeline(facts: TableFacts, job: TableAttempt) -> None:
    """Raise `InvalidInput` where another pipeline loads the table: its keys are not in the source
    that this job compares the table with."""
    if others := [name for name in pipelines_of(facts) if name != job.pipeline]:
        raise InvalidInput(
            f"`detect_deletes`: pipeline `{others[0]}` loads into `{job.target}` too, and its rows "
            f"would be deleted, because they are not in `{job.source}`",
            hint="remove `detect_deletes`, or load into a table of another `name`",
        )


def check_state_rows(
    start: Start, facts: TableFacts, branch: str, job: TableAttempt, found: bool
) -> None:
    """Raise `LoadFailed` when the rows that `start.ask_rows_of` asked for are not in the branch."""
    if start.ask_rows_of is not None and start.state is not None and not found:
        raise rolled_back(facts, branch, job, start.state)


def _question(
    facts: TableFacts, branch: str, job: TableAttempt, state: PipelineState | None
) -> str | None:
    if state is None or not job.goes_on or state.state is None:
        return None
    there = belongs(facts, branch, state.snapshot)
    if there is False:
        raise rolled_back(facts, branch, job, state)
    # A pipeline that has never loaded a row has none to lose.
    return state.rows_job if there is None else None


def _check_settings(job: TableAttempt, fingerprint: str | None) -> None:
    if fingerprint is None or fingerprint == job.fingerprint:
        return
    raise InvalidInput(
        f"job `{job.job_id}` has already loaded `{job.target}` with other settings (fingerprint "
        f"{fingerprint[:12]}, now {job.fingerprint[:12]})",
        hint=f"{_NEW_ID}, or restore the settings of that run",
    )


def _foreign_id(job: TableAttempt, pipeline: str) -> InvalidInput:
    return InvalidInput(
        f"job id `{job.job_id}` of pipeline `{job.pipeline}` is already a job of pipeline "
        f"`{pipeline}` in `{job.target}`",
        hint=_NEW_ID,
    )


def _same_source(facts: TableFacts, job: TableAttempt) -> list[str]:
    return [
        name
        for name in pipelines_of(facts)
        if name != job.pipeline
        and (state := state_of(facts, name)) is not None
        and state.source == job.source
    ]


def _shared_source(facts: TableFacts, job: TableAttempt) -> tuple[str, ...]:
    return tuple(
        f"pipeline `{name}` loads `{job.source}` into `{job.target}` too: if it is this pipeline "
        "under its former `name`, this load brings its rows again"
        for name in _same_source(facts, job)
    )


def _occupied(facts: TableFacts, job: TableAttempt, why: str) -> LakeloadError:
    hint = "set `table_handling: APPEND` to load into it, or load into another `name`"
    if former := _same_source(facts, job):
        hint = (
            f"`{former[0]}` loads `{job.source}` too: if it is this pipeline under its former "
            f"name, restore `name: {former[0]}` of the pipeline, for under another name every row "
            f"would be loaded again; otherwise {hint}"
        )
    return LoadFailed(
        f"this is the first run of pipeline `{job.pipeline}` into `{job.target}`, and the table "
        f"exists: {why}",
        hint=hint,
    )
