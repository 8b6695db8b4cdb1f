"""`lakeload recover`: finish or clean up abandoned attempts, and resolve damaged jobs by hand."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from lakeload.commands.options import DestinationFile, EitherFile, Output, Tables
from lakeload.documents.named_files import NamedFiles
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput
from lakeload_jobs.core.job_ids import job_id_problem


def recover(
    file: EitherFile,
    destination: DestinationFile = None,
    table: Tables = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; show what would be done.")
    ] = False,
    abort_older_than: Annotated[
        str,
        typer.Option(
            "--abort-older-than",
            metavar="AGE",
            help="Remove uploads, branches and files older than this that no job names: 0, 90m, "
            "24h, 2d. Longer than your longest load.",
        ),
    ] = "24h",
    void: Annotated[
        str | None,
        typer.Option(
            "--void", metavar="JOB", help="Discard a damaged job: remove its remaining rows."
        ),
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option("--accept", metavar="JOB", help="Keep the remaining rows of a damaged job."),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Apply --void. Without it, only show what would be removed."),
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Finish abandoned attempts in the tables of a pipeline or a destination.

    Publishes committed jobs, cleans up discarded ones, updates the catalog, removes
    uploads of abandoned attempts. `sync` does the same for its own tables before it loads.
    For Iceberg tables it drops the branches of abandoned attempts, and removes the files
    that they have completed and not committed, if the role may delete.
    Exit code 0 when all tables are up to date, 1 when an operator has to decide, 3 when
    AWS denies a request, 5 when the data is committed but the catalog is out of date.
    """
    from lakeload.commands.options import parse_age
    from lakeload.launch.run_folder import runs_directory
    from lakeload.launch.scratch import remove_abandoned_scratch
    from lakeload.ui import recover as view
    from lakeload.ui.display import Phases
    from lakeload.ui.progress import PHASES

    age = parse_age("--abort-older-than", abort_older_than)
    _check_flags(void, accept, yes=yes)
    if not dry_run:
        remove_abandoned_scratch(runs_directory(os.environ))
    files = NamedFiles(file, destination)
    with Phases(console.err, PHASES["documents"], quiet=console.silent()) as phases:
        # From here on boto3 is imported, which takes longer than everything before it.
        from lakeload.commands.lake_tables import request_of

        commands, request = request_of("recover", files, table or (), phases=phases)
        job_id = void or accept
        act = not dry_run and (yes or void is None)
        if job_id:
            resolved = commands.resolve(request, "void" if void else "accept", job_id, act=act)
        else:
            report = commands.recover(request, abort_older_than=age, dry_run=dry_run)
    if job_id:
        code = resolved.exit_code if act or dry_run else ExitCode.INVALID
        if output is OutputFormat.JSON:
            console.show_json(view.resolution_document(resolved, code))
        else:
            answer = ["--void", job_id, "--yes"] if void else ["--accept", job_id]
            globs = [word for glob in table or () for word in ("--table", glob)]
            command = files.command("recover", *globs, *answer)
            view.show_resolution(resolved, command, console.out, console.err)
        raise typer.Exit(code)
    if output is OutputFormat.JSON:
        console.show_json(view.to_document(report))
    else:
        view.show_text(report, files, console.out, console.err)
    raise typer.Exit(report.exit_code)


def _check_flags(void: str | None, accept: str | None, *, yes: bool) -> None:
    if void is not None and accept is not None:
        raise InvalidInput(
            "`--void` and `--accept` cannot be used together",
            hint="`--void` removes the job's rows, `--accept` keeps those that are there",
        )
    if yes and void is None:
        raise InvalidInput("`--yes` belongs to `--void`", hint="leave it out")
    for option, job_id in (("--void", void), ("--accept", accept)):
        if job_id is not None and (problem := job_id_problem(job_id)):
            raise InvalidInput(
                f"`{option} {job_id}`: {problem}", hint="`lakeload runs` lists the ids of jobs"
            )
