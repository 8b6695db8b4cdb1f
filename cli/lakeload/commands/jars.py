"""`lakeload jars`: the jars that Spark does not bring, and the AppCDS archive."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.appcds_archive import build_archive
from lakeload.commands.options import DestinationFile, Output, refuse_without_file, stoppable
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from lakeload.machine.appcds import Archive
    from lakeload.machine.cache_state import CacheState


class Action(StrEnum):
    """What to do with the cache."""

    FETCH = "fetch"
    LIST = "list"
    VERIFY = "verify"


class JarSet(StrEnum):
    """What jars are for."""

    S3 = "s3"
    AVRO = "avro"
    ICEBERG = "iceberg"
    POSTGRESQL = "postgresql"
    SQLSERVER = "sqlserver"
    ALL = "all"


def jars(
    action: Annotated[
        Action,
        typer.Argument(
            help="`fetch` what is missing and make the AppCDS archive, `list` what there is, "
            "or `verify` its checksums."
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A pipeline or a destination: only the jars that its settings need.",
            show_default=False,
        ),
    ] = None,
    destination: DestinationFile = None,
    sets: Annotated[
        list[JarSet] | None,
        typer.Option("--for", help="Only the jars for this; repeatable. Default: all."),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(
            "--repository",
            metavar="URL",
            help="The Maven repository to fetch from; a login in it by reference: "
            "'https://${USER}:${PASSWORD}@…'.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="DIR", help="Copy from this folder instead, without a network."
        ),
    ] = None,
    archive: Annotated[
        bool,
        typer.Option(
            "--archive/--no-archive",
            help="Build an AppCDS archive, with which the JVM starts faster.",
        ),
    ] = True,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Fetch, list or verify the jars that Spark does not include, with pinned checksums.

    `sync` fetches missing jars itself. After `jars fetch` it needs no
    network, and an AppCDS archive makes Spark start faster. Exit code 4
    when a jar cannot be fetched, or when `verify` finds a broken jar or, of the
    selected ones, a missing jar.
    """
    from lakeload.machine.cache import cache_directory
    from lakeload.machine.cache_state import cache_state
    from lakeload.ui.jars import show_fetched, show_list, show_verified, to_document

    fetching = action is Action.FETCH
    if not fetching and (repository or folder):
        raise InvalidInput(
            f"`--repository` and `--from` go with `jars fetch`, not `{action}`",
            hint="leave them out",
        )
    if repository and folder:
        raise InvalidInput(
            "`--repository` and `--from` cannot be used together", hint="remove one of them"
        )
    cache = cache_directory(os.environ)
    wanted, with_archive, conf = _wanted(file, destination, sets or [])
    made: Archive | None = None
    already = False
    if fetching:
        with stoppable():
            _fetch(cache, wanted, repository, folder, conf)
            if archive:
                made, already = build_archive(cache, with_archive)
    state = cache_state(cache, os.environ, wanted)
    code = _verdict(state, asked=bool(file or sets)) if action is Action.VERIFY else ExitCode.OK
    if output is OutputFormat.JSON:
        console.show_json(to_document(state, int(code)))
    elif action is Action.LIST:
        show_list(state, console.out)
    elif action is Action.VERIFY:
        show_verified(state, console.out, quiet=console.quiet())
    elif not console.quiet():
        show_fetched(state, made, already, console.out)
    if code:
        console.note("`lakeload jars fetch` fetches broken and missing jars")
        raise typer.Exit(code)


def _wanted(
    file: Path | None, destination: Path | None, sets: list[JarSet]
) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
    """Return the sets to have, those on the class path of the loads that an archive is for, and
    the pipeline's `spark.jars.repositories`. Raises `InvalidDocuments`."""
    from lakeload.commands.read_document import read_document
    from lakeload.documents.load import PipelineDocument
    from lakeload.documents.spec import specs_of
    from lakeload.machine.jars.pins import SETS
    from lakeload.machine.jars.repository import REPOSITORY_PROPERTY
    from lakeload_jobs.contract.traits import FORMATS

    everything = JarSet.ALL in sets or (file is None and not sets)
    named = {str(name) for name in sets} & set(SETS)
    on_class_path = set(named)
    conf = None
    if file is None:
        refuse_without_file(destination)
    else:
        document = read_document(file, destination)
        if isinstance(document, PipelineDocument):
            from lakeload.commands.spark_job import jar_sets_by_settings

            on_class_path |= {*jar_sets_by_settings(document, *specs_of(document))}
            conf = document.model.spark.conf.get(REPOSITORY_PROPERTY)
        else:
            on_class_path |= set(FORMATS[document.model.table_format].jar_sets)
        named |= on_class_path
    wanted = SETS if everything else tuple(name for name in SETS if name in named)
    return wanted, tuple(sorted(on_class_path)), conf


def _fetch(
    cache: Path,
    wanted: tuple[str, ...],
    repository: str | None,
    folder: Path | None,
    conf: str | None,
) -> None:
    from lakeload.machine.cache import jobs_package
    from lakeload.machine.jars.fetch import Origin, fetch
    from lakeload.machine.jars.pins import JARS, pinned
    from lakeload.ui.jars import FetchProgress

    if folder is not None and not folder.is_dir():
        raise InvalidInput(
            f"`--from {folder}` is not a folder", hint="name the folder that holds the jars"
        )
    origin = Origin(folder, repository, conf)
    with FetchProgress(console.err, quiet=console.quiet()) as progress:
        fetch(pinned(*wanted), cache / JARS, os.environ, origin=origin, listener=progress)
    # The last that a load writes into the cache: from here on it may be read-only.
    jobs_package(cache)


def _verdict(state: CacheState, *, asked: bool) -> ExitCode:
    bad = {"broken", "missing"} if asked else {"broken"}
    found = {item.state for item in state.jars} | {item.state for item in state.archives}
    return ExitCode.MACHINE if found & bad else ExitCode.OK
