"""What to ask of Parquet files in DuckDB, without any catalog. Pure.

https://duckdb.org/docs/stable/core_extensions/httpfs/s3api and …/core_extensions/aws
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from lakeload.policy.engines.lake_files import path_style
from lakeload.policy.engines.table_queries import shared_queries
from lakeload.policy.text.snippets import Snippet, name, text
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.core.layout import TableLocation, partition_path

BUCKET_ACCESS = "lakeload"
"""What DuckDB calls the access to the bucket."""


def duckdb_access(destination: DestinationSpec) -> Snippet:
    """Return the statements that let DuckDB read the bucket with this machine's credentials."""
    settings = ["TYPE s3", "PROVIDER credential_chain", f"REGION {text(destination.region)}"]
    if endpoint := destination.endpoints.s3:
        parts = urlsplit(endpoint)
        settings += [
            f"ENDPOINT {text(parts.netloc.rpartition('@')[2])}",
            f"URL_STYLE {text('path' if path_style(destination) else 'vhost')}",
            f"USE_SSL {'true' if parts.scheme == 'https' else 'false'}",
        ]
    settings.append(f"SCOPE {text(f's3://{destination.bucket}')}")
    inner = ",\n".join(f"  {setting}" for setting in settings)
    return Snippet(
        "access to the bucket",
        f"INSTALL httpfs;\nLOAD httpfs;\nINSTALL aws;\nLOAD aws;\n"
        f"CREATE OR REPLACE SECRET {BUCKET_ACCESS} (\n{inner}\n);",
        "The credentials are those the AWS command line would use here; no secret is written.",
    )


def duckdb_queries(
    destination: DestinationSpec, table: TableSpec, tracking: Sequence[str], *, now: datetime
) -> tuple[Snippet, ...]:
    """Return a view of one table's files and statements over it; `now` ends the example range."""
    path = TableLocation(destination.prefix, table.schema, table.table).data_path
    relation = name(table.schema, table.table)
    return (
        duckdb_view(table, f"s3://{destination.bucket}/{path}"),
        Snippet(
            f"{table.target}: its columns",
            f"DESCRIBE {relation};",
            "Names and types as they are in the files; a column that a file lacks is null there.",
        ),
        *shared_queries(table, relation, tracking),
        *_files_of_a_partition(destination, table, path, now),
    )


def duckdb_view(table: TableSpec, location: str) -> Snippet:
    """Return the view over all files below `location`, a URL or a folder with a final slash."""
    schema = f"CREATE SCHEMA IF NOT EXISTS {name(table.schema)};\n" if table.schema else ""
    files = text(f"{location}**/*{FILE_SUFFIX}")
    return Snippet(
        f"{table.target}: a view of its files",
        f"{schema}CREATE OR REPLACE VIEW {name(table.schema, table.table)} AS\n"
        f"SELECT *\nFROM read_parquet(\n  {files},\n  union_by_name = true\n);",
        "Files become visible when their load is committed, so the view shows whole loads, but "
        "for the moment in which the files of one load appear one after the other.",
    )


def _files_of_a_partition(
    destination: DestinationSpec, table: TableSpec, path: str, now: datetime
) -> tuple[Snippet, ...]:
    strategy = destination.parquet.partition_strategy
    if strategy == "NONE":
        return ()
    folder = partition_path(strategy, now, "<JOB_ID>")
    files = text(f"s3://{destination.bucket}/{path}{folder}/*{FILE_SUFFIX}")
    return (
        Snippet(
            f"{table.target}: the files of one partition",
            f"SELECT *\nFROM read_parquet(\n  {files},\n  union_by_name = true\n);",
            "The folder is the id of the load's job. No others are listed."
            if strategy == "SYNC_ID"
            else "The folder is the UTC time of the load. No others are listed.",
        ),
    )
