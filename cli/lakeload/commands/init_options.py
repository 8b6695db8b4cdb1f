"""The flags of `lakeload init`: one for each question it asks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

_DESTINATION, _CATALOG, _SOURCE = "Destination", "Catalog", "Source"


def _option(name: str, about: str, metavar: str, panel: str) -> Any:
    return typer.Option(
        name, help=about, metavar=metavar, rich_help_panel=panel, show_default=False
    )


Text = str | None

Folder = Annotated[Path, typer.Argument(help="Where to write; made if it is not there.")]
Bucket = Annotated[Text, _option("--bucket", "The S3 bucket.", "NAME", _DESTINATION)]
Region = Annotated[Text, _option("--region", "Its region.", "NAME", _DESTINATION)]
Prefix = Annotated[Text, _option("--prefix", "The path below the bucket.", "PATH", _DESTINATION)]
EndpointUrl = Annotated[
    Text, _option("--endpoint-url", "An S3-compatible store.", "URL", _DESTINATION)
]
Identity = Annotated[
    Text,
    _option(
        "--credentials",
        "ROLE, KEYS, PROFILE, or DEFAULT for AWS's default chain.",
        "KIND",
        _DESTINATION,
    ),
]
RoleArn = Annotated[Text, _option("--role-arn", "ROLE: the role.", "ARN", _DESTINATION)]
Profile = Annotated[
    Text,
    _option(
        "--profile", "PROFILE: its name. ROLE: the profile that assumes it.", "NAME", _DESTINATION
    ),
]
TableFormat = Annotated[Text, _option("--table-format", "PARQUET, ICEBERG.", "NAME", _DESTINATION)]
Glue = Annotated[
    bool | None,
    typer.Option(
        "--glue/--no-glue",
        help="PARQUET: register the tables in AWS Glue.",
        rich_help_panel=_CATALOG,
        show_default=False,
    ),
]
Catalog = Annotated[
    Text,
    _option("--catalog", "ICEBERG: GLUE, REST, NESSIE, SNOWFLAKE_OPEN_CATALOG.", "NAME", _CATALOG),
]
CatalogUri = Annotated[Text, _option("--catalog-uri", "Where it answers.", "URL", _CATALOG)]
CatalogName = Annotated[
    Text,
    _option("--catalog-name", "SNOWFLAKE_OPEN_CATALOG: the catalog's name.", "NAME", _CATALOG),
]
CatalogAuth = Annotated[
    Text,
    _option(
        "--catalog-auth",
        "REST: CREDENTIAL, TOKEN, SIGV4, NONE. NESSIE: TOKEN, NONE.",
        "KIND",
        _CATALOG,
    ),
]
Warehouse = Annotated[Text, _option("--warehouse", "REST: the warehouse.", "NAME", _CATALOG)]
GluePrefix = Annotated[
    Text,
    _option(
        "--glue-prefix", "The first part of Glue database names; else supaflow.", "TEXT", _CATALOG
    ),
]
SourcePath = Annotated[
    Text,
    _option("--path", "Files of the first table: a path, glob or s3:// URL.", "PATH", _SOURCE),
]
SourceFormat = Annotated[
    Text,
    _option(
        "--source",
        "CSV, JSON, NDJSON, PARQUET, ORC, AVRO; else what the path ends with.",
        "FORMAT",
        _SOURCE,
    ),
]
TableName = Annotated[
    Text, _option("--table", "The table's name; else from the path.", "NAME", _SOURCE)
]
Mode = Annotated[Text, _option("--mode", "ICEBERG: APPEND, OVERWRITE, UPSERT.", "NAME", _SOURCE)]
PrimaryKey = Annotated[
    Text, _option("--primary-key", "UPSERT: the columns that identify a row.", "A,B", _SOURCE)
]
PipelineName = Annotated[
    Text, _option("--name", "The pipeline's name; else the folder's.", "NAME", _SOURCE)
]
NoInput = Annotated[bool, typer.Option("--no-input", help="Ask nothing, at a terminal either.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite documents that are there.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")
]
