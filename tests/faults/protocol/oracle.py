"""Is everything as it must be? Judged from the bytes in the bucket alone: the
log as JSON, the data with plain pyarrow, the expected rows from the plan. None of our code."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from botocore.exceptions import ClientError

from tests.athena import HiveError
from tests.faults.protocol.lake import Bucket
from tests.faults.protocol.rows import Files, append_rows, columns, ranged_rows

PREFIX = "data-lake/test/"
LOG = re.compile(r"([0-9]{20})\.(json|end|clean|cat)")
BINDING = re.compile(PREFIX + r"_lakeload/pipeline-sources/shop/[0-9a-f]{16}\.json")
"""Where each source of a pipeline is loaded."""
SEQ = re.compile(r"-([0-9]{5})\.gzip\.parquet")


@dataclass(frozen=True)
class Telling:
    """What one process was told of its job."""

    job: str
    attempt: str
    said: str
    told: Mapping[str, Any]


@dataclass
class Entry:
    """One number of the log."""

    number: int
    body: dict[str, Any] = field(default_factory=dict)
    marks: dict[str, bytes] = field(default_factory=dict)

    @property
    def outcome(self) -> str:
        """done, void, partial or open."""
        if "end" not in self.marks:
            return "open"
        return str(json.loads(self.marks["end"])["outcome"]) if self.marks["end"] else "done"

    @property
    def expected(self) -> Files:
        """The rows of each file of this job."""
        if self.body["state"] is None:
            return append_rows(self.body["job_id"])
        change = self.body["state"]
        return ranged_rows(self.body["pipeline"], change["before"] or 0, change["after"])

    def visible_rows(self) -> Counter[tuple[str, str]]:
        """What a reader must see of it: (`_supa_job_id`, payload)."""
        job, files = self.body["job_id"], self.expected
        if self.outcome == "void":
            return Counter()
        lost = json.loads(self.marks["end"])["lost"] if self.outcome == "partial" else []
        # A lost file of rejected records takes no row of the table with it.
        own = {file["key"] for file in self.body["files"]}
        gone = {_seq(key) for key in lost if key in own}
        return Counter(
            (job, row) for seq, rows in enumerate(files) if seq not in gone for row in rows
        )


@dataclass(frozen=True)
class Verdict:
    """What is wrong, in sentences, and three counts."""

    problems: tuple[str, ...]
    lost: int
    doubled: int
    uploads: int


@dataclass(frozen=True)
class Seen:
    """One table as it is."""

    entries: tuple[Entry, ...]
    data: dict[str, list[tuple[str, str]]]
    """Rows of each visible file."""
    attempts: dict[str, str]
    """Whose each visible file is."""
    strange: tuple[str, ...]
    uploads: tuple[str, ...]


def look(bucket: Bucket, table: str) -> Seen:
    """Read everything there is in the bucket."""
    log_path, data_path = f"{PREFIX}_lakeload/shop/{table}/log/", f"{PREFIX}shop/{table}/"
    entries: dict[int, Entry] = {}
    strange, data = [], {}
    attempts = {}
    for listed in bucket.objects():
        key = listed.key
        if match := LOG.fullmatch(key.removeprefix(log_path)):
            entry = entries.setdefault(int(match[1]), Entry(int(match[1])))
            if match[2] == "json":
                entry.body = json.loads(bucket.read(listed)[0])
            else:
                entry.marks[match[2]] = bucket.read(listed)[0] if listed.size else b""
        elif key.startswith(data_path):
            content, attempts[key] = bucket.read(listed)
            data[key] = _rows(content)
        elif key.startswith(f"{PREFIX}shop/{table}_rejected/"):
            _, attempts[key] = bucket.read(listed)
            data[key] = []
        elif not (key == log_path + "checkpoint.json" or BINDING.fullmatch(key)):
            strange.append(key)
    numbered = tuple(entries[number] for number in sorted(entries))
    uploads = tuple(upload.key for upload in bucket.uploads())
    return Seen(numbered, data, attempts, tuple(strange), uploads)


def _rows(data: bytes) -> list[tuple[str, str]]:
    file = pq.ParquetFile(pa.BufferReader(data))
    return _pairs(file.read(["_supa_job_id", "payload"], use_threads=False))


def _pairs(table: pa.Table) -> list[tuple[str, str]]:
    return [(row["_supa_job_id"], row["payload"]) for row in table.to_pylist()]


def judge(
    bucket: Bucket,
    table: str,
    tellings: list[Telling],
    *,
    aborted: Collection[str],
    athena: Callable[[str, str], pa.Table] | None = None,
) -> Verdict:
    """Compare the table with what it must be. `aborted`: uploads that others than the
    product aborted; `athena` reads a table that is in Glue, by database and name."""
    seen = look(bucket, table)
    loads = [entry for entry in seen.entries if entry.body.get("kind") == "LOAD"]
    problems = [
        *_log_problems(seen, loads, aborted),
        *_file_problems(seen, loads),
        *_range_problems(seen, loads),
        *_telling_problems(loads, tellings),
    ]
    expected: Counter[tuple[str, str]] = sum((e.visible_rows() for e in loads), Counter())
    visible = Counter(row for rows in seen.data.values() for row in rows)
    missing, extra = expected - visible, visible - expected
    if missing:
        problems.append(f"{missing.total()} rows are lost: {_some(missing)}")
    if extra:
        problems.append(f"{extra.total()} rows are too many: {_some(extra)}")
    if athena is not None and expected:
        problems += _catalog_problems(expected, athena, f"shop_{table}", table)
    if seen.uploads:
        problems.append(f"{len(seen.uploads)} uploads are left: {', '.join(seen.uploads)}")
    return Verdict(tuple(problems), missing.total(), extra.total(), len(seen.uploads))


def _catalog_problems(
    expected: Counter[tuple[str, str]],
    athena: Callable[[str, str], pa.Table],
    database: str,
    table: str,
) -> Iterator[str]:
    try:
        rows = athena(database, table)
    except (HiveError, ClientError) as error:
        yield f"Athena would say: {error}"
        return
    found = Counter(_pairs(rows))
    hidden = Counter((row["_supa_job_id"], row["payload"]) for row in _without_fields(rows))
    differences = {
        "not see": expected - found,
        "see too many": found - expected,
        "not see all fields of": hidden,
    }
    for what, pairs in differences.items():
        if pairs:
            yield f"Athena would {what}: {pairs.total()} rows, {_some(pairs)}"


def _without_fields(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows whose struct lacks a value that the row's job has loaded."""
    for row in table.to_pylist():
        kind = columns(row["_supa_job_id"]).get("place")
        if not isinstance(kind, pa.StructType):
            continue
        if (row["place"] or {}).get(kind[0].name) != row["payload"]:
            yield row


def _log_problems(seen: Seen, loads: list[Entry], aborted: Collection[str]) -> Iterator[str]:
    if [entry.number for entry in seen.entries] != list(range(1, len(seen.entries) + 1)):
        yield f"the log has gaps: {[entry.number for entry in seen.entries]}"
    for key in seen.strange:
        yield f"`{key}` belongs to nothing"
    for entry in seen.entries:
        if not entry.body:
            yield f"number {entry.number} has markers and no record"
    for entry in loads:
        if entry.outcome == "open":
            yield f"record {entry.number} has no end"
        if entry.outcome == "void" and "clean" not in entry.marks:
            yield f"record {entry.number} is void and not clean"
        uploads = {file["upload_id"] for file in _staged(entry.body)}
        if entry.outcome != "done" and uploads.isdisjoint(aborted):
            yield f"record {entry.number} is {entry.outcome}, and nobody aborted its uploads"
        if entry.outcome == "done" and entry.body.get("glue") and "cat" not in entry.marks:
            yield f"record {entry.number} is not in the catalog"
    done = [(e.body["pipeline"], e.body["job_id"]) for e in loads if e.outcome != "void"]
    for job, times in Counter(done).items():
        if times > 1:
            yield f"job {job} is in {times} times"


def _staged(record: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the files of a record, those of rejected records among them."""
    rejected = record.get("rejected") or {"files": []}
    return (*record["files"], *rejected["files"])


def _file_problems(seen: Seen, loads: list[Entry]) -> Iterator[str]:
    named: dict[str, str] = {}
    for entry in loads:
        if entry.outcome == "void":
            continue
        lost = json.loads(entry.marks["end"])["lost"] if entry.outcome == "partial" else []
        files = [file["key"] for file in _staged(entry.body) if file["key"] not in lost]
        named |= dict.fromkeys(files, entry.body["attempt_id"])
        if entry.body["rows"] != sum(len(rows) for rows in entry.expected):
            yield f"record {entry.number} counts {entry.body['rows']} rows"
    for key in sorted(set(seen.data) - set(named)):
        yield f"`{key}` is visible and in no record"
    for key in sorted(set(named) - set(seen.data)):
        yield f"`{key}` is in a record and not visible"
    for key in sorted(set(named) & set(seen.data)):
        if (attempt := seen.attempts[key]) != named[key]:
            yield f"`{key}` is of attempt {attempt}, its record of {named[key]}"


def _range_problems(seen: Seen, loads: list[Entry]) -> Iterator[str]:
    """Incremental loads of what is in follow one another without gap or overlap."""
    at = None
    for entry in loads:
        change = entry.body.get("state")
        if change is None or entry.outcome == "void":
            continue
        if change["before"] != at:
            yield f"record {entry.number} goes on from {change['before']}, the state is {at}"
        at = change["after"]


def _telling_problems(loads: list[Entry], tellings: list[Telling]) -> Iterator[str]:
    by_attempt = {entry.body["attempt_id"]: entry for entry in loads}
    in_jobs = {entry.body["job_id"] for entry in loads if entry.outcome in ("done", "partial")}
    for telling in tellings:
        own = by_attempt.get(telling.attempt)
        if problem := _RULES[telling.said](telling, own, in_jobs):
            was = "not in the log" if own is None else f"record {own.number}, {own.outcome}"
            yield (
                f"attempt {telling.attempt} of {telling.job} was told {telling.said!r} "
                f"({telling.told.get('message', '')!r}) and is {was}: {problem}"
            )


def _loaded(telling: Telling, own: Entry | None, in_jobs: set[str]) -> str | None:
    if own is None or own.outcome not in ("done", "partial"):
        return "it is not in"
    if own.outcome == "partial" and telling.told.get("outcome") == "done":
        return "not all of it is in"
    return None


def _failed(telling: Telling, own: Entry | None, in_jobs: set[str]) -> str | None:
    if own is None or own.outcome == "void":
        return None
    # A person may accept what is left of a job while its author still works on it, and is told so.
    cut_short = own.outcome == "partial" and telling.told.get("phase") == "commit"
    return None if cut_short else "it is in"


def _no_op(telling: Telling, own: Entry | None, in_jobs: set[str]) -> str | None:
    return None if telling.job in in_jobs else "the job is not in"


def _committed(telling: Telling, own: Entry | None, in_jobs: set[str]) -> str | None:
    return None if own is not None or telling.job in in_jobs else "it is not in the log"


_RULES: dict[str, Callable[[Telling, Entry | None, set[str]], str | None]] = {
    "loaded": _loaded,
    "failed": _failed,
    "no-op": _no_op,
    "committed": _committed,
    "damaged": lambda telling, own, in_jobs: None,
    "unknown": lambda telling, own, in_jobs: None,
    "crashed": lambda telling, own, in_jobs: "no such error may come out",
}


def _seq(key: str) -> int:
    found = SEQ.search(key)
    return int(found[1]) if found else -1


def _some(rows: Counter[tuple[str, str]]) -> str:
    return ", ".join(f"{job} {row.split()[0]}" for job, row in sorted(rows)[:4])
