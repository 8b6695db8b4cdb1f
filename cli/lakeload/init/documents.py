"""What a user has chosen, and the documents that `init` writes of it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import cast

from jinja2 import Environment, FunctionLoader, StrictUndefined

from lakeload.config.document import resolved
from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.iceberg_rules import CATALOG_SETTINGS
from lakeload_jobs.contract.spec import CatalogType, TableFormat
from lakeload_jobs.contract.traits import CATALOGS, FORMATS, FormatTraits
from lakeload_jobs.core.names import normalize

DESTINATION, PIPELINE, DOTENV, GITIGNORE = (
    "destination.yml",
    "pipeline.yml",
    ".env",
    ".gitignore",
)


def documents(answers: Answers) -> dict[str, str]:
    """Return the text of each document by its file's name."""
    facts = {
        **asdict(answers),
        "in_glue": answers.in_glue,
        "format": answers.format,
        "block": FORMAT_RULES[answers.format.name].BLOCK,
        "settings": answers.catalog_settings,
        "located": answers.located,
        "schema": normalize(answers.name),
        "keys": [key.strip() for key in answers.primary_key.split(",") if key.strip()],
    }
    # What is written is YAML: values go through a filter of that.
    environment = Environment(  # noqa: S701
        loader=FunctionLoader(lambda name: (files(__package__) / name).read_text("utf-8")),
        line_statement_prefix="%",
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters["yaml"] = yaml_text
    return {
        name: environment.get_template(f"{name}.jinja").render(facts)
        for name in (DESTINATION, PIPELINE)
    }


@dataclass(frozen=True)
class Answers:
    """One answer to each question; '' where a question does not apply or has no answer.

    Choices are in upper case, as the documents have them. `path` is as pipeline.yml needs it.
    """

    bucket: str
    region: str
    path: str
    source: str
    table: str
    name: str
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

    @property
    def in_glue(self) -> bool:
        """Whether tables are registered in AWS Glue."""
        return self.glue == "YES" or in_glue(self.catalog)

    @property
    def format(self) -> FormatTraits:
        """What the tables' format is like."""
        return FORMATS[cast(TableFormat, self.table_format)]

    @property
    def located(self) -> bool:
        """Whether the destination may say where tables of the catalog lie."""
        return bool(self.catalog) and CATALOGS[cast(CatalogType, self.catalog)].located

    @property
    def catalog_settings(self) -> tuple[str, ...]:
        """The settings that the type of catalog has."""
        return _settings(self.catalog)


def in_glue(catalog: str) -> bool:
    """Whether tables of this type of catalog, '' for none, are in AWS Glue."""
    return bool(catalog) and CATALOGS[cast(CatalogType, catalog)].in_glue


def has_setting(catalog: str, name: str) -> bool:
    """Whether this type of catalog, '' for none, has a setting of that name."""
    return name in _settings(catalog)


def _settings(catalog: str) -> tuple[str, ...]:
    return CATALOG_SETTINGS[cast(CatalogType, catalog)].names if catalog else ()


@dataclass(frozen=True)
class Variable:
    """An environment variable that a document refers to, and what belongs into it."""

    name: str
    about: str


def variables(answers: Answers) -> tuple[Variable, ...]:
    """Return the variables that the documents refer to, in the order of the destination."""
    found = []
    if answers.credentials == "ROLE":
        found.append(
            Variable("LAKELOAD_EXTERNAL_ID", "The ExternalId that the role's trust policy demands.")
        )
    if answers.credentials == "KEYS":
        found.append(Variable("LAKELOAD_ACCESS_KEY_ID", "The id of the access key."))
        found.append(Variable("LAKELOAD_SECRET_ACCESS_KEY", "The access key itself."))
    if has_setting(answers.catalog, "client_id"):
        found.append(Variable("LAKELOAD_CLIENT_ID", "The client id of the service connection."))
        found.append(Variable("LAKELOAD_CLIENT_SECRET", "The secret of the service connection."))
    if answers.catalog_auth == "CREDENTIAL":
        found.append(
            Variable("LAKELOAD_CATALOG_CREDENTIAL", "CLIENT_ID:CLIENT_SECRET of the catalog.")
        )
    if answers.catalog_auth == "TOKEN":
        found.append(Variable("LAKELOAD_CATALOG_TOKEN", "The catalog's bearer token."))
    return tuple(found)


_PLAIN = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./*@+-]|:(?=[A-Za-z0-9/:]))*")


def yaml_text(value: str) -> str:
    """Return text as YAML: plain where every reader takes it for text, else in double quotes."""
    if _PLAIN.fullmatch(value) and resolved(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)
