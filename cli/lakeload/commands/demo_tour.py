"""What `lakeload demo` does around its tours: a machine, an AWS, a folder, and their end."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

from lakeload.commands import demo_iceberg, demo_parquet
from lakeload.commands.demo_run import BUCKET, PREFIX, Demo
from lakeload.demo.aws import EmbeddedAws, SeededLake, embedded_policy
from lakeload.demo.documents import demo_environment, iceberg_documents, parquet_documents
from lakeload.demo.steps import environment
from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from lakeload.launch.stop import StopRequests
from lakeload.machine.local.java import find_java
from lakeload.ui import demo as screen
from lakeload.ui.console import err, out, show_json
from lakeload_jobs.contract.errors import Interrupted, LoadFailed, MachineLacks

DAYS = date(2026, 3, 2), date(2026, 3, 3)
"""A Monday and a Tuesday."""


@dataclass(frozen=True)
class Tour:
    """The demo of one table format."""

    documents: Callable[[SeededLake, str], dict[str, str]]
    show: Callable[[Demo, str, tuple[date, date]], dict[str, Any]]
    own_policy: bool = False
    """The role gets what `lakeload policy` writes, in place of what it was seeded with."""


TOURS: Mapping[str, Tour] = {
    "PARQUET": Tour(parquet_documents, demo_parquet.tour),
    "ICEBERG": Tour(iceberg_documents, demo_iceberg.tour, own_policy=True),
}
"""By the name of the format."""


def give_tour(tour: Tour, *, keep: bool, as_json: bool) -> None:
    """Run the demo of one table format and clean up, whatever happens.

    Raises `MachineLacks` before it begins, `LoadFailed` when a step does not end well, and
    `Interrupted` after Ctrl-C or SIGTERM.
    """
    _check_machine()
    started = time.monotonic()
    console = err if as_json else out
    with StopRequests() as stop:
        try:
            with _folder(keep, console) as folder:
                document = _show(tour, folder, console, as_json=as_json)
        except Interrupted as error:
            stop.hold()
            raise Interrupted("the demo was stopped and has cleaned up after itself") from error
    seconds = time.monotonic() - started
    if as_json:
        show_json({**document, "seconds": round(seconds, 1)})
    screen.show_end(console, seconds, kept=keep)


def _show(tour: Tour, folder: Path, console: Console, *, as_json: bool) -> dict[str, Any]:
    with EmbeddedAws(folder / "aws") as aws:
        lake = aws.seed(bucket=BUCKET, prefix=PREFIX)
        documents = tour.documents(lake, aws.endpoint)
        for name, text in documents.items():
            (folder / name).write_text(text, encoding="utf-8")
        destination = destination_spec(load_destination(folder / "destination.yml", os.environ))
        if tour.own_policy:
            aws.admin().put_role_policy(lake.role, embedded_policy(destination))
        with environment(demo_environment(os.environ, lake, folder)):
            demo = Demo(folder, console, lake, documents, destination, as_json)
            return tour.show(demo, aws.endpoint, DAYS)


def _check_machine() -> None:
    """Raise `MachineLacks` before anything is shown rather than halfway."""
    if importlib.util.find_spec("duckdb") is None:
        raise MachineLacks(
            "the demo's query engine is not installed",
            hint="install it with `pip install 'lakeload[demo]'`",
        )
    find_java(os.environ)


@contextmanager
def _folder(keep: bool, console: Console) -> Iterator[Path]:
    """Yield a new folder; removed at the end unless it was asked for or a step failed."""
    folder = Path(tempfile.mkdtemp(prefix="lakeload-demo-"))
    try:
        yield folder
    except LoadFailed:
        keep = True
        raise
    finally:
        if keep:
            screen.show_kept(console, folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
