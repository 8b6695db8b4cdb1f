"""Templates of snippets: one `ENGINE.jinja` for each query engine, beside this module.

`### title` begins a snippet of SQL, `###sh title` one of another language. Lines that begin with
`> ` say what it is for; they are joined, and a lone `>` ends a paragraph. `$ ` begins a command to
run with the result. Everything else is the text to copy. Lines that begin with `%` are Jinja's.
"""

from __future__ import annotations

import json
import re
import shlex
from functools import cache, partial
from importlib.resources import files
from typing import Any, cast
from urllib.parse import urlsplit

from jinja2 import Environment, FunctionLoader, StrictUndefined

from lakeload.policy.engines import snippets
from lakeload.policy.engines.snippets import Language, Snippet
from lakeload.policy.render import hcl
from lakeload_jobs.core.aws_partitions import partition
from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.core.layout import partition_path
from lakeload_jobs.core.names import PARTITION_KEY
from lakeload_jobs.formats.iceberg.rules.catalogs import rest_uri, token_uri
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_JOB, SUMMARY_ROWS
from lakeload_jobs.formats.parquet.glue.tables import projection_parameters

_MARKS = (
    (re.compile(r"^###(\S*) (.*)$", re.MULTILINE), "\x01\\1\x02\\2\x02"),
    (re.compile(r"^>(?: (.*))?$", re.MULTILINE), "\x03\\1\x04"),
    (re.compile(r"^\$ ", re.MULTILINE), "\x05"),
)
"""Set before anything is filled in, so that no value is taken for a mark."""

_WHY = re.compile("\x03(.*?)\x04", re.DOTALL)


_GLOBALS = {
    "LAKE": "lake",  # what engines with several catalogs call this one
    "ANY_SNAPSHOT": "1234567890123456789",
    "METADATA_LOCATION": "`SELECT file FROM lake.SCHEMA.TABLE.metadata_log_entries "
    "ORDER BY timestamp DESC LIMIT 1` tells in Spark.",
    "FILE_SUFFIX": FILE_SUFFIX,
    "PARTITION_KEY": PARTITION_KEY,
    "SUMMARY_JOB": SUMMARY_JOB,
    "SUMMARY_ROWS": SUMMARY_ROWS,
    "name": snippets.name,
    "ddl_name": snippets.ddl_name,
    "text": snippets.text,
    "ddl_text": snippets.ddl_text,
    "words": snippets.words,
    "partition": partition,
    "partition_path": partition_path,
    "projection_parameters": projection_parameters,
    "rest_uri": rest_uri,
    "token_uri": token_uri,
    "urlsplit": urlsplit,
}
_FILTERS = {
    "commas": lambda lines: ",\n".join(lines.strip("\n").split("\n")) + "\n",
    "compact_json": partial(json.dumps, separators=(",", ":")),
    "hcl": hcl.string,
    "json": partial(json.dumps, indent=2, ensure_ascii=False),
    "p": snippets.properties_value,
    "py": partial(json.dumps, ensure_ascii=False),
    "sf": snippets.snowflake_text,
    "sh": shlex.quote,
}


def render(template: str, facts: dict[str, Any]) -> tuple[Snippet, ...]:
    """Return the snippets of a template; `facts` are what it is written from."""
    filled = _environment().get_template(f"{template}.jinja").render(facts)
    return tuple(_snippet(part) for part in filled.split("\x01")[1:])


def _snippet(part: str) -> Snippet:
    language, title, rest = part.split("\x02")
    body, *commands = rest.split("\x05")
    paragraphs = " ".join(line or "\n" for line in _WHY.findall(body)).split(" \n ")
    return Snippet(
        title,
        _WHY.sub("", body).strip("\n"),
        "\n".join(paragraphs),
        cast("Language", language or "sql"),
        tuple(command.strip("\n") for command in commands),
    )


@cache
def _environment() -> Environment:
    # What is written is SQL, Python or a shell's: every value goes through a filter of that.
    made = Environment(  # noqa: S701
        loader=FunctionLoader(_marked),
        undefined=StrictUndefined,
        line_statement_prefix="%",
        trim_blocks=True,
    )
    made.globals |= _GLOBALS
    made.filters |= _FILTERS
    return made


def _marked(name: str) -> str:
    source = (files(__package__) / name).read_text(encoding="utf-8")
    for pattern, mark in _MARKS:
        source = pattern.sub(mark, source)
    return source
