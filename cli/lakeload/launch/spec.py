"""The spec of a job, made from configuration files and options."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

from lakeload.config.document import quoted
from lakeload.documents.chosen_tables import choose_tables
from lakeload.documents.load import PipelineDocument
from lakeload.documents.spec import fingerprint
from lakeload.launch.run_folder import RunFolder, dead_attempts
from lakeload.sources.registry import SOURCES, facts_of
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import (
    CONTRACT_VERSION,
    REJECT_LIMIT,
    DestinationSpec,
    FilesInput,
    JobSpec,
    RejectedInput,
    RunOptions,
    TableFormat,
    TableInput,
    TableSpec,
)
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.core.authors import author_of
from lakeload_jobs.core.job_ids import job_id_problem, new_attempt_id, new_job_id
from lakeload_jobs.sources.settings import refuse_limit


def author() -> str:
    """Return `user@host` of this process: for people who ask who loaded something.

    It proves nothing. The identity that wrote is in CloudTrail, whose session names hold the
    attempt's id.
    """
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that no user has.
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


_INSTEAD = (
    "`--reload` appends all files again; to begin again, first remove the table with "
    "`lakeload reset`"
)


@dataclass(frozen=True)
class Attempt:
    """One process working on a job. `synced` is the job's one instant, UTC."""

    job_id: str
    attempt_id: str
    synced: datetime


def new_attempt(job_id: str | None) -> Attempt:
    """Begin an attempt at the given job, or at a new one. Raises `InvalidInput`."""
    if job_id is not None and (problem := job_id_problem(job_id)):
        raise InvalidInput(f"`--job-id {job_id}`: {problem}", hint="leave it out to get a new one")
    return Attempt(job_id or new_job_id(), new_attempt_id(), datetime.now(UTC))


def select_tables(
    tables: Sequence[TableSpec], globs: Sequence[str], option: str = "--table"
) -> tuple[TableSpec, ...]:
    """Return the tables that globs choose by the name in the source. Raises `InvalidInput` for a
    glob without a match."""
    return choose_tables(tables, globs, lambda table: [table.source], option)


def check_options(
    tables: Sequence[TableSpec], table_format: TableFormat, options: RunOptions
) -> None:
    """Raise `InvalidInput` where `--limit` would load some rows of files that are loaded once, or
    `--full-refresh` cannot replace the rows of every table."""
    incremental = any(table.input.incremental for table in tables)
    refuse_limit(incremental=incremental, limit=options.limit)
    _check_round_limit(tables, options)
    if options.since is not None:
        _check_since(tables, options)
    if options.full_refresh:
        _check_full_refresh(tables, table_format, options)


def _check_round_limit(tables: Sequence[TableSpec], options: RunOptions) -> None:
    """What is loaded again is loaded in one job: nothing would say how far it has come."""
    given = {
        "--reload": options.reload,
        "--full-refresh": options.full_refresh,
        "--from": options.since is not None,
    }
    flag = next((name for name, is_given in given.items() if is_given), None)
    limited = [table.source for table in tables if table.round_limit is not None]
    if flag is not None and limited:
        raise InvalidInput(
            f"`{flag}` loads all rows in one job, and {quoted(limited, 10)} "
            f"{'has' if len(limited) == 1 else 'have'} a `round_limit`",
            hint="remove `round_limit` for this load, or empty the table with `lakeload reset` and "
            "load it in rounds",
        )


def _check_since(tables: Sequence[TableSpec], options: RunOptions) -> None:
    """Only a column has values to start from."""
    if options.starts_over:
        other = "--reload" if options.reload else "--full-refresh"
        raise InvalidInput(
            f"`--from` and `{other}` cannot be used together",
            hint=f"remove `--from`: `{other}` loads all rows",
        )
    without = [table.source for table in tables if not facts_of(table.input).starts_from]
    if without:
        verb = "has" if len(without) == 1 else "have"
        raise InvalidInput(
            f"`--from`: {quoted(without, 10)} {verb} no column as `cursor`",
            hint="`--table` chooses the tables of a database whose `cursor` is a column",
        )


def _check_full_refresh(
    tables: Sequence[TableSpec], table_format: TableFormat, options: RunOptions
) -> None:
    """A table that is appended to keeps its rows: what else there is, is offered."""
    if options.reload:
        raise InvalidInput(
            "`--full-refresh` and `--reload` cannot be used together",
            hint="use `--full-refresh` to replace rows, or `--reload` to append them again",
        )
    if FORMATS[table_format].append_only:
        raise InvalidInput(
            "`--full-refresh`: the rows of a table of Parquet files cannot be replaced",
            hint=_INSTEAD,
        )
    appended = [table.source for table in tables if table.mode == "APPEND"]
    if appended:
        verb = "is" if len(appended) == 1 else "are"
        raise InvalidInput(
            f"`--full-refresh`: {quoted(appended, 10)} {verb} append-only, and a full "
            "refresh would remove rows",
            hint=f"{_INSTEAD}; `--table` chooses the tables with another mode",
        )


def retry_tables(
    tables: Sequence[TableSpec], job: str, options: RunOptions
) -> tuple[TableSpec, ...]:
    """Return the tables with the rejected records of `job` in the place of their files.

    Raises `InvalidInput` where other options exclude that, and for tables whose records cannot be
    read again.
    """
    if problem := job_id_problem(job):
        raise InvalidInput(f"`{_RETRY} {job}`: {problem}", hint="`lakeload runs` lists the jobs")
    given = {
        "--reload": options.reload,
        "--full-refresh": options.full_refresh,
        "--limit": options.limit is not None,
        "--from": options.since is not None,
    }
    if other := next((name for name, is_given in given.items() if is_given), None):
        raise InvalidInput(
            f"`{_RETRY}` and `{other}` cannot be used together",
            hint=f"remove `{other}`: rejected records are read, not files",
        )
    return tuple(_retried(table, job) for table in tables)


_RETRY = "--retry-rejected"


def _retried(table: TableSpec, job: str) -> TableSpec:
    if table.mode == "OVERWRITE":
        raise InvalidInput(
            f"`{_RETRY}`: a load of `{table.source}` replaces all of its rows (`mode: OVERWRITE`)",
            hint="run `lakeload sync` without it, which reads the files with today's settings; "
            "`--table` chooses other tables",
        )
    return replace(
        table,
        input=_rejected(table.input, job),
        append_again=None,
        fingerprint=fingerprint({"load": table.fingerprint, "retry_rejected": job}),
    )


def _rejected(read: TableInput, job: str) -> RejectedInput:
    """Return the rejected records of a job in the place of what is read."""
    if not SOURCES[read.type].sets_aside:
        raise InvalidInput(
            f"`{_RETRY}`: a source of type {read.type} has no rejected records",
            hint="leave it out",
        )
    return RejectedInput(job, cast("FilesInput", read))


def run_options(
    document: PipelineDocument,
    *,
    reload: bool = False,
    full_refresh: bool = False,
    limit: int | None = None,
    since: str | None = None,
) -> RunOptions:
    """Return the options of one run: those of its flags, and those of the pipeline."""
    return RunOptions(reload, full_refresh, limit, document.model.table_handling, since)


def build_job_spec(
    document: PipelineDocument,
    destination: DestinationSpec,
    tables: Sequence[TableSpec],
    attempt: Attempt,
    folder: RunFolder | None,
    options: RunOptions | None = None,
) -> JobSpec:
    """Return the spec of the job: `tables` of the pipeline into `destination`, that of its
    document, reporting into `folder`, None where no process is started. Without `options` they
    are those of the document alone."""
    pipeline = document.model
    return JobSpec(
        contract=CONTRACT_VERSION,
        pipeline=pipeline.name,
        job_id=attempt.job_id,
        attempt_id=attempt.attempt_id,
        synced=attempt.synced,
        destination=destination,
        tables=tuple(tables),
        events_path=str(folder.events) if folder else "",
        result_path=str(folder.result) if folder else "",
        concurrency=pipeline.concurrency,
        options=options or run_options(document),
        nested=document.nested,
        reader=pipeline.spark.reader,
        on_bad_value=pipeline.on_bad_value,
        max_rejected=pipeline.max_rejected or REJECT_LIMIT,
        schema_changes=document.schema_changes,
        on_type_conflict=pipeline.on_type_conflict,
        tracking_columns=pipeline.tracking_columns,
        author=author_of(author(), os.getpid()),
        dead_attempts=(
            dead_attempts(folder.path.parent)
            if folder and FORMATS[destination.table_format].tracks_dead_attempts
            else ()
        ),
    )
