"""Shapes of the JSON documents that commands print.

`lakeload schema COMMAND` prints them as JSON Schema. Keys are only ever added. The document of
`plan` is beside its view, because its types need more than the standard library.
"""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from lakeload.history.day import HistoryJob, PipelineHealth, TableHealth
from lakeload.launch.timings import WallTime
from lakeload_jobs.contract.maintain import TableMaintenance
from lakeload_jobs.contract.result import ErrorInfo, FileResult, TableResult
from lakeload_jobs.contract.usage import Usage


class ProblemDocument(TypedDict):
    """A problem of a configuration file, at its line."""

    severity: str
    code: str
    file: str
    line: int | None
    column: int | None
    length: int | None
    key: str | None
    message: str
    hint: str | None
    docs: str


class ErrorDocument(TypedDict):
    """A failure: what happened and what to do. `docs` is a link from the root of the site."""

    type: str
    message: str
    hint: str | None
    exit_code: int
    retryable: bool
    docs: str
    problems: NotRequired[list[ProblemDocument]]


class FailedDocument(TypedDict):
    """The document of a command that failed before it had a result."""

    error: ErrorDocument


class TableErrorDocument(ErrorDocument):
    """The error of one table."""

    target: str


class MissingArchive(TypedDict):
    """What a load without an AppCDS archive shows: the command that builds one, and about how many
    seconds sooner later loads then start."""

    command: str
    saves_seconds: int


class SyncDocument(TypedDict):
    """`sync --output json`. `round` is there with an interval and with `round_limit`."""

    job_id: str
    attempt_id: str
    pipeline: str
    status: str
    exit_code: int
    started_at: str
    seconds: float
    tables: list[TableResult]
    error: ErrorInfo | None
    log: str | None
    class_data: MissingArchive | None
    usage: Usage
    timings: WallTime
    round: NotRequired[int]


class MaintainDocument(TypedDict):
    """`maintain --output json`."""

    job_id: str
    pipeline: str
    status: str
    exit_code: int
    applied: bool
    started_at: str
    seconds: float
    tables: list[TableMaintenance]
    error: ErrorInfo | None
    log: str | None


class ValidatedFile(TypedDict):
    """A configuration file. `kind` is null where the file shows none."""

    file: str
    kind: str | None
    valid: bool


class ValidateDocument(TypedDict):
    """`validate --output json`."""

    valid: bool
    files: list[ValidatedFile]
    problems: list[ProblemDocument]


class GuessDocument(TypedDict):
    """A reader option that was detected. `instead` is the line that changes it."""

    option: str
    value: Any
    confidence: str
    reason: str
    instead: str


class TableGuessDocument(GuessDocument):
    """A reader option of one table that is not certain."""

    table: str


class ColumnDocument(TypedDict):
    """A column and its type."""

    name: str
    type: str


class InspectedDocument(TypedDict):
    """A table that the files could be loaded as."""

    table: str
    paths: list[str]
    files: int
    bytes: int
    format: str | None
    compression: str
    encoding: str
    layout: str
    options: dict[str, Any]
    guesses: list[GuessDocument]
    rename: dict[str, str]
    columns: list[ColumnDocument]
    rows: list[dict[str, str | None]]
    rows_read: int
    complete: bool
    warnings: list[str]
    error: ErrorDocument | None


class InspectDocument(TypedDict):
    """`inspect --output json`."""

    tables: list[InspectedDocument]


class WrittenFile(TypedDict):
    """A file that was written, or in a dry run would be."""

    file: str
    action: str


class VariableDocument(TypedDict):
    """An environment variable that the files refer to."""

    name: str
    about: str


class InitDocument(TypedDict):
    """`init --output json`."""

    dry_run: bool
    files: list[WrittenFile]
    variables: list[VariableDocument]
    tables: list[str]
    warnings: list[str]
    guesses: list[TableGuessDocument]
    next: list[str]


class LakeDocument(TypedDict):
    """`lake up`, `lake down` and `lake status --output json`: the lake on this machine."""

    folder: str
    exists: bool
    running: bool
    """Whether S3 and the catalog respond."""
    pid: int | None
    endpoint: str | None
    catalog: str | None
    buckets: list[str]
    tables: list[str]
    bytes: int
    log: str
    write_failure: str | None
    """Of `lake status`: why nothing can be written."""
    deleted: bool


class LakeAnswerDocument(TypedDict):
    """`lake query --output json`: numbers and truth values as such, all else as text."""

    columns: list[str]
    rows: list[list[str | int | None]]


class ImportedSetting(TypedDict):
    """A setting of another product, and its place here."""

    setting: str | None
    here: str
    difference: str | None


class NotCarriedOver(TypedDict):
    """A setting of another product that lakeload has not, and why."""

    setting: str
    reason: str


class ImportProblem(TypedDict):
    """A problem of a file that was written."""

    file: str
    line: int
    code: str
    message: str
    hint: str | None
    docs: str


class ImportDocument(TypedDict):
    """`import --output json`."""

    product: str
    dry_run: bool
    files: list[WrittenFile]
    settings: list[ImportedSetting]
    not_carried_over: list[NotCarriedOver]
    variables: list[VariableDocument]
    next: list[str]
    problems: list[ImportProblem]


class ActionDocument(TypedDict):
    """An IAM action or a privilege of a catalog, and what it is needed for."""

    action: str
    resource: str


class FailureDocument(TypedDict):
    """Why a check failed. `statement` is the IAM statement that grants what was denied."""

    message: str
    code: str
    status: int | None
    request_id: str | None
    causes: list[str]
    hint: str | None
    docs: str
    statement: dict[str, Any] | None


class ProbeDocument(TypedDict):
    """A check of a connection."""

    name: str
    proves: str
    level: str
    status: str
    milliseconds: int
    action: str | None
    resource: str | None
    also_needs: list[ActionDocument]
    detail: str | None
    failure: FailureDocument | None


class ConnectionDocument(TypedDict):
    """`test-connection --output json`."""

    status: str
    bucket: str
    prefix: str
    region: str
    role_arn: str | None
    seconds: float
    probes: list[ProbeDocument]
    left_behind: list[str]


class FindingDocument(TypedDict):
    """A check of this machine. `command` is the line that fixes what it found."""

    name: str
    status: str
    found: str | None
    why: str | None
    command: str | None


class DoctorDocument(TypedDict):
    """`doctor --output json`."""

    status: str
    file: str | None
    seconds: float
    exit_code: int
    findings: list[FindingDocument]


class RejectedDocument(TypedDict):
    """The side table of a job in a table of Parquet files."""

    table: str
    rows: int
    files: list[FileResult]


class RunDocument(TypedDict):
    """A job in a table. Keys that are not required are those of one table format."""

    target: str
    pipeline: str
    job_id: str
    attempt_id: str | None
    committed_at: str
    synced: str | None
    rows: int
    deleted: int
    bytes: int
    state: str
    rejected: RejectedDocument | int | None
    retried: str | None
    read: str | None
    author: str | None
    pid: int | None
    table: NotRequired[str]
    number: NotRequired[int]
    tool: NotRequired[str]
    started_at: NotRequired[str]
    files: NotRequired[list[FileResult]]
    clean: NotRequired[bool]
    catalog: NotRequired[str | None]
    lost: NotRequired[list[str]]
    snapshot_id: NotRequired[int]
    mode: NotRequired[str | None]
    added_files: NotRequired[int]


class FenceDocument(TypedDict):
    """A record that keeps attempts or uploads from being committed."""

    target: str
    number: int
    committed_at: str
    attempts: list[str]
    uploads: list[str]
    reset: str | None
    reason: str


class BranchDocument(TypedDict):
    """A staging branch of an attempt that has not published."""

    name: str
    attempt_id: str
    created_at: str
    snapshot_id: int


class SnapshotsDocument(TypedDict):
    """An Iceberg table beside its runs."""

    target: str
    exists: bool
    expired_jobs: int
    branches: list[BranchDocument]


class LocalRunDocument(TypedDict):
    """A run of this machine."""

    job_id: str
    attempt_id: str
    pipeline: str
    destination: str
    tables: list[str]
    started_at: str
    seconds: float | None
    outcome: str
    folder: str
    log: str


class RunsDocument(TypedDict):
    """`runs --output json`. `fences` are those of Parquet tables, `tables` of Iceberg tables;
    `jobs` those of the job history, with `--failed` or `--since`."""

    exit_code: int
    runs: list[RunDocument]
    jobs: list[HistoryJob]
    fences: NotRequired[list[FenceDocument]]
    tables: NotRequired[list[SnapshotsDocument]]
    errors: list[TableErrorDocument]
    running: list[LocalRunDocument]


class TableStatusDocument(TypedDict):
    """A table in `status`. `lag_seconds` is the age of its position, else of when it was last up to
    date."""

    target: str
    status: str
    freshness_seconds: int | None
    lag_seconds: float | None
    last: TableHealth | None


class StatusDocument(TypedDict):
    """`status --output json`. `job` is the last one."""

    pipeline: str
    status: str
    exit_code: int
    checked_at: str
    job: PipelineHealth | None
    tables: list[TableStatusDocument]


class LocalRunsDocument(TypedDict):
    """`runs --output json` without a file: the runs of this machine."""

    exit_code: int
    runs: list[LocalRunDocument]


class FinishedJob(TypedDict):
    """An unfinished job that was published or discarded."""

    number: int
    pipeline: str
    job_id: str
    action: str
    rows: int
    files: int


class DamagedJobDocument(TypedDict):
    """A committed job that has lost uploads."""

    number: int
    pipeline: str
    job_id: str
    rows: int
    lost_rows: int
    lost: list[str]


class StaleUploadDocument(TypedDict):
    """An upload of an abandoned attempt."""

    key: str
    upload_id: str
    initiated: str


class LeftFileDocument(TypedDict):
    """A data file of an abandoned attempt that no snapshot names."""

    key: str
    bytes: int
    modified: str


class PendingRejectsDocument(TypedDict):
    """Rejected records of an attempt that has not published."""

    branch: str
    attempt_id: str
    job_id: str
    stay: bool


class RecoveredDocument(TypedDict):
    """A table in `recover`. Keys that are not required are those of one table format."""

    target: str
    status: str
    finished: NotRequired[list[FinishedJob]]
    damaged: NotRequired[list[DamagedJobDocument]]
    uploads: NotRequired[list[StaleUploadDocument]]
    files: NotRequired[list[LeftFileDocument]]
    exists: NotRequired[bool]
    branches: NotRequired[list[BranchDocument]]
    younger_branches: NotRequired[list[BranchDocument]]
    rejected: NotRequired[list[PendingRejectsDocument]]
    errors: list[ErrorDocument]
    warnings: list[ErrorDocument]


class RecoverDocument(TypedDict):
    """`recover --output json`."""

    exit_code: int
    dry_run: bool
    tables: list[RecoveredDocument]


class ResolvedDocument(TypedDict):
    """A job in a table for which an operator decides."""

    target: str
    number: int
    pipeline: str
    job_id: str
    lost_rows: int
    lost: list[str]
    left_rows: int
    left: list[str]
    outcome: str | None
    error: ErrorDocument | None


class ResolutionDocument(TypedDict):
    """`recover --void` and `recover --accept` with `--output json`."""

    exit_code: int
    decision: str
    done: bool
    tables: list[ResolvedDocument]


class ResetTableDocument(TypedDict):
    """A table in `reset`. Keys that are not required are those of one table format."""

    target: str
    plan: dict[str, Any] | None
    removed: dict[str, Any] | None
    log_objects: NotRequired[int]
    location: NotRequired[str | None]
    snapshots: NotRequired[int]
    rows: NotRequired[int]
    dropped: NotRequired[bool]
    error: ErrorDocument | None


class ResetDocument(TypedDict):
    """`reset --output json`."""

    exit_code: int
    done: bool
    tables: list[ResetTableDocument]


class JarDocument(TypedDict):
    """A jar in the cache. `found_sha256` is the checksum of a broken one."""

    set: str
    coordinates: str
    file: str
    size: int
    sha256: str
    found_sha256: str | None
    state: str


class ArchiveDocument(TypedDict):
    """An AppCDS archive in the cache. `why` it would not be used."""

    file: str
    sets: list[str]
    size: int
    state: str
    why: str | None


class JarsDocument(TypedDict):
    """`jars list`, `jars verify` and `jars fetch` with `--output json`."""

    exit_code: int
    cache: str
    jars: list[JarDocument]
    archives: list[ArchiveDocument]
    archives_unknown: str | None
