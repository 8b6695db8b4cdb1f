"""What a lake really holds, by boto3, JSON and pyarrow alone: none of lakeload's own code."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import boto3
import pyarrow.parquet as pq
from botocore.exceptions import ClientError

from tests.athena import HiveError, query
from tests.faults.findings import Findings
from tests.faults.product.syncs import IN, Told
from tests.faults.product.world import World

_LOG_KEY = re.compile(r".*/_lakeload/[^/]+/([^/]+)/log/(\d{20})\.(json|end|clean|cat)")

Row = tuple[str, int, str]
"""Job, id, name."""


@dataclass
class LogRecord:
    """One record as it lies in the bucket, and how it ended."""

    content: dict[str, Any] = field(default_factory=dict)
    end: str | None = None
    """None: no `.end`; else done, void or partial."""
    clean: bool = False
    cataloged: bool = False

    @property
    def job(self) -> tuple[str, str]:
        """Job and attempt; blank for a fence."""
        return self.content.get("job_id", ""), self.content.get("attempt_id", "")


class Snapshot:
    """A lake at one moment: every key, and the logs of some tables, read once."""

    def __init__(self, world: World, tables: Iterable[str]) -> None:
        self._world = world
        chosen = set(tables)
        self._keys = world.lake.keys()
        self._uploads = world.lake.uploads()
        self._records: dict[str, dict[int, LogRecord]] = {}
        for key in self._keys:
            if (match := _LOG_KEY.fullmatch(key)) and match[1] in chosen:
                self._note(key, match[1], int(match[2]), match[3])

    def records(self, table: str) -> dict[int, LogRecord]:
        """The log of a table, by number."""
        return self._records.get(table, {})

    def data_keys(self, table: str) -> list[str]:
        """Every object a reader of the table finds."""
        return [key for key in self._keys if f"/{table}/" in key and "/_lakeload/" not in key]

    def uploads(self, table: str) -> int:
        """How many uploads of the table are open."""
        return sum(f"/{table}/" in key for key in self._uploads)

    def rows(self, table: str) -> tuple[Counter[Row], Findings]:
        """Every visible row, and what is wrong with the columns that lakeload adds."""
        rows: Counter[Row] = Counter()
        indexes: dict[str, list[int]] = {}
        ids: dict[str, set[str]] = {}
        for key in self.data_keys(table):
            names = ["id", "name", "_supa_job_id", "_supa_index", "_supa_id"]
            file = io.BytesIO(self._world.lake.read(key))
            for row in pq.read_table(file, columns=names, partitioning=None).to_pylist():
                job = row["_supa_job_id"]
                rows[job, row["id"], row["name"]] += 1
                indexes.setdefault(job, []).append(row["_supa_index"])
                ids.setdefault(job, set()).add(row["_supa_id"])
        findings = Findings()
        for job, found in indexes.items():
            if sorted(found) != list(range(1, len(found) + 1)) or len(ids[job]) != len(found):
                findings.problems.append(f"{table}: _supa_index or _supa_id of {job} is not dense")
        return rows, findings

    def _note(self, key: str, table: str, number: int, kind: str) -> None:
        record = self._records.setdefault(table, {}).setdefault(number, LogRecord())
        if kind == "clean":
            record.clean = True
        elif kind == "cat":
            record.cataloged = True
        else:
            content = self._world.lake.read(key)
            if kind == "json":
                record.content = json.loads(content)
            else:
                found = json.loads(content) if content.strip() else {}
                record.end = found.get("outcome", "done")


def check_truth(world: World, told: Told, asked: Sequence[str]) -> list[str]:
    """Compare what an ended sync said with the log as it is right then."""
    if told.code is None:
        return []
    snapshot = Snapshot(world, asked)
    problems = []
    said = told.tables
    everything_in = all(said.get(table, {}).get("status") in IN for table in asked)
    if (told.code in (0, 5)) != everything_in:
        problems.append(f"{told.job_id}: exit {told.code}, tables {_statuses(told)}")
    for table, result in said.items():
        ends = {r.end for r in snapshot.records(table).values() if r.job[0] == told.job_id}
        attempts = {r.job[1] for r in snapshot.records(table).values()}
        status = result["status"]
        if status in IN and ends != {"done"}:
            problems.append(f"{table}: {status} was told of {told.job_id}, which ended {ends}")
        if status not in IN and told.attempt_id in attempts and not _says_committed(result):
            problems.append(f"{table}: {result['error']} was told of {told.job_id}, which is in")
        if told.code == 0 and result["error"] is not None:
            problems.append(f"{table}: exit 0 with {result['error']}")
    return problems


def check_tables(
    world: World, snapshot: Snapshot, tables: Sequence[str], told: Mapping[str, set[str]]
) -> Findings:
    """Compare tables with their sources: each job that was told to be in, exactly once.

    `told` are the jobs of each table. The sources must be what those jobs have read.
    """
    findings = Findings()
    for table in tables:
        findings.add(_check_log(snapshot, table, told[table], glue=world.glue))
        rows, wrong = snapshot.rows(table)
        findings.add(wrong)
        expected = Counter((job, *row) for job in told[table] for row in world.rows(table))
        findings.lost += (expected - rows).total()
        findings.doubled += (rows - expected).total()
        if rows != expected:
            jobs = dict(Counter(job for job, _, _ in rows.elements()))
            findings.problems.append(f"{table}: rows of {jobs}, expected those of {told[table]}")
        if world.glue:
            findings.problems += _check_glue(world, table, rows)
        findings.left += snapshot.uploads(table)
    return findings


def _check_log(snapshot: Snapshot, table: str, told: set[str], *, glue: bool) -> Findings:
    """Every record has ended, and the visible objects are exactly those of the done ones."""
    problems = []
    records = snapshot.records(table)
    if sorted(records) != list(range(1, len(records) + 1)):
        problems.append(f"{table}: the log has a gap: {sorted(records)}")
    loads = {n: r for n, r in records.items() if r.content.get("kind") == "LOAD"}
    for number, record in loads.items():
        if record.end is None or (record.end == "void" and not record.clean):
            problems.append(f"{table}: record {number} of {record.job[0]} is not settled")
        if glue and record.end == "done" and not record.cataloged:
            problems.append(f"{table}: record {number} of {record.job[0]} has no .cat")
    done = [record for record in loads.values() if record.end == "done"]
    jobs = [record.job[0] for record in done]
    if sorted(jobs) != sorted(told):
        problems.append(f"{table}: done are {sorted(jobs)}, told were {sorted(told)}")
    known = {file["key"] for record in done for file in record.content["files"]}
    if strangers := sorted(set(snapshot.data_keys(table)) ^ known):
        problems.append(f"{table}: objects and log differ: {strangers}")
    return Findings(problems=problems)


def _check_glue(world: World, table: str, rows: Counter[Row]) -> list[str]:
    """What Athena would read is what the files hold."""
    server = world.lake.server
    glue = boto3.client(
        "glue",
        endpoint_url=server.endpoint,
        region_name=world.lake.seeded.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    try:
        seen = query(glue, server.s3, world.database, table)
    except (HiveError, ClientError) as error:
        return [f"{table}: Athena would say {error}"]
    columns = ("_supa_job_id", "id", "name")
    found = Counter(zip(*(seen.column(name).to_pylist() for name in columns), strict=True))
    return [] if found == rows else [f"{table}: Athena would read other rows than the files hold"]


def _says_committed(result: Mapping[str, Any]) -> bool:
    """Whether a failure warns that the job may be, or is, committed."""
    error = result["error"] or {}
    text = f"{error.get('message', '')} {error.get('hint', '')}".lower()
    return "nothing was committed" not in text and ("committed" in text or "--job-id" in text)


def _statuses(told: Told) -> dict[str, str]:
    return {table: result["status"] for table, result in told.tables.items()}
