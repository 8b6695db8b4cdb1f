"""`lakeload reset`: one pipeline's rows leave its tables again, exactly those."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import Output, PipelineFile
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import InvalidInput

if TYPE_CHECKING:
    from lakeload.documents.load import PipelineDocument

TableNames = Annotated[
    list[str],
    typer.Argument(metavar="TABLE", help="Tables by the pipeline's names for them; globs."),
]


def reset(
    pipeline: PipelineFile,
    tables: TableNames,
    yes: Annotated[bool, typer.Option("--yes", help="Do what is shown without it.")] = False,
    with_log: Annotated[
        bool,
        typer.Option(
            "--with-log",
            help="Remove the tables' logs as well. Only when no load of these tables can be "
            "running anywhere.",
        ),
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Remove what this pipeline has loaded into some of its tables.

    Deletes the objects that its records name, each only if its metadata says that
    the record's own attempt wrote it, and the Glue table. Rows of other pipelines
    and everything else stay. Without --yes it only shows what would go.
    An Iceberg table goes as a whole, and only if all of its rows are this pipeline's.
    Exit code 0; 1 when a table could not be reset; 3 when AWS refuses.
    """
    from lakeload.commands.lake_tables import is_iceberg, open_document
    from lakeload.documents.load import load_pipeline

    document = load_pipeline(pipeline, os.environ)
    command = _command(pipeline, tables, with_log=with_log)
    if is_iceberg(document):
        _check_no_log(with_log=with_log)
        _reset_iceberg(document, tables, command, output, yes=yes)
        return
    from lakeload.formats.parquet.reset import ResetJob, exit_code_of
    from lakeload.launch.started_by import author
    from lakeload.ui.reset import show_text, to_document

    lake = open_document(document, tables, "reset", option="")
    from lakeload_jobs.formats.parquet.glue import GlueCatalog

    job = ResetJob(
        lake.objects,
        GlueCatalog(lake.session, lake.destination),
        pipeline=lake.pipeline or "",
        reason=f"lakeload reset by {author()}",
        with_log=with_log,
        parallelism=lake.destination.parquet.upload_parallelism,
        notify=console.note,
    )
    found = job.run(lake.tables) if yes else job.plan(lake.tables)
    code = exit_code_of(found)
    if output is OutputFormat.JSON:
        console.show_json(to_document(found, code, done=yes))
    else:
        show_text(found, command, console.out, console.err, done=yes)
    raise typer.Exit(code)


def _reset_iceberg(
    document: PipelineDocument,
    globs: Sequence[str],
    command: str,
    output: OutputFormat,
    *,
    yes: bool,
) -> None:
    """Drop the tables or say what would go, and exit with the tables' code."""
    from lakeload.commands.lake_tables import open_iceberg
    from lakeload.formats.iceberg.reset import DropJob, exit_code_of
    from lakeload.ui.iceberg_reset import show_text, to_document

    lake = open_iceberg(document, globs, "reset", option="")
    job = DropJob(lake.catalog, lake.destination, lake.session, lake.pipeline, console.note)
    found = job.run(lake.tables) if yes else job.plan(lake.tables)
    code = exit_code_of(found)
    if output is OutputFormat.JSON:
        console.show_json(to_document(found, code, done=yes))
    else:
        show_text(found, command, console.out, console.err, done=yes)
    raise typer.Exit(code)


def _check_no_log(*, with_log: bool) -> None:
    if with_log:
        raise InvalidInput(
            "`--with-log`: what lakeload knows of an Iceberg table is in the table, and goes with "
            "it",
            hint="leave it out",
        )


def _command(pipeline: Path, tables: Sequence[str], *, with_log: bool) -> str:
    """Return what to type to have it done."""
    flags = ["--with-log"] if with_log else []
    return shlex.join(["lakeload", "reset", str(pipeline), *tables, *flags, "--yes"])
