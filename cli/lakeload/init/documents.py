"""Choices of the user, and the configuration files that `init` writes from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from jinja2 import Environment, FunctionLoader, StrictUndefined

from lakeload.documents.destination import own_store
from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.iceberg_rules import CATALOG_SETTINGS
from lakeload.init.table_settings import (
    TableFiles,
    shared_source,
    source_lines,
    table_lines,
    yaml_text,
)
from lakeload_jobs.contract.spec import CatalogType, TableFormat
from lakeload_jobs.contract.traits import CATALOGS, FORMATS, CatalogTraits, FormatTraits
from lakeload_jobs.core.names import normalize
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS

if TYPE_CHECKING:
    from lakeload.init.database import Database

DESTINATION, PIPELINE = "destination.yml", "pipeline.yml"
DOTENV, GITIGNORE = ".env", ".gitignore"


def documents(
    answers: Answers,
    tables: Sequence[TableFiles] = (),
    database: Database | None = None,
    *,
    key_files: str = "",
) -> dict[str, str]:
    """Return the text of each document by its file's name. `tables` are those whose files were
    inspected; without, there is one, as the answers have it, unless they are in a `database`.
    `key_files`: the folder with the keys of the lake on this machine, a file for each."""
    given = asdict(answers)
    tables = tables or (_one_table(answers),)
    shared = shared_source(tables)
    traits, catalog = format_traits(given), catalog_traits(given)
    given_format = FILE_FORMATS.get(shared.format)
    has_key = [not table.lacking(key_columns(answers)) for table in tables]
    facts = {
        **given,
        "in_glue": in_glue(given),
        "format": traits,
        "block": FORMAT_RULES[traits.name].BLOCK,
        "settings": catalog_settings(given),
        "own_store": own_store(answers.endpoint_url or ""),
        "located": catalog is not None and catalog.located,
        "source_lines": list(source_lines(shared)),
        "tables": [
            (list(table_lines(table, shared)), keyed)
            for table, keyed in zip(tables, has_key, strict=True)
        ],
        # A table that is replaced needs all files each time.
        "incremental": answers.mode != "OVERWRITE" and (answers.mode != "UPSERT" or all(has_key)),
        "database": database,
        "often_set": () if given_format is None else given_format.often_set,
        "schema": normalize(answers.name),
        "keys": key_columns(answers),
        "key_files": key_files,
    }
    return {
        name: _environment().get_template(f"{name}.jinja").render(facts)
        for name in (DESTINATION, PIPELINE)
    }


def key_columns(answers: Answers) -> list[str]:
    """Return the columns that `primary_key` names."""
    return [key.strip() for key in answers.primary_key.split(",") if key.strip()]


@cache
def _environment() -> Environment:
    # What is written is YAML: values go through a filter of that.
    environment = Environment(  # noqa: S701
        loader=FunctionLoader(lambda name: (files(__package__) / name).read_text("utf-8")),
        line_statement_prefix="%",
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters["yaml"] = yaml_text
    return environment


def _one_table(answers: Answers) -> TableFiles:
    given_format = FILE_FORMATS.get(answers.source)
    options = {} if given_format is None else given_format.usual_options
    return TableFiles(answers.table, (answers.path,), answers.source, options)


@dataclass(frozen=True)
class Answers:
    """One answer to each question; '' where a question does not apply or has no answer.

    Choices are in upper case, as the documents have them. `path` is as pipeline.yml needs it.
    """

    name: str
    local: str = "NO"
    bucket: str = ""
    region: str = ""
    path: str = ""
    source: str = ""
    table: str = ""
    from_url: str = ""
    table_format: str = "PARQUET"
    prefix: str = ""
    endpoint_url: str = ""
    credentials: str = "DEFAULT"
    role_arn: str = ""
    profile: str = ""
    glue: str = "NO"
    catalog: str = ""
    catalog_uri: str = ""
    catalog_name: str = ""
    catalog_auth: str = ""
    warehouse: str = ""
    glue_prefix: str = ""
    mode: str = ""
    primary_key: str = ""
    """Columns with commas between them."""


Given = Mapping[str, str]
"""Answers so far, by the names of the questions."""


def format_traits(given: Given) -> FormatTraits:
    """Return what the tables' format is like."""
    return FORMATS[cast(TableFormat, given["table_format"])]


def catalog_traits(given: Given) -> CatalogTraits | None:
    """Return what the type of catalog is like, None without a catalog."""
    return CATALOGS.get(cast(CatalogType, given.get("catalog", "")))


def in_glue(given: Given) -> bool:
    """Whether tables are registered in AWS Glue."""
    traits = catalog_traits(given)
    return given.get("glue") == "YES" or (traits is not None and traits.in_glue)


def catalog_settings(given: Given) -> tuple[str, ...]:
    """Return the settings that the type of catalog has."""
    catalog = given.get("catalog", "")
    return CATALOG_SETTINGS[cast(CatalogType, catalog)].names if catalog else ()


@dataclass(frozen=True)
class Variable:
    """An environment variable that a document refers to, and what belongs into it."""

    name: str
    about: str


VARIABLES = {
    "credentials.external_id": Variable(
        "LAKELOAD_EXTERNAL_ID", "The ExternalId that the role's trust policy requires."
    ),
    "credentials.access_key_id": Variable("LAKELOAD_ACCESS_KEY_ID", "The id of the access key."),
    "credentials.secret_access_key": Variable(
        "LAKELOAD_SECRET_ACCESS_KEY", "The secret access key."
    ),
    "iceberg.catalog.client_id": Variable(
        "LAKELOAD_CLIENT_ID", "The client id of the service connection."
    ),
    "iceberg.catalog.client_secret": Variable(
        "LAKELOAD_CLIENT_SECRET", "The secret of the service connection."
    ),
    "iceberg.catalog.credential": Variable(
        "LAKELOAD_CATALOG_CREDENTIAL", "CLIENT_ID:CLIENT_SECRET of the catalog."
    ),
    "iceberg.catalog.token": Variable("LAKELOAD_CATALOG_TOKEN", "The catalog's bearer token."),
}
"""The variable for each secret setting of a destination, in the order of the destination."""


def variables(answers: Answers) -> tuple[Variable, ...]:
    """Return the variables that the documents refer to, in the order of the destination."""
    if answers.local == "YES":
        return ()
    role, keys = answers.credentials == "ROLE", answers.credentials == "KEYS"
    client = "client_id" in catalog_settings(asdict(answers))
    needed = {
        "credentials.external_id": role,
        "credentials.access_key_id": keys,
        "credentials.secret_access_key": keys,
        "iceberg.catalog.client_id": client,
        "iceberg.catalog.client_secret": client,
        "iceberg.catalog.credential": answers.catalog_auth == "CREDENTIAL",
        "iceberg.catalog.token": answers.catalog_auth == "TOKEN",
    }
    return tuple(variable for path, variable in VARIABLES.items() if needed[path])
