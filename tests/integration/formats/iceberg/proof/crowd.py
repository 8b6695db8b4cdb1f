"""Many jobs of many writers on one table, while requests and answers of their commits are lost."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.commits.manifests import read_list
from lakeload_jobs.formats.iceberg.commits.metadata import MAIN, ref, schema_of, snapshot_of
from lakeload_jobs.formats.iceberg.load.branches import create_branch
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.load.publish import NewFiles, Publish, Staged, publish
from lakeload_jobs.formats.iceberg.rules.admission import open_table
from lakeload_jobs.formats.iceberg.rules.facts import (
    PipelineState,
    TableAttempt,
    lineage,
    remembered_jobs,
)
from lakeload_jobs.rows.balance import Balance
from tests.integration.formats.iceberg.proof.own_client import OwnClient
from tests.integration.formats.iceberg.proof.places import Place, is_commit
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Forward, Response, Rule, drop_answer, drop_request

EVERY = 5
"""Of so many commits one is troubled: its request or its answer is lost, in turn."""


@dataclass
class Trouble:
    """Loses every fifth commit on its way, or its answer."""

    seen: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def act(self, request: Request, forward: Forward) -> Response:
        """Handle a request."""
        if not is_commit(request):
            return forward(request)
        with self.lock:
            self.seen["commits"] += 1
            number = self.seen["commits"]
        if number % EVERY:
            return forward(request)
        lost = "requests" if number % (2 * EVERY) else "answers"
        with self.lock:
            self.seen[lost] += 1
        return (drop_request if lost == "requests" else drop_answer)(request, forward)

    @contextmanager
    def on(self, place: Place) -> Iterator[None]:
        """Trouble the commits that pass the proxy of a place."""
        rule = Rule("*", self.act)
        place.proxy.rules.append(rule)
        try:
            yield
        finally:
            place.proxy.rules.remove(rule)


@dataclass(frozen=True)
class Crowd:
    """What became of it."""

    outcomes: Counter[str]
    jobs: int
    """How many jobs the table remembers."""
    published: Counter[str]
    """Jobs in the summaries of main's lineage."""
    rows: int
    """The rows that the head counts."""
    ids: list[tuple[int, int]]
    """First row id and number of rows of each manifest, in order."""
    next_id: int
    branches: list[str]
    files: list[str]


def load_in_crowd(place: Place, writers: int, jobs: int) -> tuple[Crowd, Trouble]:
    """Let `writers` run `jobs` each, one after the other, by the publish of a load."""
    assert isinstance(place.ours, OwnClient)
    own, table = place.ours, place.table("crowd")
    trouble = Trouble()

    def write(writer: int) -> list[str]:
        tables = CatalogTables.of(own.destination, AwsSession(own.destination, max_attempts=3))
        return [_load(tables, own, table, f"w{writer}", f"w{writer}-j{job}") for job in range(jobs)]

    with trouble.on(place), ThreadPoolExecutor(writers) as pool:
        outcomes = Counter(one for told in pool.map(write, range(writers)) for one in told)
    assert isinstance(place.theirs, OwnClient)
    now = place.theirs.load(table)
    facts, head = facts_of(now), ref(now.metadata, MAIN)
    assert head is not None
    snapshot = snapshot_of(now.metadata, head)
    assert snapshot is not None
    summaries = (facts.snapshots[number].summary for number in lineage(facts, MAIN).ids)
    rows = read_list(place.theirs.lake, snapshot)
    ids = sorted((int(row["first_row_id"]), int(row["added_rows_count"])) for row in rows)
    crowd = Crowd(
        outcomes,
        len(remembered_jobs(facts)),
        Counter(one["lakeload.job-id"] for one in summaries if "lakeload.job-id" in one),
        int(snapshot["summary"]["total-records"]),
        ids,
        int(now.metadata["next-row-id"]),
        place.theirs.refs(table),
        place.theirs.files(table),
    )
    return crowd, trouble


def _load(tables: CatalogTables, own: OwnClient, table: str, pipeline: str, job_id: str) -> str:
    """Load one file, again from the beginning where another job made that necessary."""
    attempt = TableAttempt(
        pipeline,
        job_id,
        secrets.token_hex(4),
        "f" * 64,
        table,
        f"{own.namespace}.{table}",
        "APPEND",
    )
    for round_ in range(20):
        found = tables.read(own.namespace, table)
        assert found is not None
        start = open_table(facts_of(found), MAIN, attempt)
        name = f"lakeload_{job_id}_{round_}"
        branch = create_branch(tables, own.namespace, table, name, MAIN)
        manifest = own.manifest(branch.table, job_id)
        staged = Staged(
            name,
            branch.base,
            branch.at,
            NewFiles(int(manifest.row["added_snapshot_id"]), (manifest,), replaces=False),
            "append",
            schema_of(branch.table.metadata),
            {"lakeload.job-id": job_id, "lakeload.pipeline": pipeline},
            has_rows=True,
            balance=Balance(1, 1),
        )

        def state(snapshot: int) -> PipelineState:
            return PipelineState(table, job_id, snapshot, "f" * 64, {})

        given = Publish(
            tables, own.namespace, table, MAIN, attempt, start, staged, state, sets_state=False
        )
        ended = publish(given)
        if ended.outcome != "AGAIN":
            return ended.outcome
    return "NEVER"
