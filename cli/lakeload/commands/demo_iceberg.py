"""The demo of Iceberg tables: a second day that changes the first, its columns, and time travel."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Any

from lakeload.commands.demo_run import SCHEMA, Demo
from lakeload.demo.documents import DATABASE_PREFIX
from lakeload.demo.lake import (
    NOW_AND_MONDAY,
    ORDERS_OF_EACH_JOB,
    PAYMENTS_OF_EACH_JOB,
    Answer,
    DemoTables,
    SnapshotLine,
)
from lakeload.demo.samples import (
    CANCELLED,
    CHANGED,
    NEW,
    ORDERS,
    PAYMENTS,
    write_first_day,
    write_second_day,
)
from lakeload.ui import demo as screen
from lakeload_jobs.contract.errors import LoadFailed

DATABASE = f"{DATABASE_PREFIX}_{SCHEMA}"
_TABLES = ("orders", "payments")


def tour(demo: Demo, endpoint: str, days: tuple[date, date]) -> dict[str, Any]:
    """Show everything and return it as a document. Raises `LoadFailed`."""
    lake, (monday, tuesday) = demo.lake, days
    facts = [
        ("endpoint", endpoint),
        ("bucket", lake.bucket),
        ("catalog", f"Glue, databases that begin with {DATABASE_PREFIX}"),
        ("role", lake.role_arn),
        ("trust", f"only the user {lake.user}, and only with the ExternalId"),
        ("policy", "what `lakeload policy destination.yml` writes"),
    ]
    demo.introduce(facts)
    screen.show_heading(demo.console, "Monday's export of a small shop")
    samples = write_first_day(demo.folder / "export", monday)
    screen.show_facts(demo.console, [(one.path.name, f"{one.rows:,} rows") for one in samples])
    demo.run("validate", "destination.yml", "pipeline.yml")
    # The emulator does not know glue:GetCatalog, which no load calls.
    demo.run("test-connection", "destination.yml", "--skip", "glue-catalog")
    demo.load("monday", gathered=True)
    screen.show_heading(demo.console, "Tuesday's export: what has changed, and how it looks now")
    write_second_day(demo.folder / "export", tuesday, monday)
    screen.show_facts(demo.console, _changes())
    demo.load("tuesday", gathered=True)
    return _look(demo)


def _changes() -> list[tuple[str, str]]:
    return [
        ("orders.csv", f"{CHANGED} changed, {CANCELLED} cancelled, {NEW:,} new"),
        ("", "and a new column, Gutschein"),
        ("payments.parquet", f"{PAYMENTS:,} rows; amount is a decimal(14,2), and was (12,2)"),
    ]


def _look(demo: Demo) -> dict[str, Any]:
    tables = DemoTables(demo.destination, demo.session, DATABASE)
    lines = tables.look(*_TABLES)
    screen.show_heading(demo.console, "Each load of a table is one snapshot")
    screen.show_answer(demo.console, _as_answer(lines))
    views: dict[str, tuple[str, int | None]] = {name: (name, None) for name in _TABLES}
    views["orders_at_mondays_snapshot"] = ("orders", _snapshot_of(lines, "monday"))

    def ask(sql: str) -> Answer:
        answer = tables.query(views, sql)
        screen.show_query(demo.console, sql, answer)
        return answer

    screen.show_heading(demo.console, "Any reader understands it: pyiceberg and DuckDB")
    answers = [ask(ORDERS_OF_EACH_JOB), ask(PAYMENTS_OF_EACH_JOB)]
    screen.show_heading(demo.console, "Monday is still there")
    answers.append(ask(NOW_AND_MONDAY))
    _compare(answers)
    return {
        "commands": demo.commands,
        "objects": sorted(demo.keys),
        "snapshots": [asdict(line) for line in lines],
        "answers": [asdict(answer) for answer in answers],
    }


def _snapshot_of(lines: tuple[SnapshotLine, ...], job: str) -> int:
    found = [line for line in lines if (line.table, line.job) == ("orders", job)]
    if len(found) != 1:
        raise LoadFailed(f"in the demo, `{job}` made {len(found)} snapshots of `orders`, not one")
    return int(found[0].snapshot)


def _as_answer(lines: tuple[SnapshotLine, ...]) -> Answer:
    names = ("table", "job", "snapshot", "operation", "added", "removed")
    rows = [tuple(asdict(line)[name] for name in names) for line in lines]
    return Answer(names, tuple(rows))


def _compare(answers: list[Answer]) -> None:
    """Raise `LoadFailed` unless the tables hold exactly the rows that the exports say."""
    by_job, payments, travelled = answers
    untouched, came = ORDERS - CHANGED - CANCELLED, CHANGED + NEW
    found = {
        "orders of each job": [(row[0], row[1], row[3]) for row in by_job.rows],
        "payments of each job": [row[:3] for row in payments.rows],
        "now and Monday": sorted(travelled.rows, key=str),
    }
    wanted = {
        "orders of each job": [("monday", untouched, 0), ("tuesday", came, CHANGED)],
        "payments of each job": [("monday", PAYMENTS, PAYMENTS), ("tuesday", PAYMENTS, PAYMENTS)],
        "now and Monday": [("monday", ORDERS, 0), ("now", untouched + came, CHANGED)],
    }
    for what, rows in wanted.items():
        if found[what] != rows:
            raise LoadFailed(f"in the demo, {what} are {found[what]} and not {rows}")
