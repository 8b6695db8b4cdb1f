"""The sixth layer of `make faults`: one command loads one row after the other.

Ten tables are loaded in rounds, with the role that `lakeload policy` prints. Each round brings one
row into one of them: Parquet files, Iceberg tables that append, and UPSERTs. In every hundredth
round everything that the command has started is killed and started again, in every twentieth S3 has
trouble. Meanwhile `maintain` runs beside the rounds, with a role of its own. At the end pyarrow and
pyiceberg read the rows. It prints what the processes take while the rounds go on, and what a round
leaves in the lake.

The chapters `lag/…` load at 10 s what other processes write meanwhile, and measure how late the
newest rows are loaded.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.faults.findings import Findings
from tests.faults.layer import Outcome, Wanted, run_layer, say
from tests.faults.rounds.command import (
    ROLES,
    Command,
    NoRound,
    Sample,
    cost,
    servers,
    servers_cpu,
)
from tests.faults.rounds.lag import lag_of_files, lag_of_postgres
from tests.faults.rounds.lake import KINDS, Form, RoundsLake, Stored, compared, rounds_lake
from tests.servers.fault_proxy import Action, answer, drop_answer, drop_request, truncate

KEYS = 20
"""Keys of a table that is loaded with UPSERT: each row replaces an older one, after so many."""
IDLE_ROUNDS = 10
KILL_EVERY, FAULT_EVERY = 100, 20
ARGUMENTS = ("--every", "1s")
SPEED = 10.0
"""How much faster rounds are due than in a second."""
RETENTION = ("--older-than", "0d", "--retain-last", "1")
"""What `maintain` leaves of an Iceberg table: a campaign is one day, or a few."""
TROUBLE: tuple[tuple[str, Action, int], ...] = (
    ("*", answer(503, "SlowDown"), 3),
    ("*", answer(500, "InternalError"), 2),
    ("PutObject", drop_answer, 1),
    ("PutObject", answer(503, "SlowDown"), 2),
    ("CompleteMultipartUpload", drop_answer, 1),
    ("CompleteMultipartUpload", drop_request, 1),
    ("UploadPart", drop_request, 1),
    ("UploadPart", answer(500, "InternalError"), 2),
    ("GetObject", truncate(10), 1),
    ("ListObjectsV2", drop_answer, 1),
)
"""What S3 does in a round: to which requests, and to how many."""

Mode = Literal["APPEND", "UPSERT"]
CHAPTERS: dict[str, tuple[Form, Mode]] = {
    "parquet": ("parquet", "APPEND"),
    "iceberg/append": ("iceberg", "APPEND"),
    "iceberg/upsert": ("iceberg", "UPSERT"),
}
LAG: dict[str, Callable[[Path, str, float], Findings]] = {
    "lag/files": lag_of_files,
    "lag/postgres": lag_of_postgres,
}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    rounds: int
    tables: int
    faults: bool
    maintained: int
    """Rounds from one `maintain` to the next; 0: it does not run beside them."""
    minutes: float
    """No round begins after so many."""
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return 1 when a row was lost or doubled."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=110, help="rounds with a row each")
    parser.add_argument("--tables", type=int, default=10, help="tables, of which one has news")
    parser.add_argument("--without-faults", action="store_true", help="neither kills nor trouble")
    parser.add_argument(
        "--maintain-every", type=int, default=0, metavar="N", help="rounds between two `maintain`"
    )
    parser.add_argument("--minutes", type=float, default=600, help="most of rounds, a chapter")
    parser.add_argument("--seconds", type=float, default=60, help="of writing, chapters `lag/…`")
    given, rest = parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)
    size = Size(
        given.rounds,
        given.tables,
        not given.without_faults,
        given.maintain_every,
        given.minutes,
        given.seconds,
    )

    def run(wanted: Wanted) -> Iterator[Outcome]:
        return _run(wanted, size)

    names = f"chapters: {', '.join((*CHAPTERS, *LAG))}"
    return run_layer("tests.faults.rounds", __doc__, names, run, rest, parents=[parser])


def _run(wanted: Wanted, size: Size) -> Iterator[Outcome]:
    for name, (form, mode) in CHAPTERS.items():
        if wanted.includes(name):
            seed = f"{wanted.seed} {name}"
            with rounds_lake(form, wanted.folder / name) as lake:
                chapter = Chapter(lake, wanted.folder / name / "run", mode, size, seed)
                findings = chapter.run()
            again = (
                f"--rounds {size.rounds} --tables {size.tables} "
                f"--maintain-every {size.maintained} --only {name}"
            )
            yield Outcome(f"rounds, {name}", name, chapter.done, findings, again)
    for name, run in LAG.items():
        if wanted.includes(name):
            findings = run(wanted.folder / name, f"{wanted.seed} {name}", size.seconds)
            again = f"--seconds {size.seconds:.0f} --only {name}"
            yield Outcome(f"rounds, {name}", name, 1, findings, again)


@dataclass
class Chapter:
    """The rounds of one kind of table. `done` counts those with a row."""

    lake: RoundsLake
    folder: Path
    mode: Mode
    size: Size
    seed: str
    done: int = 0
    idle: int = 0
    failed: int = 0
    kills: int = 0
    troubles: int = 0
    problems: list[str] = field(default_factory=list)

    def run(self) -> Findings:
        """Load, count, maintain, and print; return what is wrong."""
        self.random = random.Random(self.seed)  # noqa: S311
        self.command = Command(
            self.lake.lake, self.folder, ARGUMENTS, self.lake.variables, speed=SPEED
        )
        self._seconds = 1.0
        self._servers = servers()
        self._write()
        say(f"\n{self.seed}: {self.size.rounds} rounds, one row each, {self.size.tables} tables")
        self.command.start()
        try:
            self._load_first()
            self._idle()
            with ThreadPoolExecutor(1) as beside:
                self._rounds(beside)
            code = self.command.stop()
        except NoRound as error:
            self.problems.append(str(error))
            code = self.command.stop()
        finally:
            self.command.end()
        if code != 0:
            self.problems.append(f"the command ended with {code} after SIGTERM")
        findings = self._count("after the rounds")
        # Uploads of loads that were killed stay until they are a day old, or are aborted.
        findings.left = 0
        self._ordinary_loads()
        self._maintain("at the end", "--abort-older-than", "0")
        findings.add(self._count("after `maintain`"))
        findings.problems += self.problems
        return findings

    def _write(self) -> None:
        tables: list[dict[str, Any]] = []
        for number in range(self.size.tables):
            table = {
                "table": f"t{number}",
                "path": f"landing/t{number}",
                "columns": {"types": {"id": "bigint", "n": "bigint"}},
            }
            if self.mode == "UPSERT":
                table |= {"mode": "UPSERT", "primary_key": ["id"]}
            tables.append(table)
            (self.folder / "landing" / f"t{number}").mkdir(parents=True)
            self._arrives(f"t{number}", 0)
        source = {
            "type": "FILES", "format": "CSV", "options": {"header": True}, "incremental": True
        }  # fmt: skip
        given = {"tables": tables, "source": source, "spark": {"driver_memory": "1g"}}
        self.lake.write(self.folder, **given)
        keeper = self.lake.keeper
        assert keeper is not None
        keeper.write(self.folder / "keeper", "--with", "maintain", **given)

    def _arrives(self, table: str, number: int) -> None:
        """Let a file with one row appear at once."""
        key = number % KEYS if self.mode == "UPSERT" else number
        whole = self.folder / "part"
        whole.write_text(f"id,n\n{key},{number}\n")
        whole.rename(self.folder / "landing" / table / f"{number:06}.csv")

    def _load_first(self) -> None:
        document = self.command.round()
        loaded = sum(table["rows"] for table in document["tables"])
        if document["exit_code"] != 0 or loaded != self.size.tables:
            raise NoRound(f"the first round loaded {loaded} rows: {_errors(document)}")

    def _idle(self) -> None:
        """Measure rounds without anything new."""
        self.command.round()
        self.lake.requests()
        before = self.command.sample().cpu
        for _ in range(IDLE_ROUNDS):
            self.command.round()
        used = (self.command.sample().cpu - before) / IDLE_ROUNDS
        say(f"a round without news: {used:.3f} CPU s, {_shown(self.lake.requests(), IDLE_ROUNDS)}")

    def _rounds(self, beside: ThreadPoolExecutor) -> None:
        say(_HEAD)
        first = last = self.command.sample(collect=True)
        say(_line(0, None, last, 0, 0))
        objects, of_servers, began = (
            self.lake.stored(),
            servers_cpu(self._servers),
            time.monotonic(),
        )
        requests: Counter[str] = Counter()
        every = max(1, self.size.rounds // 10)
        since, used = 0, []
        upkeep: Future[None] | None = None
        for number in range(1, self.size.rounds + 1):
            self._round(number)
            since += 1
            requests += self.lake.requests()
            due = self.size.maintained and number % self.size.maintained == 0
            if due and (upkeep is None or upkeep.done()):
                upkeep = beside.submit(self._maintain, f"beside round {number}")
            last_one = number == self.size.rounds or (
                time.monotonic() - began > self.size.minutes * 60
            )
            if number % every == 0 or last_one:
                now, theirs = self.command.sample(collect=True), servers_cpu(self._servers)
                say(_line(number, last, now, since, theirs - of_servers))
                used.append((now.cpu - last.cpu) / since)
                last, of_servers, since = now, theirs, 0
            if last_one:
                break
        seconds = time.monotonic() - began
        if upkeep is not None:
            upkeep.result()
        each = statistics.median(used)
        say(
            f"{self.done} rows in {seconds:.0f} s, {each:.3f} CPU s a row as a median, "
            f"{(last.cpu - first.cpu) / self.done:.3f} as a mean; {self.idle} rounds without news, "
            f"{self.failed} failed, {self.kills} kills, {self.troubles} with trouble of S3"
        )
        say(f"requests a row: {_shown(requests, self.done)}")
        if not self.size.maintained:
            say(f"left in the lake a row: {_growth(objects, self.lake.stored(), self.done)}")
        self._each = each

    def _round(self, number: int) -> None:
        """Bring one row in and wait until a round has loaded it."""
        faults = self.size.faults
        killed = faults and number % KILL_EVERY == KILL_EVERY // 2
        rule = None
        if faults and number % FAULT_EVERY == 0:
            operation, action, times = self.random.choice(TROUBLE)
            rule = self.lake.proxy.on(operation, action, times=times)
        self._arrives("t0", number)
        began = time.monotonic()
        if killed:
            self.kills += 1
            time.sleep(self.random.uniform(0, 1.5 * self._seconds))
            self.command.kill()
            self.command.start()
        while True:
            document = self.command.round()
            if document["exit_code"] != 0:
                self.failed += 1
                if rule is None and not killed:
                    self.problems.append(f"round {number}: {_errors(document)}")
                    break
            elif killed or any(table["status"] != "NO_OP" for table in document["tables"]):
                break
            else:
                self.idle += 1
        if rule is None and not killed:
            self._seconds = time.monotonic() - began
        if rule is not None:
            self.troubles += 1
            self.lake.proxy.rules.remove(rule)
        self.done += 1

    def _count(self, when: str) -> Findings:
        """Count the rows of all tables with another reader."""
        findings = Findings()
        for number in range(self.size.tables):
            written = range(self.done + 1) if number == 0 else range(1)
            expected = {row % KEYS if self.mode == "UPSERT" else row: row for row in written}
            found = self.lake.rows(f"t{number}", "id", "n")
            findings.add(compared(found, list(expected.items())))
        findings.left = self.lake.stored().uploads
        say(
            f"{when}: {findings.lost} rows lost, {findings.doubled} doubled, {findings.left} "
            "uploads left"
        )
        return findings

    def _ordinary_loads(self) -> None:
        """Measure loads of one row, each with a Spark of its own."""
        seconds = []
        for _ in range(3):
            self.done += 1
            self._arrives("t0", self.done)
            used, _ = cost(
                self.lake.lake, self.folder, "sync", "pipeline.yml", **self.lake.variables
            )
            seconds.append(used)
        median = statistics.median(seconds)
        say(f"an ordinary load of a row: {median:.1f} CPU s, {median / self._each:.0f} rounds")

    def _maintain(self, when: str, *options: str) -> None:
        """Maintain the tables as once a day, with the role that may, and print what is left."""
        keeper = self.lake.keeper
        assert keeper is not None
        before, metadata = self.lake.stored(), self.lake.metadata("t0")
        keeper.requests()
        options = ("--apply", *options, *(RETENTION if keeper.gate is not None else ()))
        try:
            used, code = cost(
                keeper.lake, self.folder / "keeper", "maintain", "pipeline.yml", *options,
                **keeper.variables,
            )  # fmt: skip
        except RuntimeError as error:
            self.problems.append(f"`maintain` {when}: {error}")
            return
        after, requests = self.lake.stored(), keeper.requests().total()
        say(
            f"`maintain` {when}: exit code {code}, {used:.1f} CPU s, {requests} requests; objects "
            "and their bytes:"
        )
        for kind in (kind for kind in KINDS if before.objects[kind] or after.objects[kind]):
            say(f"  {kind:<15}{_kind(before, kind)}  became{_kind(after, kind)}")
        if metadata is not None:
            say(f"  {metadata}  became  {self.lake.metadata('t0')}")


_HEAD = (
    f"{'rounds':>7}{'CPU s':>8}{'servers':>8}{'heap':>7}{'classes':>8}{'files':>6}"
    + "".join(f"{role:>9}" for role in ROLES)
    + f"{'threads':>16}{'descriptors':>16}   (a round; MiB; of command, driver and JVM)"
)


def _line(number: int, before: Sample | None, now: Sample, rounds: int, servers: float) -> str:
    used = (now.cpu - before.cpu) / rounds if before else 0.0
    of_servers = servers / rounds if rounds else 0.0
    memory = "".join(f"{now.rss[role] / 2**20:>9.0f}" for role in ROLES)
    threads = "/".join(str(now.threads[role]) for role in ROLES[:3])
    files = "/".join(str(now.files[role]) for role in ROLES[:3])
    heap, classes, kept = (size / 2**20 for size in (now.heap, now.classes, now.scratch))
    return (
        f"{number:>7}{used:>8.3f}{of_servers:>8.3f}{heap:>7.1f}{classes:>8.1f}{kept:>6.1f}{memory}"
        f"{threads:>16}{files:>16}"
    )


def _shown(requests: Counter[str], rounds: int) -> str:
    parts = [f"{name} {number / rounds:.2f}" for name, number in requests.most_common()]
    return f"{requests.total() / rounds:.1f} requests ({', '.join(parts)})"


def _growth(before: Stored, after: Stored, rounds: int) -> str:
    return (
        f"{(after.data - before.data) / rounds:.2f} data files of "
        f"{(after.sizes['data'] - before.sizes['data']) / rounds:,.0f} bytes, "
        f"{(after.other - before.other) / rounds:.2f} other objects of "
        f"{(after.other_bytes - before.other_bytes) / rounds:,.0f} bytes"
    )


def _kind(stored: Stored, kind: str) -> str:
    return f"{stored.objects[kind]:>8}{stored.sizes[kind]:>14,}"


def _errors(document: dict[str, Any]) -> str:
    errors = [document["error"], *(table["error"] for table in document["tables"])]
    return "; ".join(error["message"] for error in errors if error)
