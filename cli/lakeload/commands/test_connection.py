"""`lakeload test-connection`: checks of every permission that a load needs."""

# ruff: noqa: PT028 - a command, not a test

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import MIN_TIMEOUT, DestinationFile, Output, parse_seconds, stoppable
from lakeload.documents.load import PipelineDocument, load_either
from lakeload.documents.named_files import NamedFiles
from lakeload.documents.spec import specs_of
from lakeload.sources.kept_connections import connections_kept
from lakeload.sources.registry import facts_of
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput, Refused
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.sources.databases.engines.registry import ENGINES

if TYPE_CHECKING:
    from lakeload.documents.load import DestinationDocument
    from lakeload.machine.java_drivers import JavaDrivers
    from lakeload.probes.runner import Probe


def _drivers(tables: Sequence[TableSpec]) -> JavaDrivers | None:
    """Return the JDBC drivers of the source, None where it is read without."""
    found = (facts_of(table.input).database for table in tables[:1])
    read = next(found, None)
    if read is None or not ENGINES[read.database].facts.by_driver:
        return None
    # With py4j, which other sources do without.
    from lakeload.machine.java_drivers import JavaDrivers

    return JavaDrivers(read, os.environ)


def _webhook(
    document: PipelineDocument | DestinationDocument, files: NamedFiles, *, sends: bool
) -> list[Probe]:
    """Return the checks of the webhook of a pipeline. Raises `InvalidInput` where a message is to
    be sent and there is none."""
    model = document.model if isinstance(document, PipelineDocument) else None
    if model is None or model.notify is None:
        if not sends:
            return []
        raise InvalidInput(
            f"`--notify`: `{document.path.name}` has no webhook",
            hint="add `notify: {url: {env: NAME}}` to the pipeline",
        )
    from lakeload.probes.webhook import ProbeWebhook
    from lakeload.reporting.webhook import Webhook

    command = files.command("test-connection", "--notify")
    webhook = Webhook(model.notify, document.path.parent, model.name, command)
    return ProbeWebhook(webhook, sends=sends).probes()


@connections_kept()
def test_connection(
    file: Annotated[
        Path,
        typer.Argument(help="A destination, or a pipeline for its destination and its database."),
    ],
    destination: DestinationFile = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Skip the checks that write.")
    ] = False,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            "--skip", metavar="PROBE", help="Skip this check and treat it as passed; repeatable."
        ),
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Time limit of all checks.")
    ] = "30s",
    wait: Annotated[
        str,
        typer.Option(
            "--wait",
            metavar="TIME",
            help="Retry a denied AssumeRole for this long: a new role takes IAM up to a minute.",
        ),
    ] = "0s",
    notify: Annotated[
        bool, typer.Option("--notify", help="Send a test message to the webhook of `notify`.")
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Test identity, role, bucket, permissions and the database of a pipeline; show fixes.

    Writes and removes its own objects below `_lakeload/probe/` of the prefix,
    and its own Glue database if the destination uses Glue. The webhook of a
    pipeline gets a message only with `--notify`.
    Exit code 0 when every required check passed, 3 otherwise.
    """
    from lakeload.commands.source_tables import with_found_tables
    from lakeload.probes.connection import ConnectionOptions, ConnectionTest
    from lakeload.ui.checks import ChecksView, show_interrupted, show_verdict
    from lakeload.ui.display import Phases
    from lakeload.ui.progress import PHASES

    with Phases(console.err, PHASES["documents"], quiet=console.silent()) as phases:
        document = load_either(file, os.environ, destination)
        # Where the database cannot be reached, the check of the login says why.
        with suppress(Refused):
            document = with_found_tables(document, "test-connection", phases=phases)
    spec, tables = specs_of(document)
    options = ConnectionOptions(
        timeout=parse_seconds("--timeout", timeout, least=MIN_TIMEOUT),
        wait=parse_seconds("--wait", wait),
        read_only=read_only,
        skip=frozenset(skip or ()),
    )
    drivers = _drivers(tables)
    # At a terminal the list of checks moves itself.
    quiet = console.silent() or console.out.is_terminal
    more = _webhook(document, NamedFiles(file, destination), sends=notify)
    test = ConnectionTest(spec, options, tables=tables, drivers=drivers, more=more)
    try:
        with (
            closing(drivers) if drivers else nullcontext(),
            stoppable(),
            Phases(console.err, "checking the connection", quiet=quiet),
            ChecksView(test.probes) as view,
            closing(test.run()) as results,
        ):
            for result in results:
                view.add(result)
    except KeyboardInterrupt:
        show_interrupted(test.verdict())
        raise
    verdict = test.verdict()
    show_verdict(verdict, spec, NamedFiles(file, destination))
    if not verdict.passed:
        raise typer.Exit(ExitCode.REFUSED)
