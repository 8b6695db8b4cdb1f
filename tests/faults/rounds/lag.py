"""Loads at an interval beside writers that never stop: every row once, and soon."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.faults.findings import Findings
from tests.faults.layer import say
from tests.faults.rounds.command import Command, NoRound
from tests.faults.rounds.lake import RoundsLake, compared, rounds_lake
from tests.servers.postgres import PASSWORD, USER, Postgres, start_postgres
from tests.servers.sharing import OwnServers

INTERVAL = 10.0
ARGUMENTS = ("--every", f"PT{INTERVAL:.0f}S")


@dataclass
class Writer(threading.Thread):
    """Commits rows until it is stopped. `write` commits rows of the given numbers."""

    write: Callable[[range], None]
    seed: str
    ended: threading.Event = field(default_factory=threading.Event)
    committed: list[tuple[range, float]] = field(default_factory=list)
    """The numbers of each commit, and when they could be seen."""
    error: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        """Write."""
        chosen, number = random.Random(self.seed), 0  # noqa: S311
        while not self.ended.wait(chosen.uniform(0.05, 0.5)):
            numbers = range(number, number + chosen.randint(1, 20))
            try:
                self.write(numbers)
            except Exception as error:  # noqa: BLE001 - it is shown by the run
                self.error = error
                return
            self.committed.append((numbers, time.time()))
            number = numbers.stop


def lag_of_files(folder: Path, seed: str, seconds: float) -> Findings:
    """Load files that a writer keeps dropping."""
    landing = folder / "run" / "landing"

    def write(numbers: range) -> None:
        whole = folder / "run" / "part"
        whole.write_text("n\n" + "".join(f"{number}\n" for number in numbers))
        whole.rename(landing / f"{numbers.start:09}.csv")

    with rounds_lake("parquet", folder) as lake:
        landing.mkdir(parents=True)
        lake.write(
            folder / "run",
            tables=[{"table": "t", "path": "landing", "columns": {"types": {"n": "bigint"}}}],
            source={
                "type": "FILES", "format": "CSV", "options": {"header": True}, "incremental": True
            },
        )  # fmt: skip
        write(range(1))
        return _run(lake, folder / "run", Writer(lambda rows: write(_after(rows)), seed), seconds)


def lag_of_postgres(folder: Path, seed: str, seconds: float) -> Findings:
    """Load a table of PostgreSQL by a cursor, while one session commits rows in the order of it."""
    with closing(OwnServers()) as servers, rounds_lake("parquet", folder) as lake:
        postgres: Postgres = servers.get(start_postgres)
        database = postgres.new_database()
        run = folder / "run"
        run.mkdir()
        (run / "password").write_text(PASSWORD, encoding="utf-8")
        with closing(postgres.connect(database)) as session:
            session.execute("CREATE TABLE t (n bigint PRIMARY KEY, at timestamptz NOT NULL)")
            numbers = "generate_series(%s::bigint, %s::bigint) n"
            insert = f"INSERT INTO t SELECT n, clock_timestamp() FROM {numbers}"

            def write(numbers: range) -> None:
                session.execute(insert, (numbers.start, numbers.stop - 1))

            write(range(1))
            lake.write(
                run,
                tables=[{"table": "public.t", "cursor": "at"}],
                source={
                    "type": "JDBC",
                    "url": postgres.url(database),
                    "user": USER,
                    "password": {"file": "password"},
                },
            )
            writer = Writer(lambda rows: write(_after(rows)), seed)
            return _run(lake, run, writer, seconds)


def _after(numbers: range) -> range:
    """Return the numbers behind the row that is there at the first load."""
    return range(numbers.start + 1, numbers.stop + 1)


def _run(lake: RoundsLake, folder: Path, writer: Writer, seconds: float) -> Findings:
    """Load while the writer writes, and then what is left; compare rows and times."""
    command = Command(lake.lake, folder, ARGUMENTS, lake.variables)
    ended: dict[datetime, float] = {}
    problems: list[str] = []
    command.start()
    try:
        _take(command, ended, problems)
        writer.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            _take(command, ended, problems)
        writer.ended.set()
        writer.join()
        _take(command, ended, problems)
        _take(command, ended, problems)
    except NoRound as error:
        problems.append(str(error))
    finally:
        writer.ended.set()
        code = command.stop()
    if code != 0 or writer.error is not None:
        problems.append(f"exit code {code}, the writer's error: {writer.error}")
    written = {0: 0.0}
    for numbers, at in writer.committed:
        written |= dict.fromkeys(_after(numbers), at)
    found = lake.rows("t", "n", "_supa_synced")
    findings = compared([(n,) for n, _ in found], [(n,) for n in written])
    lags = [ended[synced] - written[n] for n, synced in found if n and n in written]
    if not lags or max(lags) > 2 * INTERVAL:
        problems.append(f"rows were loaded {max(lags, default=0):.1f} s after their commit")
    findings.problems += problems
    say(
        f"{folder.parent.name}: {len(written)} rows in {len(writer.committed)} commits, "
        f"{len(ended)} rounds; {findings.lost} lost, {findings.doubled} doubled; loaded after "
        f"{statistics.median(lags or [0]):.1f} s, at most {max(lags, default=0):.1f} s"
    )
    return findings


def _take(command: Command, ended: dict[datetime, float], problems: list[str]) -> None:
    """Note when a round has ended, by the time that its rows carry."""
    document: dict[str, Any] = command.round()
    ended[datetime.fromisoformat(document["started_at"])] = time.time()
    if document["exit_code"] != 0:
        problems.append(f"a round ended with {document['exit_code']}: {document['error']}")
