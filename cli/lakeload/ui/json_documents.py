"""Shapes of the JSON documents that commands print.

`lakeload schema COMMAND` prints them as JSON Schema. Keys are only ever added. A document whose
types need more than the standard library is beside its view.
"""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from lakeload.history.day import PipelineHealth, TableHealth
from lakeload.launch.timings import WallTime
from lakeload_jobs.contract.maintain import TableMaintenance
from lakeload_jobs.contract.result import ErrorInfo, TableResult
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


class ImportedSetting(TypedDict):
    """A setting of another product, and its place here."""

    setting: str | None
    here: str
    difference: str | None


class NotCarriedOver(TypedDict):
    """A setting of another product that lakeload has not, and why."""

    setting: str
    reason: str


class ImportDocument(TypedDict):
    """`import --output json`."""

    product: str
    dry_run: bool
    files: list[WrittenFile]
    settings: list[ImportedSetting]
    not_carried_over: list[NotCarriedOver]
    variables: list[VariableDocument]
    next: list[str]
    problems: list[ProblemDocument]


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
