"""JobSpec: one `sync`, fully resolved. The job applies no defaults and reads no environment
but for the secrets named here; it holds references only, never a secret's value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakeload_jobs.contract.secrets import SecretReference

CONTRACT_VERSION = 1

TRACKING_COLUMNS = ("_supa_synced", "_supa_deleted", "_supa_index", "_supa_id", "_supa_job_id")

PartitionStrategy = Literal["NONE", "DAY", "HOUR", "SYNC_ID"]
FileFormat = Literal["CSV", "JSON", "NDJSON", "PARQUET", "ORC", "AVRO"]
TableHandling = Literal["FAIL", "APPEND"]
Nested = Literal["JSON", "NATIVE"]
OnBadValue = Literal["FAIL", "NULL"]
SchemaChanges = Literal["EVOLVE", "ADD_COLUMNS", "FAIL"]


@dataclass(frozen=True)
class CredentialsSpec:
    """How to become the identity that writes (DESIGN section 8).

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
    """Layout of a Parquet destination (F29-F37)."""

    partition_strategy: PartitionStrategy = "HOUR"
    file_name_pattern: str = "part-{supa_job_id}-{seq}"
    upload_parallelism: int = 5
    update_glue_catalog: bool = False
    """Each table is one in Glue too; schemas, tables and columns are then in lower case (F28)."""
    partition_projection: bool = False
    """Athena computes the partitions; none are registered. With `update_glue_catalog` only."""


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
    """The first part of Glue's database names as written; targets hold it already (F54)."""


@dataclass(frozen=True)
class FilesInput:
    """Files of one table: where they are, and the reader options as the user gave them.

    `paths` are absolute paths or globs of this machine, or `s3://bucket/key` with globs in the key.
    """

    format: FileFormat
    paths: tuple[str, ...]
    options: dict[str, str]
    incremental: bool = False
    """Load only files that no earlier job of this pipeline has loaded."""
    credentials: CredentialsSpec | None = None
    """The identity that reads `s3://` paths; None is the destination's."""
    folder: str = ""
    """The document's folder: files below it are remembered by their path from there."""


@dataclass(frozen=True)
class ColumnsSpec:
    """Column selection, in source names. `types` are Spark SQL type strings."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rename: dict[str, str] | None = None
    types: dict[str, str] | None = None


@dataclass(frozen=True)
class TableSpec:
    """One source table and the target it is loaded into (names already normalised)."""

    source: str
    schema: str
    table: str
    input: FilesInput
    fingerprint: str
    """SHA-256 hex of everything that decides what is loaded and where."""
    columns: ColumnsSpec = ColumnsSpec()
    primary_key: tuple[str, ...] = ()
    where: str | None = None
    deleted_when: str | None = None

    @property
    def target(self) -> str:
        """`schema.table`, or the table alone when the schema is blank."""
        return f"{self.schema}.{self.table}" if self.schema else self.table


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
    limit: int | None = None
    table_handling: TableHandling = "FAIL"
    nested: Nested = "NATIVE"
    on_bad_value: OnBadValue = "FAIL"
    schema_changes: SchemaChanges = "ADD_COLUMNS"
    tracking_columns: tuple[str, ...] = TRACKING_COLUMNS
    reload: bool = False
    """Load everything again, whatever the state says, and keep what is there."""
    author: str = ""
    """`user@host` that started the job."""
