"""`lakeload status`: which tables are fresh, stale or failing, from the job history."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import typer

from lakeload.commands.options import DestinationFile, Output, PipelineFile, Tables
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput


def status(
    pipeline: PipelineFile,
    destination: DestinationFile = None,
    table: Tables = None,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Show which tables of a pipeline are fresh, stale or failing, for monitors.

    FAILED: the last load failed. STALE: last up to date longer ago than `freshness`.
    NOT_LOADED: no load is known. It reads the job history, and neither source nor tables.
    Exit code 0; 1 when a table is stale or failed, of those that `--table` chooses;
    3 when AWS denies a request.
    """
    from lakeload.documents.load import load_pipeline
    from lakeload.documents.spec import table_specs
    from lakeload.ui.display import Phases
    from lakeload.ui.status import show_text, to_document

    with Phases(console.err, "reading the job history", quiet=console.silent()):
        document = load_pipeline(pipeline, os.environ, destination)
        model = document.model
        if not model.history:
            raise InvalidInput(
                f"pipeline `{model.name}` has no job history: `history` is false",
                hint="remove `history: false`, and run `lakeload sync`",
            )
        # From here on boto3 is imported, which takes longer than everything before it.
        from lakeload.commands.past_jobs import PastJobs
        from lakeload.history.status import freshness_of, matching, statuses

        specs = table_specs(document)
        freshness = freshness_of(specs, model)
        patterns = len(freshness) < len(specs)
        day = PastJobs(document, os.environ).state(model.name)
        now = datetime.now(UTC)
        found = statuses(day, freshness, model.freshness, now, all_tables=patterns)
        tables = matching(found, table or (), {spec.target: spec.source for spec in specs})
    health = day.health if day else None
    code = ExitCode.TABLE_FAILED if any(one.bad for one in tables) else ExitCode.OK
    if output is OutputFormat.JSON:
        console.show_json(to_document(model.name, tables, health, code, now))
    else:
        show_text(tables, console.out, now)
    raise typer.Exit(code)
