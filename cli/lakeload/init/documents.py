"""The documents that `init` writes, from the templates beside this module."""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.init.answers import Answers, yaml_text
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
