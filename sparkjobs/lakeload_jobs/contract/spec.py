"""JobSpec: one job, fully resolved. The job applies no defaults and reads no environment
but for the secrets named here; it holds references only, never a secret's value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal

from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.secrets import SecretReference

CONTRACT_VERSION = 1

TRACKING_TYPES: Mapping[str, str] = {
    "_supa_synced": "timestamp",
    "_supa_deleted": "boolean",
    "_supa_index": "bigint",
    "_supa_id": "string",
    "_supa_job_id": "string",
}
"""The tracking columns and their types, as Spark names them."""
TRACKING_COLUMNS = tuple(TRACKING_TYPES)

JobName = Literal["load", "plan", "maintain"]
PartitionStrategy = Literal["NONE", "DAY", "HOUR", "SYNC_ID"]
FileFormatName = Literal["CSV", "JSON", "NDJSON", "PARQUET", "ORC", "AVRO"]
TableHandling = Literal["FAIL", "APPEND"]
Nested = Literal["JSON", "NATIVE"]
ReaderChoice = Literal["AUTO", "JVM", "DIRECT"]
OnBadValue = Literal["FAIL", "NULL", "QUARANTINE"]
SchemaChanges = Literal["EVOLVE", "ADD_COLUMNS", "FAIL"]
OnTypeConflict = Literal["FAIL", "NEW_COLUMN", "TEXT"]
OnSameKey = Literal["FAIL", "WARN", "ALLOW"]
OnAppendAgain = Literal["FAIL", "WARN", "ALLOW"]
OnChangedFile = Literal["LOAD", "FAIL", "SKIP"]
TableFormat = Literal["PARQUET", "ICEBERG"]
CatalogType = Literal["GLUE", "REST", "NESSIE", "SNOWFLAKE_OPEN_CATALOG"]
Mode = Literal["APPEND", "OVERWRITE", "UPSERT"]
Deletes = Literal["MARK", "DELETE"]
DatabaseType = Literal["POSTGRESQL", "MYSQL", "SQLSERVER", "ORACLE", "OTHER"]
"""OTHER: one that only the JDBC driver that the user names knows."""
Consistency = Literal["TABLE", "SYNC", "LOCK", "NONE"]
Transform = Literal["identity", "year", "month", "day", "hour", "bucket", "truncate"]
AccessDelegation = Literal["VENDED_CREDENTIALS", "NONE"]


@dataclass(frozen=True)
class CredentialsSpec:
    """How to become the identity that writes.

    All fields None means the AWS default chain. With `role_arn` the profile or keys, if any,
    are the base identity that calls sts:AssumeRole; without it they are used as they are.
    """

    role_arn: str | None = None
    external_id: SecretReference | None = None
    session_duration: int = 3600
    session_tags: dict[str, str] | None = None
    profile: str | None = None
    access_key_id: SecretReference | None = None
    secret_access_key: SecretReference | None = None
    session_token: SecretReference | None = None


@dataclass(frozen=True)
class EndpointsSpec:
    """Endpoint overrides; None means AWS's own regional endpoint."""

    s3: str | None = None
    sts: str | None = None
    glue: str | None = None


@dataclass(frozen=True)
class EncryptionSpec:
    """Server-side encryption sent with every upload and probe."""

    type: Literal["NONE", "SSE_S3", "SSE_KMS"] = "NONE"
    kms_key_id: str | None = None


@dataclass(frozen=True)
class ParquetSpec:
    """Layout of a Parquet destination."""

    partition_strategy: PartitionStrategy = "HOUR"
    file_name_pattern: str = "part-{supa_job_id}-{seq}"
    upload_parallelism: int = 5
    update_glue_catalog: bool = False
    """Each table is one in Glue too; schemas, tables and columns are then in lower case."""
    partition_projection: bool = False
    """Athena computes the partitions; none are registered. With `update_glue_catalog` only."""


@dataclass(frozen=True)
class SigV4Spec:
    """Requests to a REST catalog are signed as AWS's are. None: the destination's region."""

    signing_name: str = "glue"
    region: str | None = None


@dataclass(frozen=True)
class CatalogSpec:
    """The catalog of Iceberg tables. Fields of other types than its own are None."""

    type: CatalogType = "GLUE"
    glue_id: str | None = None
    """GLUE: the account whose catalog it is; None is the role's own."""
    uri: str | None = None
    warehouse: str | None = None
    """REST: what the server calls its warehouse. SNOWFLAKE_OPEN_CATALOG: the catalog's name."""
    client_id: SecretReference | None = None
    client_secret: SecretReference | None = None
    credential: SecretReference | None = None
    """REST: `client-id:client-secret` in one."""
    token: SecretReference | None = None
    scope: str | None = None
    """The OAuth2 scope as it is sent; `PRINCIPAL_ROLE:<role>` for SNOWFLAKE_OPEN_CATALOG."""
    oauth2_server_uri: str | None = None
    access_delegation: AccessDelegation = "VENDED_CREDENTIALS"
    sigv4: SigV4Spec | None = None
    headers: dict[str, SecretReference] | None = None
    ref: str = "main"
    """NESSIE: the branch of the catalog."""
    api: Literal["NATIVE", "REST"] = "NATIVE"
    """NESSIE: which of its two interfaces."""
    catalog_region: str | None = None
    """SNOWFLAKE_OPEN_CATALOG: where it runs, to be compared with the bucket's."""


@dataclass(frozen=True)
class IcebergSpec:
    """How Iceberg tables are made."""

    catalog: CatalogSpec = CatalogSpec()
    warehouse_location: str | None = None
    """GLUE, NESSIE: an `s3://` URL without a final slash; None is the bucket and its prefix."""
    branch: str = "main"
    format_version: Literal[2, 3] = 2
    table_properties: dict[str, str] | None = None


@dataclass(frozen=True)
class DestinationSpec:
    """One bucket and prefix. `prefix` has no leading or trailing slash; '' is the bucket's root."""

    bucket: str
    region: str
    prefix: str = ""
    credentials: CredentialsSpec = CredentialsSpec()
    endpoints: EndpointsSpec = EndpointsSpec()
    addressing_style: Literal["AUTO", "PATH", "VIRTUAL"] = "AUTO"
    single_writer: bool = False
    encryption: EncryptionSpec = EncryptionSpec()
    target_file_size: int = 1 << 30
    """Encoded bytes after which a partition goes on in another file."""
    parquet: ParquetSpec = ParquetSpec()
    glue_database_prefix: str = ""
    """The first part of Glue's database names as written; targets hold it already."""
    table_format: TableFormat = "PARQUET"
    iceberg: IcebergSpec = IcebergSpec()
    """With `table_format` ICEBERG only."""


@dataclass(frozen=True)
class FilesInput:
    """Files of one table: where they are, and the reader options as the user gave them.

    `paths` are absolute paths or globs of this machine, or `s3://bucket/key` with globs in the key.
    """

    format: FileFormatName
    paths: tuple[str, ...]
    options: dict[str, str]
    incremental: bool = False
    """Load only files that no earlier job of this pipeline has loaded."""
    credentials: CredentialsSpec | None = None
    """The identity that reads `s3://` paths; None is the destination's."""
    folder: str = ""
    """The document's folder: files below it are remembered by their path from there."""
    on_changed_file: OnChangedFile | None = None
    """`incremental`: what becomes of a file that has changed since it was loaded. None: LOAD, and
    FAIL where records of the older version were set aside."""
    content_hash: bool = False
    """`incremental`: keep a hash of each file's content, by which a file that was only written
    again is known."""
    type: Literal["FILES"] = "FILES"
    """Tells inputs apart; those written before there were others have none."""

    @property
    def typed_by_values(self) -> bool:
        """Whether columns without a value are text."""
        return self.format == "CSV"


@dataclass(frozen=True)
class SparkInput:
    """What one of Spark's own readers reads: `format` and `options` are Spark's, `paths` absolute
    paths or globs of this machine; none for a reader that takes none."""

    format: str
    paths: tuple[str, ...]
    options: dict[str, str]
    incremental: bool = False
    type: Literal["SPARK"] = "SPARK"

    @property
    def typed_by_values(self) -> bool:
        """Whether columns without a value are text."""
        return self.format.lower() == "csv"


@dataclass(frozen=True)
class JdbcInput:
    """A table or view of a database, by the names that it has there, or a query: then `schema` and
    `table` are ''."""

    database: DatabaseType
    host: str
    port: int
    name: str
    """The database's name."""
    schema: str
    table: str
    query: str | None = None
    user: str | None = None
    """None: as the driver finds it, as from `~/.pgpass` and the environment."""
    password: SecretReference | None = None
    iam_authentication: bool = False
    """Log in with a token of IAM database authentication, for which there is no `password`."""
    parameters: dict[str, str] | None = None
    """Of the connection, as the database's own driver has them; no secrets."""
    max_connections: int = 4
    """For all tables of the job together."""
    consistency: Consistency = "TABLE"
    """What is read as of one moment: each table, by several sessions of MySQL with `LOCK`; all
    tables of a sync; or nothing but a range of a table of MySQL."""
    lock_timeout: int = 60
    """Seconds that a statement waits for a lock."""
    statement_timeout: int = 0
    """Seconds that a statement may run; 0: as the server limits the user."""
    key: tuple[str, ...] | None = None
    """The key that the database has for the table, where the table is loaded with it; None: the
    document says it, or it is a query."""
    incremental: bool = False
    by_xmin: bool = False
    """Whether PostgreSQL's transaction ids decide what an incremental load reads, and no column."""
    lookback: str | None = None
    """How far before the last value of the cursor a load reads again: a number, or a duration as
    ISO 8601 writes it."""
    url: str | None = None
    """OTHER: the URL as its driver takes it, without secrets. Without `host`, `port`, `name`."""
    jars: tuple[str, ...] = ()
    """Of a driver that is the user's: its files, absolute paths of this machine."""
    driver: str | None = None
    """Of a driver that is the user's: its class; None: the one that the jars name."""
    type: Literal["JDBC"] = "JDBC"
    typed_by_values: ClassVar[bool] = False


@dataclass(frozen=True)
class RejectedInput:
    """The rejected records of an earlier job, which are read again as those of `files` are now."""

    job: str
    files: FilesInput
    incremental: bool = False
    type: Literal["REJECTED"] = "REJECTED"
    typed_by_values: ClassVar[bool] = False


TableInput = FilesInput | SparkInput | JdbcInput | RejectedInput
"""What a table is read from: one class for each type of source, told apart by `type`.
Each says whether it is `incremental`, and `typed_by_values`."""


@dataclass(frozen=True)
class ColumnsSpec:
    """Column selection, in source names. `types` are Spark SQL type strings."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rename: dict[str, str] | None = None
    types: dict[str, str] | None = None


@dataclass(frozen=True)
class PartitionField:
    """One field of an Iceberg partition spec: `bucket(16, id)`, `day(created_at)`, `country`.

    `column` is a source name; `width` is the number of buckets or the length to truncate to.
    """

    transform: Transform
    column: str
    width: int | None = None


@dataclass(frozen=True)
class RejectLimit:
    """How many records of a table may be rejected, or rows deleted: so many, or so many of a
    hundred."""

    rows: int | None = None
    percent: float = 0.1

    def allows(self, rejected: int, of: int) -> bool:
        """Return whether so many records of a load may be rejected."""
        if self.rows is not None:
            return rejected <= self.rows
        return rejected * 100 <= of * self.percent

    def __str__(self) -> str:
        return f"{self.percent:g} %" if self.rows is None else f"{self.rows:,}"


REJECT_LIMIT = RejectLimit()
"""Where a document gives none."""
DELETE_LIMIT = RejectLimit(percent=30)
"""The same of `max_deleted`."""


@dataclass(frozen=True)
class RoundLimit:
    """How much of what is new one job reads of a table, at least one file or one value of the
    cursor. None: no limit of this kind."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class CommitAt:
    """From when on new data of a table is loaded at an interval: at so many bytes, or when the
    oldest has waited so many seconds, whichever comes first. None: not for this reason."""

    bytes: int | None = None
    age: float | None = None


@dataclass(frozen=True)
class AppendAgain:
    """What becomes of a load that appends all rows of a source of which an earlier load has rows
    in the table. `instead` is the setting with which each row is loaded once, as an action."""

    policy: OnAppendAgain
    instead: str


@dataclass(frozen=True)
class TableSpec:
    """One source table and the target it is loaded into (names already normalised)."""

    source: str
    schema: str
    table: str
    input: TableInput
    fingerprint: str
    """SHA-256 hex of everything that decides what is loaded and where."""
    columns: ColumnsSpec = ColumnsSpec()
    primary_key: tuple[str, ...] = ()
    where: str | None = None
    deleted_when: str | None = None
    mode: Mode = "APPEND"
    cursor: str | None = None
    """Source column: of several versions of a row, the one with the greatest wins, in a load and
    against the table."""
    deletes: Deletes = "MARK"
    """UPSERT: a row that `deleted_when` marks, or that the source no longer has, stays, marked, or
    is removed from the table."""
    max_deleted: RejectLimit | None = None
    """How many rows of the table may be deleted because the source no longer has their keys. None:
    keys are not compared."""
    partition_by: tuple[PartitionField, ...] | None = None
    """None: not given. A table that exists then keeps its partition spec."""
    table_properties: dict[str, str] | None = None
    """At creation; they override those of the destination."""
    bloom_filters: tuple[str, ...] = ()
    """Source columns for which data files have bloom filters."""
    schema_changes: SchemaChanges | None = None
    """None: as the job says."""
    on_type_conflict: OnTypeConflict | None = None
    """None: as the job says."""
    on_bad_value: OnBadValue | None = None
    """None: as the job says."""
    max_rejected: RejectLimit | None = None
    """None: as the job says."""
    on_same_key: OnSameKey | None = None
    """UPSERT: what rows of one load with the same key are. None: an error where the document names
    the key of a table of a database, else a warning."""
    append_again: AppendAgain | None = None
    """None: no row is appended twice, or it was asked for."""
    round_limit: RoundLimit | None = None
    """Of an incremental table. None: a job reads all that is new."""
    commit_at: CommitAt | None = None
    """Of an incremental table. None: the next round loads what is new."""
    input_bytes: int | None = None
    """About how much a load reads, None: not known. It decides which tables start first."""
    inspected: Any = field(default=None, repr=False)
    """What the inspection before Spark started has read of the table, in the shape that its format
    has for it: it is not read again. None: nothing."""

    @property
    def retries(self) -> str | None:
        """The job whose rejected records are read again; None where files are read."""
        return self.input.job if isinstance(self.input, RejectedInput) else None

    @property
    def names_database_key(self) -> bool:
        """True for a table of a database whose `primary_key` the document names."""
        read = self.input
        return isinstance(read, JdbcInput) and read.query is None and read.key is None

    @property
    def target(self) -> str:
        """`schema.table`, or the table alone when the schema is blank."""
        return f"{self.schema}.{self.table}" if self.schema else self.table


@dataclass(frozen=True)
class RunOptions:
    """How this run loads its tables, whatever an earlier one has recorded."""

    reload: bool = False
    """Load everything again, whatever the state says, and keep what is there."""
    full_refresh: bool = False
    """OVERWRITE and UPSERT replace the whole table in one snapshot, whatever the state says."""
    limit: int | None = None
    """Load at most so many rows of a table."""
    table_handling: TableHandling = "FAIL"
    """What the first run of a pipeline does with a table that others have loaded."""
    since: str | None = None
    """Load the rows of a database from this value of `cursor` on, whatever the state says."""

    @property
    def starts_over(self) -> bool:
        """Whether all of the source is read, whatever the state says."""
        return self.reload or self.full_refresh


NO_OPTIONS = RunOptions()


@dataclass(frozen=True)
class RuntimeSpec:
    """What a job has to know of the place where it runs; it never asks Spark for its master."""

    tasks_share_driver: bool = True
    """Tasks run on the driver's machine: they see its files and have its environment."""
    tasks_retried: bool = False
    """Spark runs a task that failed again."""


@dataclass(frozen=True)
class JobSpec:
    """Everything one attempt needs: launch writes it, the job reads it."""

    contract: int
    pipeline: str
    job_id: str
    attempt_id: str
    synced: datetime
    destination: DestinationSpec
    tables: tuple[TableSpec, ...]
    events_path: str
    result_path: str
    concurrency: int = 4
    options: RunOptions = RunOptions()
    reader: ReaderChoice = "AUTO"
    """Who reads where there is a choice; DIRECT refuses tables that only Spark can read."""
    nested: Nested = "NATIVE"
    on_bad_value: OnBadValue = "FAIL"
    max_rejected: RejectLimit = REJECT_LIMIT
    """With `on_bad_value` QUARANTINE."""
    schema_changes: SchemaChanges = "ADD_COLUMNS"
    on_type_conflict: OnTypeConflict = "FAIL"
    tracking_columns: tuple[str, ...] = TRACKING_COLUMNS
    author: str = ""
    """The process that started the job (`core.authors`)."""
    dead_attempts: tuple[str, ...] = ()
    """Attempts of this machine that ended without a result: nobody works on their branches."""
    format_jars: bool = True
    """Spark has the jars of the table format: what only its Java code can do, it can."""
    runtime: RuntimeSpec = RuntimeSpec()
    job: JobName = "load"
    """Which of the jobs it is: the module of that name in `lakeload_jobs.jobs`."""
    maintain: MaintainSpec | None = None
    """With `job` maintain: what is done with the tables."""

    def schema_changes_of(self, table: TableSpec) -> SchemaChanges:
        """Return what becomes of changed columns of a table."""
        return table.schema_changes or self.schema_changes

    def on_bad_value_of(self, table: TableSpec) -> OnBadValue:
        """Return what becomes of bad values and broken records of a table."""
        return table.on_bad_value or self.on_bad_value

    def max_rejected_of(self, table: TableSpec) -> RejectLimit:
        """Return how many records of a table may be rejected. Those that are read again are
        rejected already: any number stays so."""
        own = table.max_rejected or self.max_rejected
        return own if table.retries is None else RejectLimit(percent=100)

    def on_type_conflict_of(self, table: TableSpec) -> OnTypeConflict:
        """Return what becomes of values whose type a column of the table cannot take."""
        return table.on_type_conflict or self.on_type_conflict

    @property
    def label(self) -> str:
        """What the job's AWS sessions are called after: the command, and the attempt."""
        return f"{'sync' if self.job == 'load' else self.job}-{self.attempt_id}"
