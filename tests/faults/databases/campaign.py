"""The fourth layer of `make faults`: generated schemas of databases, loaded again and again.

Each schema has 60 tables: of all types, without keys, with odd names, in partitions, views, one of
900 columns, a large one. Between the rounds rows are inserted, updated and deleted, and some
transactions commit after the load that they began before. One load of each round is killed with
everything it has started, and run again. Then the lake is compared with what the database's own
driver has read.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from lakeload.demo.aws import EmbeddedAws, embedded_policy, seed_lake
from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from tests.faults.databases.history import History
from tests.faults.databases.lake import SchemaLake
from tests.faults.databases.tables import WHOLE, Format, Server, Table, generate
from tests.faults.databases.values import type_tables
from tests.faults.findings import Findings
from tests.faults.layer import Outcome, Wanted, run_layer, say
from tests.faults.product.syncs import IN, Sync, Told, run_untroubled
from tests.servers import mariadb, postgres
from tests.servers.ministack import AwsServer, Lake
from tests.servers.sharing import OwnServers

SERVERS: dict[Server, Any] = {
    "postgres": postgres.start_postgres,
    "mysql": mariadb.start_mariadb,
}
FORMATS: tuple[Format, ...] = ("parquet", "iceberg")
ROUNDS = 4
"""The first load and three incremental ones."""


@dataclass(frozen=True)
class Size:
    """How much is generated: tables of a schema, rows of the large one."""

    tables: int
    large: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return 1 when anything was violated."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--tables", type=int, default=60, help="tables of each schema")
    parser.add_argument("--large", type=int, default=10_000_000, help="rows of the large table")
    size, rest = parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)

    def run(wanted: Wanted) -> Iterator[Outcome]:
        return _run(wanted, Size(size.tables, size.large))

    return run_layer(
        "tests.faults.databases", __doc__, "chapters, as `postgres/iceberg`", run, rest
    )


def _run(wanted: Wanted, size: Size) -> Iterator[Outcome]:
    with EmbeddedAws(wanted.folder / "aws") as embedded, closing(OwnServers()) as servers:
        aws = AwsServer(embedded.endpoint)
        for name, start in SERVERS.items():
            for form in FORMATS:
                chapter = f"{name}/{form}"
                if not wanted.includes(chapter):
                    continue
                started = time.monotonic()
                lake = Lake(
                    aws, seed_lake(aws.admin, bucket=f"lake-{secrets.token_hex(6)}", prefix="lake")
                )
                seed = f"{wanted.seed} {chapter}"
                tables = schema_of(name, form, seed, size)
                history = History(name, servers.get(start), seed, tables)
                folder = wanted.folder / chapter
                schema = SchemaLake(lake, folder, form, history, cache=wanted.folder / "cache")
                findings = run_rounds(schema, seed, say, kill=True)
                history.close()
                lake.empty()
                say(f"{chapter}: {len(tables)} tables, {time.monotonic() - started:.0f} s")
                yield Outcome(chapter, chapter, ROUNDS * len(tables), findings, f"--only {chapter}")


def schema_of(server: Server, form: Format, seed: str, size: Size) -> list[Table]:
    """Return all tables of a schema."""
    types = type_tables(server, WHOLE[form])
    return [*generate(server, form, seed, size.tables - len(types), size.large), *types]


def run_rounds(
    schema: SchemaLake, seed: str, note: Callable[[str], None], *, kill: bool, rounds: int = ROUNDS
) -> Findings:
    """Load a schema, change it and load it again; each load is killed once if `kill`. Return what
    is wrong in the end; it stops after the first round with findings."""
    draw = random.Random(f"{seed} kills")  # noqa: S311
    history = schema.history
    history.create()
    folder = schema.write()
    _allow(schema)
    seconds = 40.0
    for number in range(rounds):
        if number:
            history.change()
        history.begin_late()
        job = f"round-{number}"
        if kill:
            victim = Sync(schema, folder, job)
            after = draw.uniform(0.2, 0.95) * seconds
            _wait(victim, after)
            if victim.running:
                victim.kill()
            told = victim.end()
            note(
                f"{job}: killed after {after:.0f} s" if told.code is None else f"{job}: was quicker"
            )
        begun = time.monotonic()
        told = run_untroubled(schema, folder, job)
        seconds = time.monotonic() - begun
        findings = _reported(told, history)
        schema.targets = {name: table["target"] for name, table in told.tables.items()}
        schema.expect()
        if findings.good:
            findings = schema.compare(large=number == rounds - 1)
        rows = sum(table.get("rows") or 0 for table in told.tables.values())
        note(f"{job}: exit {told.code}, {rows:,} rows, {seconds:.0f} s")
        if not findings.good:
            break
    return findings


def _reported(told: Told, history: History) -> Findings:
    problems = [
        f"{told.job_id}: {name}: {table.get('status')} {table.get('error')}"
        for name, table in told.tables.items()
        if table.get("status") not in IN
    ]
    if told.code != 0 or len(told.tables) != len(history.tables):
        problems.append(f"{told.job_id}: exit {told.code}\n{told.stderr[-2000:]}")
    return Findings(problems=problems)


def _wait(sync: Sync, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while sync.running and time.monotonic() < deadline:
        time.sleep(0.1)


def _allow(schema: SchemaLake) -> None:
    """Let the role do what the documents need."""
    lake = schema.lake
    spec = destination_spec(load_destination(schema.folder / "destination.yml", {}))
    lake.server.admin.put_role_policy(lake.seeded.role, embedded_policy(spec))
