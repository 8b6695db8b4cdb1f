"""`lakeload doctor`: missing requirements of this machine, each with the command that fixes it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import (
    MIN_TIMEOUT,
    DestinationFile,
    Output,
    parse_seconds,
    refuse_without_file,
)
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode

if TYPE_CHECKING:
    from lakeload.machine.doctor.model import Need


def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(help="A pipeline or destination: check only what it needs."),
    ] = None,
    destination: DestinationFile = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not use the network.")] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Time limit of each check.")
    ] = "5s",
    output: Output = OutputFormat.TEXT,
) -> None:
    """Check this machine: Java, Spark, memory, disk, clock, credentials, variables.

    Each warning and problem comes with the command that fixes it.
    Does not start Spark and changes nothing. Exit code 0 without a
    problem, 4 otherwise; warnings do not count.
    """
    from lakeload.launch.run_folder import runs_directory
    from lakeload.machine.cache import cache_directory
    from lakeload.machine.doctor.checks import CHECKS
    from lakeload.machine.doctor.model import CheckContext, Host, run_checks
    from lakeload.ui.checks import show_findings
    from lakeload.ui.display import Phases

    seconds = parse_seconds("--timeout", timeout, least=MIN_TIMEOUT)
    need = _need(file, destination)
    host = Host(
        environment=os.environ,
        platform=sys.platform,
        os_release=_os_release(),
        cache=cache_directory(os.environ),
        runs=runs_directory(os.environ),
    )
    with Phases(console.err, "checking this machine", quiet=console.silent()):
        report = run_checks(CheckContext(host, need, offline=offline, seconds=seconds), CHECKS)
    code = ExitCode.OK if report.passed else ExitCode.MACHINE
    show_findings(report, file, code)
    if code is not ExitCode.OK:
        raise typer.Exit(code)


def _need(file: Path | None, named: Path | None) -> Need:
    """Return what the document asks of the machine. Raises `InvalidDocuments`."""
    from lakeload.commands.read_document import read_document
    from lakeload.config.secret_names import absolute_reference
    from lakeload.documents.load import PipelineDocument
    from lakeload.documents.named_files import NamedFiles
    from lakeload.documents.spec import specs_of
    from lakeload.machine.doctor.model import Need
    from lakeload.machine.jars.pins import SETS
    from lakeload_jobs.contract.traits import format_of

    if file is None:
        refuse_without_file(named)
        return Need(features=SETS)
    document = read_document(file, named)
    destination, tables = specs_of(document)
    need = Need(NamedFiles(file, named), destination, format_of(destination).jar_sets)
    if not isinstance(document, PipelineDocument):
        return need
    from lakeload.commands.spark_job import jar_sets_by_settings
    from lakeload.documents.extras import extras_of

    spark, lineage = document.model.spark, document.model.lineage
    references = [*lineage.references.values()] if lineage else []
    if document.model.notify and document.model.notify.url:
        references.append(document.model.notify.url)
    found = (absolute_reference(one, document.path.parent) for one in references)
    return replace(
        need,
        features=jar_sets_by_settings(document, destination, tables),
        master=spark.master,
        driver_memory=spark.driver_memory,
        conf=spark.conf,
        references=tuple(one for one in found if one is not None),
        extras=tuple(extras_of(document.model)),
    )


def _os_release() -> str:
    try:
        return Path("/etc/os-release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
