"""`lakeload import`: destination.yml and pipeline.yml from another product's configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lakeload.commands.init import DryRun, Force, errors_in, pipeline_name
from lakeload.commands.options import Output
from lakeload.config.page import Page, Unreadable, read_page
from lakeload.config.problems import InvalidDocuments
from lakeload.config.yaml_tree import MAX_BYTES
from lakeload.init.documents import DESTINATION, DOTENV, VARIABLES
from lakeload.init.files import (
    is_tracked,
    next_steps,
    open_to_others,
    plan_files,
    require_room,
    write_files,
)
from lakeload.init.imported import carry_over, read_configuration
from lakeload.init.imported_documents import imported_documents
from lakeload.ui.console import OutputFormat
from lakeload.ui.import_configuration import ImportResult, show_json, show_text
from lakeload.ui.init import Initialized
from lakeload_jobs.contract.errors import InvalidInput

_ELSEWHERE = "--into FOLDER"

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="A configuration of Supaflow, Airbyte or Estuary, in YAML or JSON; `-` is stdin.",
    ),
]
Into = Annotated[
    Path, typer.Option("--into", metavar="FOLDER", help="Where to write (default: here).")
]


def import_configuration(
    files: Files,
    into: Into = Path(),
    force: Force = False,
    dry_run: DryRun = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Write destination.yml and pipeline.yml from another product's configuration.

    Each difference has a comment, and what cannot be carried over is listed. Secrets become
    references to variables, and their values are not written. Uses no network.
    Exit code 0; 2 when the configuration cannot be read or a file exists already.
    """
    done = carry_over([read_configuration(_page(file)) for file in files])
    texts = imported_documents(done, pipeline_name(into))
    if not force:
        require_room(into, texts, elsewhere=_ELSEWHERE)
    needed = tuple(VARIABLES[path] for path in VARIABLES if path in done.secrets)
    planned = plan_files(into, texts, needed, force=force)
    # What `validate` will say of the documents: the configuration lacks it, or is wrong.
    problems = tuple(dict.fromkeys(problem for _, problem in errors_in(texts, into)))
    if not dry_run:
        write_files(planned, elsewhere=_ELSEWHERE)
    dotenv = into / DOTENV
    pipelines = [name for name in texts if name != DESTINATION]
    # The source is filled in by hand, and may be a database.
    steps = next_steps(
        into, secrets=bool(needed), pipelines=pipelines, database="the database if it reads one"
    )
    written = Initialized(
        planned,
        needed,
        steps,
        str(dotenv),
        dry_run=dry_run,
        tracked=bool(needed) and is_tracked(dotenv),
        readable=bool(needed) and open_to_others(dotenv),
    )
    result = ImportResult(done, written, problems)
    (show_json if output is OutputFormat.JSON else show_text)(result)


def _page(file: Path) -> Page:
    if str(file) != "-":
        try:
            return read_page(file)
        except Unreadable as error:
            raise InvalidDocuments((error.problem,)) from error
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidInput(
            f"standard input is larger than {MAX_BYTES >> 20} MiB", hint="check what is piped in"
        )
    try:
        return Page("<stdin>", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput("standard input is not UTF-8 text", hint="convert it") from error
