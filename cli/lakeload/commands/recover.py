"""`lakeload recover`: finish or undo what killed runs left, and decide what only a person can."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.lake_tables import EitherFile
from lakeload.commands.options import Output, Tables
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput, worst_exit
from lakeload_jobs.core.job_ids import job_id_problem

if TYPE_CHECKING:
    from datetime import timedelta

    from lakeload.commands.lake_tables import LakeTables
    from lakeload.documents.load import DestinationDocument, PipelineDocument
    from lakeload.formats.parquet.recover import Tools
    from lakeload.formats.parquet.void_accept import Decision


def recover(
    file: EitherFile,
    table: Tables = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; say what would be done.")
    ] = False,
    abort_older_than: Annotated[
        str,
        typer.Option(
            "--abort-older-than",
            metavar="AGE",
            help="Remove uploads, or branches, older than this that no job names: 0, 90m, 24h, "
            "2d. Longer than your longest load.",
        ),
    ] = "24h",
    void: Annotated[
        str | None,
        typer.Option("--void", metavar="JOB", help="Remove what there is of a damaged job."),
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option("--accept", metavar="JOB", help="Keep what there is of a damaged job."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do what --void shows without it.")] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Finish what killed runs left in the tables of a pipeline or a destination.

    Publishes committed jobs, cleans up void ones, repairs the catalog, removes
    uploads of dead runs. `sync` does the same for its own tables before it loads.
    Of Iceberg tables it drops the branches of dead runs: nothing else is left.
    Exit code 0 when all tables are in step, 1 when a person has to decide, 3 when
    AWS refuses, 5 when the data is in and the catalog still lags behind.
    """
    from lakeload.commands.durations import parse_age
    from lakeload.commands.lake_tables import is_iceberg, open_document, read_document

    age = parse_age("--abort-older-than", abort_older_than)
    _check_flags(void, accept, yes=yes)
    document = read_document(file)
    if is_iceberg(document):
        _check_no_decision(void, accept)
        _recover_iceberg(document, table or (), age, output, dry_run=dry_run)
        return
    from lakeload.formats.parquet.recover import Tools
    from lakeload.formats.parquet.recover import recover as recover_tables

    lake = open_document(document, table or (), "recover")
    from lakeload_jobs.formats.parquet.glue import GlueCatalog

    tools = Tools(
        lake.objects,
        GlueCatalog(lake.session, lake.destination),
        lake.destination.parquet.upload_parallelism,
        console.note,
    )
    if job_id := void or accept:
        answer = ["--void", job_id, "--yes"] if void else ["--accept", job_id]
        command = _command(file, table or (), answer)
        decision = _Decision("void" if void else "accept", job_id, command, yes)
        _decide(lake, tools, decision, output, dry_run=dry_run)
        return
    found = recover_tables(tools, lake.tables, abort_older_than=age, dry_run=dry_run)
    from lakeload.ui.recover import show_text, to_document

    code = worst_exit(table.exit_code for table in found)
    if output is OutputFormat.JSON:
        console.show_json(to_document(found, code, dry_run=dry_run))
    else:
        show_text(found, str(file), console.out, console.err, dry_run=dry_run)
    raise typer.Exit(code)


def _recover_iceberg(
    document: PipelineDocument | DestinationDocument,
    globs: Sequence[str],
    age: timedelta,
    output: OutputFormat,
    *,
    dry_run: bool,
) -> None:
    """Drop the branches of dead attempts, show them, exit with the tables' code."""
    from lakeload.commands.lake_tables import open_iceberg
    from lakeload.formats.iceberg.recover import exit_code_of, recover_branches
    from lakeload.ui.iceberg_recover import show_text, to_document

    lake = open_iceberg(document, globs, "recover")
    found = recover_branches(lake.catalog, lake.tables, abort_older_than=age, dry_run=dry_run)
    code = exit_code_of(found)
    if output is OutputFormat.JSON:
        console.show_json(to_document(found, code, dry_run=dry_run))
    else:
        show_text(found, console.out, console.err, dry_run=dry_run)
    raise typer.Exit(code)


@dataclass(frozen=True)
class _Decision:
    """What a person wants done with one job. `command` is what to type to have it done."""

    kind: Decision
    job_id: str
    command: str
    sure: bool


def _decide(
    lake: LakeTables, tools: Tools, decision: _Decision, output: OutputFormat, *, dry_run: bool
) -> None:
    """Show what the decision means; carry it out when it is certain; exit with its code."""
    from lakeload.formats.parquet.recover import recover as recover_tables
    from lakeload.formats.parquet.void_accept import decide, exit_code_of, find_cases
    from lakeload.ui.decide import show_text, to_document
    from lakeload_jobs.formats.parquet.log.stale_uploads import STALE_AFTER

    kind, job_id = decision.kind, decision.job_id
    seen = recover_tables(tools, lake.tables, abort_older_than=STALE_AFTER, dry_run=True)
    cases = find_cases(tools, lake.tables, seen, kind, job_id, lake.pipeline)
    act = not dry_run and (kind == "accept" or decision.sure)
    if act:
        cases = decide(tools, cases, kind)
    code = exit_code_of(cases) if act or dry_run else ExitCode.INVALID
    if output is OutputFormat.JSON:
        console.show_json(to_document(cases, kind, code, done=act))
    else:
        show_text(cases, kind, decision.command, console.out, console.err, done=act)
    raise typer.Exit(code)


def _check_no_decision(void: str | None, accept: str | None) -> None:
    if void is not None or accept is not None:
        raise InvalidInput(
            f"`{'--void' if void is not None else '--accept'}`: a job of an Iceberg table is in as "
            "a whole or not at all, so there is nothing to decide",
            hint="leave it out; to take a snapshot back, roll the table back with Spark, "
            "`CALL lake.system.rollback_to_snapshot`",
        )


def _check_flags(void: str | None, accept: str | None, *, yes: bool) -> None:
    if void is not None and accept is not None:
        raise InvalidInput(
            "`--void` and `--accept` are two answers to one question",
            hint="`--void` removes the job's rows, `--accept` keeps those that are there",
        )
    if yes and void is None:
        raise InvalidInput("`--yes` belongs to `--void`", hint="leave it out")
    for option, job_id in (("--void", void), ("--accept", accept)):
        if job_id is not None and (problem := job_id_problem(job_id)):
            raise InvalidInput(f"`{option} {job_id}`: {problem}")


def _command(file: Path, globs: Sequence[str], answer: Sequence[str]) -> str:
    flags = [word for glob in globs for word in ("--table", glob)]
    return shlex.join(["lakeload", "recover", str(file), *flags, *answer])
