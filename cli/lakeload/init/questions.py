"""The questions of `init`: which apply, what they take, and what is taken for granted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast, get_args

from lakeload.config.credentials import Credentials
from lakeload.documents.destination import Destination
from lakeload.documents.iceberg import Catalog
from lakeload.documents.pipeline import Pipeline, Table
from lakeload.init.answers import has_setting, in_glue
from lakeload_jobs.contract.spec import CatalogType, FileFormat, Mode, TableFormat
from lakeload_jobs.contract.traits import FORMATS, FormatTraits

Given = Mapping[str, str]
"""Answers so far, by the names of the questions."""

_FORMATS: dict[str, str] = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".json": "JSON",
    ".jsonl": "NDJSON",
    ".ndjson": "NDJSON",
    ".parquet": "PARQUET",
    ".orc": "ORC",
    ".avro": "AVRO",
}
_AUTH: Mapping[str, tuple[str, ...]] = {
    "REST": ("CREDENTIAL", "TOKEN", "SIGV4", "NONE"),
    "NESSIE": ("NONE", "TOKEN"),
}
"""How the types of catalog that leave a choice can be told who asks; the first is the default."""
_COMPRESSED = (".gz", ".gzip", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")


@dataclass(frozen=True)
class Question:
    """One choice. `name` is the field of `Answers`; a default of None makes it a required one."""

    name: str
    help: str
    metavar: str
    """'' for a flag without a value."""
    text: str
    applies: Callable[[Given], bool] = lambda given: True
    choices: Callable[[Given], tuple[str, ...]] = lambda given: ()
    default: Callable[[Given], str | None] = lambda given: None
    may_be_empty: bool = False
    asked: bool = True
    """Whether it is asked at a terminal; else there is the flag alone."""
    follows: str = ""
    """The question whose answer mostly decides this one."""
    setting: tuple[type[Any], str] | None = None
    """The model and field that the answer becomes, whose rules it has to meet."""

    @property
    def flag(self) -> str:
        """The option that answers it."""
        return f"--{self.name.replace('_', '-')}"


def _is(name: str, *values: str) -> Callable[[Given], bool]:
    return lambda given: given.get(name) in values


def _one_of(*values: str) -> Callable[[Given], tuple[str, ...]]:
    return lambda given: values


def _always(value: str) -> Callable[[Given], str | None]:
    return lambda given: value


def _format_is(like: Callable[[FormatTraits], bool]) -> Callable[[Given], bool]:
    return lambda given: like(FORMATS[cast(TableFormat, given["table_format"])])


def _catalog_has(setting: str) -> Callable[[Given], bool]:
    return lambda given: has_setting(given.get("catalog", ""), setting)


def _credentials(given: Given) -> str | None:
    if given.get("role_arn"):
        return "ROLE"
    if given.get("profile"):
        return "PROFILE"
    return "KEYS" if given.get("endpoint_url") else "DEFAULT"


def _profile(given: Given) -> str | None:
    return None if given["credentials"] == "PROFILE" else ""


def _in_glue(given: Given) -> bool:
    return given.get("glue") == "YES" or in_glue(given.get("catalog", ""))


def _auth_choices(given: Given) -> tuple[str, ...]:
    return _AUTH[given["catalog"]]


def _auth(given: Given) -> str | None:
    return _auth_choices(given)[0]


def format_of(path: str) -> str | None:
    """Return the format that a path's ending tells, None where it tells none."""
    name = path.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return _FORMATS.get(PurePosixPath(name).suffix)


def table_of(path: str) -> str:
    """Return a table's name from a path: its last part with letters that is no pattern."""
    for part in reversed(path.removeprefix("s3://").split("/")):
        name = re.sub(r"[*?{\[].*", "", part).split(".")[0].strip("-_. ")
        if re.search("[^\\W\\d_]", name):
            return name
    return "table"


_DESTINATION = (
    Question("bucket", "The S3 bucket.", "NAME", "S3 bucket", setting=(Destination, "bucket")),
    Question(
        "region", "Its region.", "NAME", "Region of the bucket, such as us-east-1",
        setting=(Destination, "region"),
    ),
    Question(
        "prefix", "The path below the bucket.", "PATH", "Path below the bucket, empty for its root",
        default=_always(""), may_be_empty=True, setting=(Destination, "prefix"),
    ),
    Question(
        "endpoint_url", "An S3-compatible store.", "URL", "URL of an S3-compatible store",
        default=_always(""), may_be_empty=True, asked=False, setting=(Destination, "endpoint_url"),
    ),
    Question(
        "credentials", "ROLE, KEYS, PROFILE, or DEFAULT for AWS's default chain.", "KIND",
        "Identity: a role, keys, a profile, or AWS's default chain",
        choices=_one_of("ROLE", "KEYS", "PROFILE", "DEFAULT"), default=_credentials,
    ),
    Question(
        "role_arn", "ROLE: the role.", "ARN", "ARN of the role", applies=_is("credentials", "ROLE"),
        setting=(Credentials, "role_arn"),
    ),
    Question(
        "profile", "PROFILE: its name. ROLE: the profile that assumes it.", "NAME",
        "Profile of the AWS configuration", applies=_is("credentials", "PROFILE", "ROLE"),
        default=_profile, setting=(Credentials, "profile"),
    ),
    Question(
        "table_format", "PARQUET, ICEBERG.", "NAME", "Format of the tables",
        choices=_one_of(*get_args(TableFormat)), default=_always("PARQUET"),
    ),
)  # fmt: skip
_CATALOG = (
    Question(
        "glue", "PARQUET: register the tables in AWS Glue.", "",
        "Register the tables in AWS Glue, for Athena", applies=_is("table_format", "PARQUET"),
        choices=_one_of("YES", "NO"), default=_always("NO"),
    ),
    Question(
        "catalog", "ICEBERG: GLUE, REST, NESSIE, SNOWFLAKE_OPEN_CATALOG.", "NAME",
        "Iceberg catalog", applies=_format_is(lambda traits: traits.has_catalog),
        choices=_one_of(*get_args(CatalogType)), default=_always("GLUE"),
    ),
    Question(
        "catalog_uri", "Where it answers.", "URL", "URL of the catalog",
        applies=_catalog_has("uri"),
        setting=(Catalog, "uri"),
    ),
    Question(
        "catalog_name", "SNOWFLAKE_OPEN_CATALOG: the catalog's name.", "NAME",
        "Name of the catalog in Open Catalog", applies=_catalog_has("catalog_name"),
        setting=(Catalog, "catalog_name"),
    ),
    Question(
        "catalog_auth", "REST: CREDENTIAL, TOKEN, SIGV4, NONE. NESSIE: TOKEN, NONE.", "KIND",
        "How the catalog knows lakeload", applies=_catalog_has("token"),
        choices=_auth_choices, default=_auth,
    ),
    Question(
        "warehouse", "REST: the warehouse.", "NAME",
        "Warehouse in the catalog, empty if it has one only", applies=_catalog_has("warehouse"),
        default=_always(""), may_be_empty=True,
    ),
    Question(
        "glue_prefix", "The first part of Glue database names; else supaflow.", "TEXT",
        "First part of Glue database names", applies=_in_glue, default=_always("supaflow"),
        may_be_empty=True, setting=(Destination, "glue_database_prefix"),
    ),
)  # fmt: skip
_SOURCE = (
    Question(
        "path", "Files of the first table: a path, glob or s3:// URL.", "PATH",
        "Files of the first table: a path, glob or s3:// URL",
    ),
    Question(
        "source", "CSV, JSON, NDJSON, PARQUET, ORC, AVRO; else what the path ends with.", "FORMAT",
        "Format of these files", choices=_one_of(*get_args(FileFormat)),
        default=lambda given: format_of(given.get("path", "")), follows="path",
    ),
    Question(
        "table", "The table's name; else from the path.", "NAME", "Name of the table",
        default=lambda given: table_of(given.get("path", "")), setting=(Table, "table"),
    ),
    Question(
        "mode", "ICEBERG: APPEND, OVERWRITE, UPSERT.", "NAME",
        "What a load does to the table: add rows, replace all, or by their key",
        applies=_format_is(lambda traits: not traits.append_only), choices=_one_of(*get_args(Mode)),
        default=_always("APPEND"),
    ),
    Question(
        "primary_key", "UPSERT: the columns that identify a row.", "A,B",
        "Columns that identify a row, with commas between them", applies=_is("mode", "UPSERT"),
    ),
    Question(
        "name", "The pipeline's name; else the folder's.", "NAME", "Name of the pipeline",
        setting=(Pipeline, "name"),
    ),
)  # fmt: skip
PANELS = {"Destination": _DESTINATION, "Catalog": _CATALOG, "Source": _SOURCE}
"""The questions by the part of the help that lists their flags."""
QUESTIONS = (*_DESTINATION, *_CATALOG, *_SOURCE)
"""In the order they are asked; each sees the answers of those before it."""
