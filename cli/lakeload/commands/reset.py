"""`lakeload reset`: one pipeline's rows leave its tables again, exactly those."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeload.commands.options import DestinationFile, Output, PipelineFile
from lakeload.documents.named_files import NamedFiles
from lakeload.ui import console
from lakeload.ui.console import OutputFormat

TableNames = Annotated[
    list[str],
    typer.Argument(metavar="TABLE", help="Tables to reset, by their names in the pipeline; globs."),
]


def reset(
    pipeline: PipelineFile,
    tables: TableNames,
    destination: DestinationFile = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Apply. Without it, only show what would be removed.")
    ] = False,
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
    """Remove the rows that this pipeline has loaded into some of its tables.

    Deletes the objects in its records, each only if its metadata shows that
    the record's own attempt wrote it, and the Glue table. Rows of other pipelines
    and everything else stay. Without --yes it only shows what would be removed.
    An Iceberg table is removed as a whole, and only if all of its rows are this pipeline's.
    Exit code 0; 1 when a table could not be reset; 3 when AWS denies a request.
    """
    from lakeload.documents.load import load_pipeline
    from lakeload.ui.display import Phases
    from lakeload.ui.progress import PHASES
    from lakeload.ui.reset import show_text, to_document

    files = NamedFiles(pipeline, destination)
    with Phases(console.err, PHASES["documents"], quiet=console.silent()) as phases:
        # From here on boto3 is imported, which takes longer than everything before it.
        from lakeload.commands.lake_tables import request_of

        # Only a pipeline says whose rows they are.
        commands, request = request_of(
            "reset", files, tables, option="", phases=phases, read=load_pipeline
        )
        report = commands.reset(request, with_log=with_log, act=yes)
    if output is OutputFormat.JSON:
        console.show_json(to_document(report))
    else:
        flags = ["--with-log"] if with_log else []
        command = files.command("reset", *tables, *flags, "--yes")
        show_text(report, command, console.out, console.err)
    raise typer.Exit(report.exit_code)
