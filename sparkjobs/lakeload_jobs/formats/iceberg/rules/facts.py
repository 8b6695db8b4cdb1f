"""Metadata of an Iceberg table as plain data, and lakeload's properties in it.

The rules of the commit protocol (docs/protocol-iceberg.md) are functions of these facts alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed, NewerFormat
from lakeload_jobs.contract.spec import AppendAgain, Mode, TableHandling
from lakeload_jobs.contract.state import check_format
from lakeload_jobs.formats.iceberg.rules.partitions import NO_PARTITION, spec_field

JOBS_REMEMBERED = 1000
"""Job ids that a table keeps, the latest of all pipelines together."""

JOBS = "lakeload.jobs"
SEQ = "lakeload.seq"
CREATED_BY = "lakeload.created-by"
STATE_PREFIX = "lakeload.state."

SUMMARY_JOB = "lakeload.job-id"
SUMMARY_PIPELINE = "lakeload.pipeline"
SUMMARY_ATTEMPT = "lakeload.attempt"
SUMMARY_AUTHOR = "lakeload.author"
"""`user@host pid 4711` that started the job, for people (`core.authors`); absent in snapshots of
before it was noted."""
SUMMARY_ROWS = "lakeload.rows"
SUMMARY_BRANCH = "lakeload.branch"
"""The staging branch, where records were set aside: each round of an attempt has its own."""
SUMMARY_REJECTED = "lakeload.rejected"
"""Records that were set aside in the side table; absent for none."""
SUMMARY_DELETED = "lakeload.deleted"
"""Rows that the source no longer has, as far as this job has removed or marked them, or appended
them as deleted; absent for none."""
SUMMARY_RETRIED = "lakeload.retried"
"""The job whose rejected records this one has read; absent where files were read."""
SUMMARY_READ = "lakeload.read"
"""What of the source was read, for people; absent where it was all."""
SUMMARY_MODE = "lakeload.mode"
SUMMARY_SYNCED = "lakeload.synced"
SUMMARY_FINGERPRINT = "lakeload.fingerprint"
"""Optional: the settings of the job, for ids that come again after other jobs."""

STATE_FORMAT = 1
"""Of `PipelineState`. A key that earlier programs may pass over does not raise it."""
PROPERTIES_FORMAT = "lakeload.format"
"""Of all that lakeload keeps in properties of the table, jobs and counts; absent: 1."""

_GC_ENABLED = "gc.enabled"
_NESSIE_COMMIT = "nessie.commit.id"
"""Set by Nessie's client on every table that it reads."""
_ENTRY = re.compile(r"([0-9a-f]{16}):([0-9]{1,19})")


@dataclass(frozen=True)
class Snapshot:
    """One snapshot that the metadata still holds."""

    id: int
    parent: int | None
    timestamp_ms: int
    summary: Mapping[str, str]


@dataclass(frozen=True)
class TableFacts:
    """One read of a table's metadata. Column types are texts as Iceberg writes them."""

    location: str
    uuid: str
    properties: Mapping[str, str]
    refs: Mapping[str, int]
    """Branches and tags → the snapshot each names. An empty table has no `main`."""
    snapshots: Mapping[int, Snapshot]
    columns: Mapping[str, str]
    required: frozenset[str]
    identifiers: tuple[str, ...]
    format_version: int
    metadata_location: str | None
    partitions: tuple[str, ...] = ()
    """The default partition spec, its fields as `partition_by` writes them."""
    sorted: bool = False
    """Whether the table has a sort order."""


@dataclass(frozen=True)
class PipelineState:
    """What a table keeps of one pipeline: `lakeload.state.{pipeline}`, written by each publish."""

    source: str
    job: str
    snapshot: int
    """The snapshot that `state` belongs to: the state counts while the branch has it."""
    fingerprint: str
    columns: Mapping[str, str]
    """Source name → target name."""
    state: Any = None
    """Cursor, loaded files, offsets; None where the pipeline loads everything each time."""
    ledger: str | None = None
    """The key of an object with what is too large for a property."""
    rows_job: str | None = None
    """The latest job that left rows: whether they are still there tells of a rollback (I5)."""
    format: int = STATE_FORMAT

    def to_property(self) -> str:
        """Return the JSON that the property holds."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def from_property(cls, text: str, name: str) -> PipelineState:
        """Read what `to_property` wrote; keys of later versions are passed over.

        Raises `NewerFormat`, and `LoadFailed` naming the property `name`.
        """
        try:
            data = json.loads(text)
            check_format(data, STATE_FORMAT, f"the table property `{name}`")
            known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
            state = cls(**known)
            if not isinstance(state.snapshot, int) or not isinstance(state.columns, dict):
                raise TypeError
            if not isinstance(state.ledger, str | None):
                raise TypeError
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(name, text) from error
        return state


@dataclass(frozen=True)
class TableAttempt:
    """One attempt at loading one source table into one Iceberg table."""

    pipeline: str
    job_id: str
    attempt_id: str
    fingerprint: str
    source: str
    target: str
    """`schema.table`, for messages."""
    table_handling: TableHandling = "FAIL"
    mode: Mode = "APPEND"
    retries: str | None = None
    """The job whose rejected records it reads, all of them; None where it reads files."""
    append_again: AppendAgain | None = None
    """What becomes of it after another load of the same rows; None: it has no such rows."""
    goes_on: bool = False
    """It reads on from the state of the pipeline: incremental, without `--reload` and
    `--full-refresh`."""


@dataclass(frozen=True)
class Lineage:
    """The snapshots that a branch is made of, as far as the metadata still holds them."""

    ids: tuple[int, ...]
    """From the branch's head back to the oldest one that is not expired."""
    beyond: int | None
    """The parent of the oldest: expired, but known to belong to the branch. None: it has none."""

    def has(self, snapshot: int) -> bool:
        """Return whether a snapshot certainly belongs to the branch."""
        return snapshot in self.ids or (self.beyond is not None and snapshot == self.beyond)


def damaged(name: str, text: str) -> LoadFailed:
    """Return the error of a property that is not as lakeload writes it."""
    return LoadFailed(
        f"the table property `{name}` holds `{text[:60]}`, which lakeload did not write",
        hint=(
            "restore the value from an earlier metadata file of the table; nothing is "
            "loaded until then"
        ),
    )


def job_key(pipeline: str, job_id: str) -> str:
    """Return the 16 hex digits under which a table remembers a job: its id is its pipeline's."""
    return hashlib.sha256(f"{pipeline}\0{job_id}".encode()).hexdigest()[:16]


def retry_key(pipeline: str, job_id: str) -> str:
    """Return the digits under which a table remembers that the rejected records of a job were read
    again. No job id has a zero byte."""
    return job_key(pipeline, f"{job_id}\0rejected")


def remembered_jobs(facts: TableFacts) -> dict[str, int]:
    """Return job key → published snapshot, the oldest first. Raises `LoadFailed`, `NewerFormat`."""
    number = facts.properties.get(PROPERTIES_FORMAT, "1")
    if not re.fullmatch(r"[0-9]{1,9}", number):
        raise damaged(PROPERTIES_FORMAT, number)
    if int(number) > STATE_FORMAT:
        raise NewerFormat(f"the table property `{JOBS}`", int(number), STATE_FORMAT)
    text = facts.properties.get(JOBS, "")
    found: dict[str, int] = {}
    for entry in text.split(",") if text else []:
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            raise damaged(JOBS, text)
        found[match[1]] = int(match[2])
    return found


def publish_count(facts: TableFacts) -> int:
    """Return `lakeload.seq`: how often lakeload has published into the table."""
    text = facts.properties.get(SEQ, "0")
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise damaged(SEQ, text)
    return int(text)


def state_of(facts: TableFacts, pipeline: str) -> PipelineState | None:
    """Return what the table keeps of a pipeline; None when it has never published into it."""
    name = STATE_PREFIX + pipeline
    text = facts.properties.get(name)
    return None if text is None else PipelineState.from_property(text, name)


def source_state_of(facts: TableFacts, pipeline: str) -> Any:
    """Return the state of the source that the table keeps of a pipeline, for people: None where
    there is none, or none that can be read."""
    with suppress(LakeloadError):
        if (found := state_of(facts, pipeline)) is not None:
            return found.state
    return None


def keeps_files(properties: Mapping[str, str], *, shared: bool = False) -> str | None:
    """Return why no file of the table may be removed, None when it may. `shared`: the catalog has
    branches and tags of its own, which share files unless the table says otherwise.

    Somebody else may own them: https://iceberg.apache.org/docs/latest/configuration/. Nessie's
    client makes every table so: https://projectnessie.org/nessie-latest/gc/
    """
    if properties.get(_GC_ENABLED, "false" if shared else "true").lower() != "false":
        return None
    if shared or _NESSIE_COMMIT in properties:
        return (
            f"Nessie keeps files for its branches and tags (`{_GC_ENABLED}=false`): use "
            "`nessie-gc` to remove files that no branch needs"
        )
    return f"the table has `{_GC_ENABLED}=false`: its files belong to other tables as well"


def pipelines_of(facts: TableFacts) -> tuple[str, ...]:
    """Return the pipelines that have published into the table."""
    return tuple(
        sorted(
            name.removeprefix(STATE_PREFIX)
            for name in facts.properties
            if name.startswith(STATE_PREFIX)
        )
    )


def branch_with_rows(facts: TableFacts, branch: str) -> str:
    """Return the branch that has the rows of a branch: `main` for one that is not there yet, which
    begins with them."""
    return branch if branch in facts.refs else "main"


def head_of(facts: TableFacts, branch: str) -> int | None:
    """Return the snapshot that a branch is at, or begins with; None where the table has none."""
    return facts.refs.get(branch_with_rows(facts, branch))


def lineage(facts: TableFacts, branch: str) -> Lineage:
    """Return the lineage of a branch, or of what it begins with."""
    return _walk(facts, head_of(facts, branch))


def belongs(facts: TableFacts, branch: str, snapshot: int) -> bool | None:
    """Return whether a snapshot is in the branch's lineage; None when expiry hides the answer.

    False is certain: the lineage is whole, or the snapshot descends from one of it without being
    one of it, which is what a rollback leaves behind.
    """
    own = lineage(facts, branch)
    if own.has(snapshot):
        return True
    if own.beyond is None:
        return False
    others = _walk(facts, snapshot if snapshot in facts.snapshots else None)
    known = {*others.ids} | ({others.beyond} if others.beyond is not None else set())
    return False if any(own.has(ancestor) for ancestor in known) else None


def _walk(facts: TableFacts, head: int | None) -> Lineage:
    ids: list[int] = []
    at = head
    while at is not None and (snapshot := facts.snapshots.get(at)) is not None:
        ids.append(at)
        at = snapshot.parent
    return Lineage(tuple(ids), at)


def table_facts(metadata: Mapping[str, Any], metadata_location: str | None) -> TableFacts:
    """Return the facts of a table's metadata file, as Iceberg's specification writes it."""
    schema = current_schema(metadata)
    names = column_names(schema)
    return TableFacts(
        location=metadata["location"].rstrip("/"),
        uuid=metadata.get("table-uuid") or "",
        properties=metadata.get("properties", {}),
        refs=_refs(metadata),
        snapshots={one["snapshot-id"]: _snapshot(one) for one in metadata.get("snapshots", [])},
        columns={field["name"]: type_text(field["type"]) for field in schema["fields"]},
        required=frozenset(field["name"] for field in schema["fields"] if field["required"]),
        identifiers=tuple(names.get(i, "") for i in schema.get("identifier-field-ids", [])),
        format_version=metadata["format-version"],
        metadata_location=metadata_location,
        partitions=_partitions(metadata, names),
        sorted=metadata.get("default-sort-order-id", 0) != 0,
    )


def current_schema(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the current schema of a table's metadata."""
    current = metadata.get("current-schema-id", 0)
    schemas: Sequence[Mapping[str, Any]] = metadata["schemas"]
    return next(one for one in schemas if one.get("schema-id", 0) == current)


def default_spec(metadata: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the fields of the partition spec that new files of a table have."""
    default = metadata.get("default-spec-id", 0)
    specs: Sequence[Mapping[str, Any]] = metadata["partition-specs"]
    fields: Sequence[Mapping[str, Any]] = next(
        one["fields"] for one in specs if one["spec-id"] == default
    )
    return fields


def _refs(metadata: Mapping[str, Any]) -> dict[str, int]:
    return {name: ref["snapshot-id"] for name, ref in metadata["refs"].items()}


def type_text(kind: str | Mapping[str, Any]) -> str:
    """Return a type of a schema's JSON as Iceberg's libraries write it:
    `struct<3: city: optional string>`."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "list":
        return f"list<{type_text(kind['element'])}>"
    if kind["type"] == "map":
        return f"map<{type_text(kind['key'])}, {type_text(kind['value'])}>"
    fields = [
        f"{field['id']}: {field['name']}: {'required' if field['required'] else 'optional'} "
        f"{type_text(field['type'])}"
        for field in kind["fields"]
    ]
    return f"struct<{', '.join(fields)}>"


def column_names(struct: Mapping[str, Any], within: str = "") -> dict[int, str]:
    """Return field id → name, also of the fields in structs: `address.city`."""
    found = {}
    for field in struct["fields"]:
        found[field["id"]] = name = f"{within}{field['name']}"
        kind = field["type"]
        if not isinstance(kind, str) and kind["type"] == "struct":
            found |= column_names(kind, f"{name}.")
    return found


def _partitions(metadata: Mapping[str, Any], names: Mapping[int, str]) -> tuple[str, ...]:
    return tuple(
        spec_field(field["transform"], names.get(field["source-id"], "?"))
        for field in default_spec(metadata)
        if field["transform"] != NO_PARTITION
    )


def _snapshot(data: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        id=data["snapshot-id"],
        parent=data.get("parent-snapshot-id"),
        timestamp_ms=data["timestamp-ms"],
        summary=data.get("summary") or {},
    )
