"""The questions `init` asks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from lakeload.config.credentials import Credentials
from lakeload.config.document import listed, quoted
from lakeload.config.model import FINDINGS, Finding
from lakeload.config.secret_names import shown
from lakeload.documents.destination import Destination
from lakeload.documents.iceberg import Catalog
from lakeload.documents.pipeline import Pipeline, Table
from lakeload.init.documents import Answers, has_setting, in_glue
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import CatalogType, FileFormat, Mode, TableFormat
from lakeload_jobs.contract.traits import FORMATS, FormatTraits
from lakeload_jobs.core.names import did_you_mean


def value_finding(model: type[BaseModel], setting: str, value: str) -> Finding | None:
    """Say why text cannot be the value of a setting of `model`, or return None."""
    field = model.model_fields[setting]
    kind: Any = field.annotation
    if field.metadata:
        kind = Annotated[kind, *field.metadata]
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            for finding in detail.get("ctx", {}).get(FINDINGS, ()):
                assert isinstance(finding, Finding), "rules refuse with findings"  # noqa: S101
                return finding
        return Finding(f"`{shown(value)}` cannot be the value of `{setting}`")
    return None


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


Ask = Callable[[Question, tuple[str, ...], str | None, Finding | None], str]
"""Asks one question with its choices and default; the finding says what was wrong before."""


Defaults = Mapping[str, str | Callable[[Given], str | None]]
"""Answers that depend on the machine, by the names of the questions; a function of the answers so
far may know none."""


def interview(flags: Mapping[str, str | None], defaults: Defaults, ask: Ask | None) -> Answers:
    """Return an answer to each question that applies: the flag, what was asked, or the default.

    `defaults` come before those of the questions. Without `ask`, what has neither flag nor
    default is missing. Raises `InvalidInput`, naming all missing flags at once.
    """
    # What a later flag says takes part in an earlier default: `--role-arn` makes it a role.
    known = {name: value for name, value in flags.items() if value is not None}
    missing: list[Question] = []
    for question in QUESTIONS:
        flag = flags.get(question.name)
        if not question.applies(known):
            if flag:
                raise _without_effect(question, known)
            known.pop(question.name, None)
            continue
        choices = question.choices(known)
        default = _default(defaults, question, known)
        if flag is not None:
            known[question.name] = _checked_flag(question, choices, flag)
        elif ask is not None and question.asked and not _settled(question, known):
            known[question.name] = _asked(question, choices, default, ask)
        elif default is None:
            if question.follows not in [item.name for item in missing]:
                missing.append(question)
        else:
            known[question.name] = default
    if missing:
        raise _missing(missing)
    return Answers(**known)


def _default(defaults: Defaults, question: Question, known: Given) -> str | None:
    found = defaults.get(question.name)
    return (found(known) if callable(found) else found) or question.default(known)


def _settled(question: Question, known: Mapping[str, str]) -> bool:
    """A role's base profile has a flag, and so has the identity once `--role-arn` is given."""
    if question.name == "profile":
        return known["credentials"] == "ROLE"
    return question.name == "credentials" and bool(known.get("role_arn") or known.get("profile"))


def _asked(question: Question, choices: tuple[str, ...], default: str | None, ask: Ask) -> str:
    finding: Finding | None = None
    while True:
        value = ask(question, choices, default, finding).strip()
        begun = [choice for choice in choices if value and choice.startswith(value.upper())]
        value = begun[0] if len(begun) == 1 else _choice(value, choices) or value
        finding = _finding(question, choices, value)
        if finding is None:
            return value


def _checked_flag(question: Question, choices: tuple[str, ...], value: str) -> str:
    value = _choice(value, choices) or value
    if finding := _finding(question, choices, value):
        raise InvalidInput(f"`{question.flag}`: {finding.message}", hint=finding.hint)
    return value


def _finding(question: Question, choices: tuple[str, ...], value: str) -> Finding | None:
    if choices:
        hint = did_you_mean(value, choices) or listed(choices)
        return None if value in choices else Finding(f"`{shown(value)}` is not a choice", hint)
    if not value.isprintable():
        return Finding(f"`{shown(value)}` holds a control character", "remove it")
    if value == "":
        return None if question.may_be_empty else Finding("this cannot be empty")
    if question.setting is None or "${" in value:
        # A reference to the environment is checked with the whole document.
        return None
    return value_finding(*question.setting, value)


def _choice(value: str, choices: tuple[str, ...]) -> str | None:
    return next((choice for choice in choices if choice.lower() == value.lower()), None)


def _without_effect(question: Question, known: Mapping[str, str]) -> InvalidInput:
    given = [
        f"{item.flag} {known[item.name]}"
        for item in QUESTIONS
        if item.name in ("credentials", "table_format", "catalog") and item.name in known
    ]
    return InvalidInput(
        f"`{question.flag}` has no effect with `{' '.join(given)}`",
        hint="leave it out, or make another choice; `lakeload init --help` lists them",
    )


def _missing(questions: list[Question]) -> InvalidInput:
    flags = quoted([question.flag for question in questions])
    about = "\n".join(f"  {question.flag}  {question.text}" for question in questions)
    verb = "is" if len(questions) == 1 else "are"
    return InvalidInput(
        f"{flags} {verb} missing, and there is no terminal to ask at", hint=f"give\n{about}"
    )


_LOOKED_AT = 100


def detect_format(given: Mapping[str, str]) -> str | None:
    """Return NDJSON for a path whose ending says JSON and whose first file has an object on each
    line; None for other endings, and for files that are missing, remote or unreadable."""
    path = given.get("path", "")
    if format_of(path) != "JSON" or "://" in path:
        return None
    # Only here: a look into files brings the libraries of AWS along.
    from lakeload_jobs.contract.errors import LakeloadError
    from lakeload_jobs.sources.files.listing import local_files
    from lakeload_jobs.sources.files.source_bytes import DAMAGED, as_utf8, decompressed

    # As in the document: a shell expands it for flags, nobody for an answer.
    pattern = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
    try:
        first = next(iter(local_files([pattern])), None)
        if first is None:
            return None
        with Path(first.path).open("rb") as file:
            start = next(as_utf8(decompressed(first.path, file), None), b"")
    except (LakeloadError, *DAMAGED):
        return None
    return "NDJSON" if _has_lines(start) else None


def _has_lines(start: bytes) -> bool:
    """Whether a text begins with two lines that are an object each: JSON has one in a file."""
    lines = [line for line in start.splitlines()[:_LOOKED_AT] if line.strip()]
    return len(lines) > 1 and all(map(_is_object, lines[:2]))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
