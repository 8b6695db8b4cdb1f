"""Templates of everything that `policy` writes, and how values are quoted in each language.

`engines/ENGINE.jinja` holds the snippets for one query engine. `### title` begins a snippet of
SQL, `###sh title` one of another language. Lines that begin with `> ` say what it is for; they are
joined, and a lone `>` ends a paragraph. `$ ` begins a command to run with the result. Everything
else is the text to copy. Lines that begin with `%` are Jinja's, in every template.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from lakeload_jobs.core.aws_partitions import partition
from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.core.layout import partition_path
from lakeload_jobs.core.names import PARTITION_KEY
from lakeload_jobs.formats.iceberg.rules.catalogs import rest_uri, token_uri
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_JOB, SUMMARY_ROWS

if TYPE_CHECKING:
    from jinja2 import Environment, Template

Language = Literal["sql", "sh", "hcl", "json", "properties", "python"]

_COMMENTS = {"sql": "--", "sh": "#", "hcl": "#", "properties": "#", "python": "#"}
_WIDTH = 80
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_ATTRIBUTES = re.compile(r'(?:^ *(?:[\w-]+|"[^" ]*") = .*[^{\[(\n]\n)+', re.MULTILINE)
"""Neighbouring lines of Terraform that set a value which ends there."""
_MARKS = (
    (re.compile(r"^###(\S*) (.*)$", re.MULTILINE), "\x01\\1\x02\\2\x02"),
    (re.compile(r"^>(?: (.*))?$", re.MULTILINE), "\x03\\1\x04"),
    (re.compile(r"^\$ ", re.MULTILINE), "\x05"),
)
"""Set before anything is filled in, so that no value is taken for a mark."""
_WHY = re.compile("\x03(.*?)\x04", re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """Something to copy. `text` runs as it is once every `<PLACEHOLDER>` in it is replaced."""

    title: str
    text: str
    """'' where there is only something to do, which `why` says."""
    why: str
    """What it is for and what to mind; each line is a paragraph."""
    language: Language = "sql"
    commands: tuple[str, ...] = ()
    """What to run in a shell with the result."""

    @property
    def commented(self) -> str:
        """Return title, reason and commands as comments above the text.

        They fit 80 columns, but for long names and commands. JSON has no comments.
        """
        mark = _COMMENTS.get(self.language)
        if mark is None:
            return self.text
        lines = [self.title]
        for paragraph in self.why.splitlines():
            lines += _wrap(paragraph, _WIDTH - 2 - len(mark))
        lines += [line for command in self.commands for line in command.splitlines()]
        comments = [f"{mark} {line}" for line in lines]
        return "\n".join([*comments, self.text] if self.text else comments)


def snippets(engine: str, facts: dict[str, Any]) -> tuple[Snippet, ...]:
    """Return the snippets for an engine; `facts` are what they are written from."""
    filled = template(f"engines/{engine}.jinja").render(facts)
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


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text; lines that are indented stay as they are."""
    lines: list[str] = []
    for line in text.splitlines():
        lines += [line] if line.startswith(" ") else _wrap(line, width) or [""]
    return lines


_wrap = partial(textwrap.wrap, break_long_words=False, break_on_hyphens=False)


def comment(*sentences: str) -> str:
    """Return sentences as comments of at most 80 columns."""
    lines = [line for text in sentences for line in wrapped(text, _WIDTH - 2)]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def name(*parts: str) -> str:
    """Return an identifier as Athena's queries, Snowflake and DuckDB read it: `"a"."b"`.

    Parts that are blank are left out.
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts if part)


def ddl_name(*parts: str) -> str:
    """Return an identifier as Athena's DDL, which is Hive's, reads it."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts if part)


def text(value: str) -> str:
    """Return a SQL string in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def ddl_text(value: str) -> str:
    """Return a string for Athena's DDL: Hive's joins two strings where a quote is doubled."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def snowflake_text(value: str) -> str:
    """Return a string for Snowflake, where a backslash in single quotes begins an escape."""
    return text(value.replace("\\", "\\\\"))


def properties_value(value: str) -> str:
    """Return a value as a Java properties file holds it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def yaml_value(value: object) -> str:
    """Return a value as YAML on one line: JSON in which all but plain letters is escaped."""
    flow = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[^\x20-\x7e]", lambda found: f"\\U{ord(found[0]):08x}", flow)


def hcl(value: object, indent: str = "") -> str:
    """Return a value as Terraform writes it; in strings `${*}` is `$${*}`, and no template."""
    deeper = f"{indent}  "
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        return quoted.replace("${", "$${").replace("%{", "%%{")
    if isinstance(value, Mapping) and value:
        names = [key if _IDENTIFIER.fullmatch(key) else hcl(key) for key in value]
        pairs = zip(names, value.values(), strict=True)
        lines = [f"{deeper}{key} = {hcl(item, deeper)}" for key, item in pairs]
        return "\n".join(["{", *lines, f"{indent}}}"])
    if isinstance(value, Sequence):
        lines = [f"{deeper}{hcl(item, deeper)}," for item in value]
        return "\n".join(["[", *lines, f"{indent}]"])
    return json.dumps(value)


def aligned(text: str) -> str:
    """Return Terraform with the equals signs of neighbouring one-line attributes in one column."""

    def in_one_column(found: re.Match[str]) -> str:
        pairs = [line.split(" = ", 1) for line in found[0].splitlines()]
        width = max(len(name) for name, _ in pairs)
        return "".join(f"{name:<{width}} = {value}\n" for name, value in pairs)

    return _ATTRIBUTES.sub(in_one_column, text)


def label(value: str) -> str:
    """Return text as a name in Terraform: `[a-z0-9_]`."""
    return re.sub("[^a-z0-9_]", "_", value.lower())


def words(value: str) -> str:
    """Return `value` in lower case with everything but letters and digits as one `_`."""
    return re.sub("[^a-z0-9]+", "_", value.lower()).strip("_")


_GLOBALS = {
    "LAKE": "lake",  # what engines with several catalogs call this one
    "ANY_SNAPSHOT": "1234567890123456789",
    "METADATA_LOCATION": "`SELECT file FROM lake.SCHEMA.TABLE.metadata_log_entries "
    "ORDER BY timestamp DESC LIMIT 1` shows it in Spark.",
    "FILE_SUFFIX": FILE_SUFFIX,
    "PARTITION_KEY": PARTITION_KEY,
    "SUMMARY_JOB": SUMMARY_JOB,
    "SUMMARY_ROWS": SUMMARY_ROWS,
    "name": name,
    "ddl_name": ddl_name,
    "text": text,
    "ddl_text": ddl_text,
    "words": words,
    "partition": partition,
    "partition_path": partition_path,
    "rest_uri": rest_uri,
    "token_uri": token_uri,
    "urlsplit": urlsplit,
}
_FILTERS = {
    "commas": lambda lines: ",\n".join(lines.strip("\n").split("\n")) + "\n",
    "comment": comment,
    "compact_json": partial(json.dumps, separators=(",", ":")),
    "hcl": hcl,
    "json": partial(json.dumps, indent=2, ensure_ascii=False),
    "label": label,
    "p": properties_value,
    "py": partial(json.dumps, ensure_ascii=False),
    "sf": snowflake_text,
    "sh": shlex.quote,
    "y": yaml_value,
}


def template(name: str) -> Template:
    """Return a template of this folder."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    # Every sync imports this module, and few write a template.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    # What is written is SQL, Python or a shell's: every value goes through a filter of that.
    made = Environment(  # noqa: S701
        loader=FunctionLoader(_source),
        undefined=StrictUndefined,
        line_statement_prefix="%",
        trim_blocks=True,
    )
    made.globals |= _GLOBALS
    made.filters |= _FILTERS
    return made


def _source(name: str) -> str:
    source = (files(__package__) / name).read_text(encoding="utf-8")
    if name.startswith("engines/"):
        for pattern, mark in _MARKS:
            source = pattern.sub(mark, source)
    return source
