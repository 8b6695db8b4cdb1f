"""What `lakeload demo` does: an AWS, documents, samples, the commands, the lake, the answers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

from lakeload.demo.aws import EmbeddedAws, SeededLake
from lakeload.demo.documents import (
    demo_environment,
    destination_document,
    destination_spec,
    pipeline_document,
)
from lakeload.demo.lake import Answer, fetch_objects, query
from lakeload.demo.questions import BEST_SELLERS, CITIES, ROWS_OF_EACH_JOB
from lakeload.demo.samples import ORDER_HEADER, Sample, write_samples
from lakeload.demo.steps import environment, run_command
from lakeload.launch.stop import StopRequests
from lakeload.machine.java import find_java
from lakeload.ui import demo as screen
from lakeload.ui.console import err, out, show_json
from lakeload_jobs.contract.errors import Interrupted, LoadFailed, MachineLacks
from lakeload_jobs.lake.aws import AwsSession
from lakeload_jobs.lake.objects import Objects
from lakeload_jobs.rules.names import unique_names

BUCKET, PREFIX, SCHEMA = "demo-lake", "demo", "shop"
MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)


def give_tour(*, keep: bool, as_json: bool) -> None:
    """Run the demo and clean up, whatever happens.

    Raises `MachineLacks` before it begins, `LoadFailed` when a step does not end well, and
    `Interrupted` after Ctrl-C or SIGTERM.
    """
    _check_machine()
    started = time.monotonic()
    console = err if as_json else out
    with StopRequests() as stop:
        try:
            with _folder(keep, console) as folder:
                document = _tour(folder, console, as_json=as_json)
        except Interrupted as error:
            stop.hold()
            raise Interrupted("the demo was stopped and has cleaned up after itself") from error
    seconds = time.monotonic() - started
    if as_json:
        show_json({**document, "seconds": round(seconds, 1)})
    screen.show_end(console, seconds, kept=keep)


@dataclass
class Tour:
    """One demo on its way: where it lives, where it shows, and what it has seen."""

    folder: Path
    console: Console
    lake: SeededLake
    objects: Objects
    as_json: bool
    commands: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    loaded: list[tuple[str, Sample]] = field(default_factory=list)
    """Each job with each sample that it loaded."""

    def run(self, *arguments: str) -> None:
        """Show and run one command. Raises `LoadFailed` when it does not end well."""
        screen.show_command(self.console, arguments)
        ended = run_command(arguments, self.folder, sys.stderr if self.as_json else None)
        command = " ".join(("lakeload", *arguments))
        seconds = round(ended.seconds, 1)
        self.commands.append({"command": command, "exit_code": ended.exit_code, "seconds": seconds})
        if ended.exit_code:
            raise LoadFailed(f"in the demo, `{command}` ended with exit code {ended.exit_code}")

    def load(self, job: str, samples: Sequence[Sample]) -> None:
        """Sync once, then show what that added to the lake."""
        self.run("sync", "pipeline.yml", "--job-id", job)
        self.loaded += [(job, sample) for sample in samples]
        entries = fetch_objects(self.objects, PREFIX, self.folder / "lake")
        older = self.keys or {entry.key for entry in entries}
        leaves = [screen.Leaf(e.key, e.size, new=e.key not in older) for e in entries]
        self.keys = {entry.key for entry in entries}
        screen.show_heading(self.console, "What is in the lake now")
        screen.show_tree(self.console, f"s3://{BUCKET}/", leaves)

    def ask(self, sql: str) -> Answer:
        """Query the lake's Parquet files and show the answer."""
        answer = query(self.folder / "lake" / PREFIX / SCHEMA, sql)
        screen.show_query(self.console, sql, answer)
        return answer


def _tour(folder: Path, console: Console, *, as_json: bool) -> dict[str, Any]:
    with EmbeddedAws(folder / "aws") as aws:
        lake = aws.seed(bucket=BUCKET, prefix=PREFIX)
        destination = destination_spec(lake, aws.endpoint)
        with environment(demo_environment(os.environ, lake, folder)):
            objects = Objects(AwsSession(destination, label="demo"), destination)
            tour = Tour(folder, console, lake, objects, as_json)
            _prepare(tour, aws.endpoint)
            return _load_twice(tour)


def _prepare(tour: Tour, endpoint: str) -> None:
    lake = tour.lake
    facts = [
        ("endpoint", endpoint),
        ("bucket", lake.bucket),
        ("role", lake.role_arn),
        ("trust", f"only the user {lake.user}, and only with the ExternalId"),
        ("policy", f"list, read and write below {lake.prefix}/; delete probes, never data"),
    ]
    documents = {
        "destination.yml": destination_document(lake, endpoint),
        "pipeline.yml": pipeline_document(),
    }
    screen.show_heading(tour.console, "An AWS of its own, which enforces IAM")
    screen.show_facts(tour.console, facts)
    screen.show_heading(tour.console, "Two documents")
    for name, text in documents.items():
        (tour.folder / name).write_text(text, encoding="utf-8")
        screen.show_document(tour.console, name, text)


def _load_twice(tour: Tour) -> dict[str, Any]:
    samples = write_samples(tour.folder / "export", MONDAY)
    screen.show_heading(tour.console, "Monday's export of a small shop, as messy as exports are")
    files = [(sample.path.name, f"{sample.rows:,} rows") for sample in samples]
    screen.show_facts(tour.console, [*files, ("columns", _renamed_columns())])
    tour.run("validate", "destination.yml", "pipeline.yml")
    tour.run("test-connection", "destination.yml")
    tour.load("monday", samples)
    screen.show_heading(tour.console, "Any reader understands it; this is DuckDB")
    answers = [tour.ask(BEST_SELLERS), tour.ask(CITIES)]
    screen.show_heading(tour.console, "Tuesday's export takes the place of Monday's")
    tour.load("tuesday", write_samples(tour.folder / "export", TUESDAY))
    screen.show_heading(tour.console, "Appended: every row names the job that loaded it")
    answers.append(tour.ask(ROWS_OF_EACH_JOB))
    _compare(answers[-1], tour.loaded)
    return {
        "commands": tour.commands,
        "objects": sorted(tour.keys),
        "answers": [asdict(answer) for answer in answers],
    }


def _compare(answer: Answer, loaded: Sequence[tuple[str, Sample]]) -> None:
    """Raise `LoadFailed` unless the lake holds exactly the exported rows, numbered without gaps."""
    found = set(answer.rows)
    wanted = {(job, sample.table, sample.rows, sample.rows) for job, sample in loaded}
    if found != wanted:
        raise LoadFailed(
            f"in the demo, the lake holds {sorted(found, key=str)} and not {sorted(wanted)}"
        )


def _renamed_columns() -> str:
    names = zip(ORDER_HEADER, unique_names(ORDER_HEADER), strict=True)
    return ", ".join(f"{source} → {target}" for source, target in names if source != target)


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
