"""Pages of the reference that are made from the code: `python -m tests.pages` writes them.

docs/commands.md from the parser, docs/error-codes.md from the tables behind messages.
"""

from __future__ import annotations

import ast
import functools
import importlib
import json
import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
import yaml

import lakeload
import lakeload_jobs
from lakeload.app import COMMANDS, app
from lakeload.commands.schema import RESULTS, DocumentKind, json_schema, result_schema
from lakeload.config.model import Finding
from lakeload_jobs.contract.errors import DISK_FULL_HINT, LakeloadError, anchor
from lakeload_jobs.sources.databases.engines.mysql import connection as mysql
from lakeload_jobs.sources.databases.engines.postgres import failures as postgres
from tests import advisories, reference
from tests.prose import reflow

DOCS = Path(__file__).parents[1] / "docs"
CLI = Path(lakeload.__file__).parent

_MORE = {
    "demo": "demo.md",
    "lake": "try-locally.md",
    "init": "init.md",
    "import": "migrating.md#import-a-configuration",
    "inspect": "inspect.md",
    "validate": "configuration.md",
    "schema": "configuration.md",
    "test-connection": "test-connection.md",
    "policy": "policy.md",
    "doctor": "doctor.md",
    "plan": "operations.md#the-plan-of-an-iceberg-table",
    "sync": "first-load.md",
    "recover": "operations.md",
    "runs": "operations.md",
    "status": "monitoring.md#freshness",
    "reset": "operations.md",
    "maintain": "maintain.md",
    "jars": "jars.md",
}
"""Where a command is explained."""


def command(name: str) -> Any:
    """Return a command as the parser knows it."""
    group: Any = typer.main.get_command(app)
    return group.commands[name]


def commands_page() -> str:
    """Return the page of commands and options."""
    rows = [f"| [`lakeload {name}`](#lakeload-{name}) | {_summary(name)} |" for name in COMMANDS]
    parts = [
        "# Commands and options\n",
        "All commands and options of lakeload. Each command shows the same with `--help`.\n",
        "| command | does |\n|---|---|",
        *rows,
        "",
        "The result goes to stdout, everything else to stderr. Every outcome has an\n"
        "[exit code](exit-codes.md), and every result a [JSON form](json.md).\n",
        *(_command_section(name) for name in COMMANDS),
        "## Shell completion\n",
        "`lakeload --install-completion` adds completion of commands and options to bash, zsh, "
        "fish or\nPowerShell. `lakeload --show-completion` prints the script.\n",
    ]
    return "\n".join(parts)


def _summary(name: str) -> str:
    return _cell(command(name).help.partition("\n\n")[0])


def _command_section(name: str) -> str:
    found = command(name)
    arguments = [p for p in found.params if not p.opts[0].startswith("-")]
    usage = " ".join(
        [f"lakeload {name}", *(_argument(argument) for argument in arguments), "[OPTIONS]"]
    )
    rows = [_option(p) for p in found.params if p.opts[0].startswith("-")]
    paragraphs = [" ".join(part.split()) for part in found.help.split("\n\n")]
    text = [
        f"## lakeload {name}\n",
        f"```\n{usage}\n```\n",
        reflow("\n\n".join(map(_escaped, paragraphs))),
        f"More: [{_MORE[name].partition('#')[0]}]({_MORE[name]}).\n",
    ]
    if arguments:
        text += ["| argument | meaning |\n|---|---|"]
        text += [f"| `{_argument(p)}` | {_cell(p.help)} |" for p in arguments]
        text += [""]
    return "\n".join([*text, "| option | default | meaning |\n|---|---|---|", *rows, ""])


def _argument(parameter: Any) -> str:
    choice = parameter.type_descriptor.is_choice
    shown = _value(parameter).replace("\\", "") if choice else parameter.metavar
    shown = shown or parameter.name.upper()
    shown = f"{shown.rstrip('.…')}..." if parameter.nargs == -1 else shown
    return shown if parameter.required else f"[{shown}]"


def _option(parameter: Any) -> str:
    spellings = sorted([*parameter.opts, *parameter.secondary_opts], key=len)
    takes = "" if parameter.is_flag or parameter.count else f" {_value(parameter)}"
    shown = ", ".join(f"`{one}{takes}`" for one in spellings)
    default = parameter.default
    unset = default in (None, False, (), []) or parameter.count
    shown_default = "" if unset else f"`{getattr(default, 'value', default)}`"
    return f"| {shown} | {shown_default} | {_cell(parameter.help)} |"


def _value(parameter: Any) -> str:
    kind = parameter.type_descriptor
    if parameter.metavar:
        return str(parameter.metavar)
    if kind.is_choice:
        return "\\|".join(choice.value for choice in kind.choices)
    return "FILE" if kind.is_path else "N"


def _escaped(text: str) -> str:
    """Return help as Markdown: options outside of code spans become code."""
    parts = text.split("`")
    plain = [re.sub(r"(?<![\w-])(--?[a-z][a-z-]*)", r"`\1`", part) for part in parts[::2]]
    parts[::2] = plain
    return "`".join(parts)


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


_INTRODUCTION = """\
# Error codes

Use this page to find the meaning of an error, of a code of AWS or a catalog, and what to do next.
[Troubleshooting] begins with the symptom instead.

[Troubleshooting]: troubleshooting.md

## Types of errors

With `--output json` an error has `type`, `message`, `hint`, `exit_code`, `retryable` and `docs`, a
link to its line on this page. A `type` is one of these, or the name that Spark gives its error.

"""

MEANINGS: Mapping[str, tuple[str, str]] = {
    "InvalidInput": (
        "An option or a configuration file is wrong.",
        "Correct it. `lakeload validate FILE` shows every problem at its line.",
    ),
    "InvalidDocuments": (
        "One or more configuration files have errors; `problems` lists them.",
        "Run `lakeload validate FILE`, and correct what it shows.",
    ),
    "Refused": (
        "AWS, the catalog, the source or the network denied a request before any table started.",
        "Run `lakeload test-connection destination.yml`: it names the permission that is missing.",
    ),
    "AwsError": (
        "AWS denied a request, or could not be reached. The message names the action and the "
        "resource.",
        "Find the code of AWS [below](#codes-of-aws).",
    ),
    "ConditionalWritesUnsupported": (
        "The store ignores `If-None-Match`, so two writers could overwrite each other.",
        "Update the store. Or set `single_writer: true`, and never run two loads at once.",
    ),
    "ChecksumsUnsupported": (
        "The store rejects checksum headers (`x-amz-checksum-crc32`).",
        "Set `AWS_REQUEST_CHECKSUM_CALCULATION=WHEN_REQUIRED`.",
    ),
    "CatalogError": (
        "The Iceberg catalog denied a request, or could not be reached.",
        "Find the code [below](#codes-of-an-iceberg-catalog), and run "
        "`lakeload test-connection destination.yml`.",
    ),
    "ProbeFailed": (
        "A connection check got an answer that is not what a load needs.",
        "Follow the hint of the check. [The checks](test-connection.md) are listed with what each "
        "proves.",
    ),
    "LoadFailed": (
        "A table could not be loaded, and none of its rows is visible.",
        "Fix what the message names, then run the same command with the same `--job-id`.",
    ),
    "NoFiles": (
        "The folder or bucket exists, and no file in it matches `path`.",
        "Correct `path`, or wait until the files have arrived.",
    ),
    "UnknownOutcome": (
        "Commit state unknown: a write was sent and its response never came.",
        "Run the same command with the same `--job-id`: it finds out, and loads nothing twice.",
    ),
    "LogDamaged": (
        "The commit log of a Parquet table has a gap, or an object that lakeload did not write.",
        "Follow [Reading and repairing the log](protocol-parquet.md"
        "#reading-and-repairing-the-log-by-hand).",
    ),
    "NewerFormat": (
        "A newer lakeload wrote the log or the state of the table.",
        "Upgrade lakeload on this machine ([compatibility](upgrade.md)).",
    ),
    "CatalogConflict": (
        "Glue has a table or database of this name that is not this table: another location, "
        "format, partition key or type.",
        "See [what is rejected](glue.md#rejected-tables); drop or rename the other table.",
    ),
    "Conflict": (
        "Another job committed first, and this one loaded nothing.",
        "Run it again. lakeload retries conflicts itself as far as that is safe.",
    ),
    "RecordDamaged": (
        "Uploads of a committed job were removed from outside, for example by a lifecycle rule.",
        "Decide with `lakeload recover pipeline.yml`, as "
        "[a damaged job](operations.md#a-damaged-job) describes.",
    ),
    "UnexpectedObject": (
        "An object of another writer has the key of one of this job's files. It is never "
        "overwritten.",
        "Move the object away, then run `lakeload recover pipeline.yml`.",
    ),
    "NotYetPublished": (
        "The job is committed, and not all of its rows are visible yet.",
        "Run `lakeload recover pipeline.yml`, or the same `sync` again. Do not load the rows under "
        "another id.",
    ),
    "LogInUse": (
        "`reset --with-log` cannot remove the log while another load may need it.",
        "Wait until loads of the table have ended, then run it again.",
    ),
    "TooManyRejected": (
        "More records are rejected than `max_rejected` allows; nothing is committed.",
        "Correct the reader options or `columns.types`, or raise `max_rejected` "
        "([rejected records](rejected-records.md)).",
    ),
    "TooManyDeleted": (
        "The source no longer has more rows of the table than `max_deleted` allows, or has no rows "
        "at all; nothing is committed.",
        "Check that the source is complete. If the rows were deleted, raise `max_deleted` "
        "([deletes](databases.md#deletes)).",
    ),
    "KeyNotUnique": (
        "Rows of one load have the same `primary_key`, and `on_same_key` is `FAIL`; nothing is "
        "committed.",
        "Name the columns that identify a row, or set `on_same_key: WARN` "
        "([keys](databases.md#keys)).",
    ),
    "BadValuesFound": (
        "Values do not fit the type of their column. The message names file, line, column and "
        "value.",
        "Correct `columns.types`, or set `on_bad_value: QUARANTINE`.",
    ),
    "MalformedRecord": (
        "A record of a CSV or JSON file is broken: its width, quotes or encoding.",
        "Correct `separator`, `quote`, `encoding` or `multiLine` "
        "([CSV options](csv-files.md#options)), or set `on_bad_value: QUARANTINE`.",
    ),
    "UnreadableFile": (
        "A file is damaged, or of another format than `format` says.",
        "Run `lakeload inspect FILE`: it shows what the file is.",
    ),
    "FollowUpFailed": (
        "All data is loaded, and something after the commit failed, such as the update of Glue.",
        "Do not load the data again. The next `sync` or `lakeload recover` repeats the step.",
    ),
    "CommitConflict": (
        "Another writer changed the table first, each time. Nothing is changed.",
        "Run the command again when fewer loads run.",
    ),
    "Interrupted": (
        "The run was stopped by Ctrl-C, SIGTERM or a closed terminal.",
        "Run the same command with the same `--job-id`.",
    ),
    "MachineNotReady": (
        "This machine lacks Java, Spark, a jar, memory or disk.",
        "Run `lakeload doctor`: it shows the command that fixes each finding.",
    ),
    "JavaNeeded": (
        "The table needs Iceberg's Java code, and Spark was not started again with it: the error "
        "of the load says why.",
        "Fix that, and run the same command with the same `--job-id`.",
    ),
}
"""What each type of error means, and what to do."""

PROBLEMS: Mapping[str, str] = {
    "append-only": "The mode needs Iceberg tables; Parquet tables are only appended to.",
    "cannot-load": "Nothing can be loaded through Nessie's REST interface. Write `api: NATIVE`.",
    "catalog-path": "`uri` lacks the path of Open Catalog. Add `/polaris/api/catalog`.",
    "changed-files": "`on_changed_file` and `content_hash` need `incremental: true`.",
    "character": "The file has a character that YAML does not allow. Remove it.",
    "commit-at": "`commit_at` is not for this source or table. The hint says what can be done.",
    "contradiction": "Two settings exclude each other. Keep one.",
    "cross-region": "Catalog and bucket are in different regions. Use a bucket of that region.",
    "duplicate-key": "The key is there twice. Remove one.",
    "appended-in-rounds": (
        "The table would append all rows in each round of `upload_interval`. The hint names what "
        "loads them once."
    ),
    "duplicate-table": "The same table is listed twice. Remove one, or join their paths in a list.",
    "duplicate-target": "Two tables would become the same target. Set `name` or `namespace`.",
    "empty": "The value is missing. Write one, or remove the key.",
    "environment": "A variable in `${NAME}` is not set, or holds what the setting does not take.",
    "endless-alias": "A YAML alias refers to itself. Write the value out.",
    "ignored": "A note: the setting has no effect here.",
    "invalid": "The value does not follow a rule that the message names.",
    "key": "A key must be text. Put it in quotes.",
    "merge": "`<<` takes a mapping, or a list of mappings.",
    "missing-file": "A file that is named does not exist. Paths are relative to this file.",
    "missing-key": "A required key is missing. Add it.",
    "no-database": "All parts of the Glue database's name are empty. Set one of them.",
    "no-namespace": "All parts of the namespace are empty. Set `namespace`.",
    "not-a-mapping": "The file has no `key: value` lines.",
    "not-supported-yet": "lakeload does not have this yet. The hint names the nearest way.",
    "not-utf-8": "The file is not UTF-8 text. Save it as UTF-8.",
    "other-catalog": "The setting belongs to another type of catalog. Remove it, or change `type`.",
    "other-format": "The setting belongs to the other table format. Remove it.",
    "out-of-range": "The number is too small or too large.",
    "outside-destination": "The location is not inside bucket and prefix of the destination.",
    "overlap": "Files of one table would be inside those of another. Set `namespace`.",
    "owned-property": "lakeload sets this property itself. Remove it.",
    "projection": "A note: queries must name the job with SYNC_ID and projection.",
    "reader-option": "The reader has no such option, or it has no effect. Correct the name.",
    "remote-input": "Tasks on other machines cannot read this path. Use `local[*]`.",
    "remote-secret": "Tasks on other machines cannot read this reference. Use `aws_secret`.",
    "reserved-name": "The name is lakeload's own. Rename the table or column.",
    "round-limit": "`round_limit` is not for this source or table. The hint says what can be done.",
    "secret-literal": "A secret is written into the file. Write a reference ([credentials]).",
    "several-documents": "The file has several YAML documents. Split it.",
    "sts-of-aws": "A warning: the role is assumed at AWS, and the store is not AWS.",
    "syntax": "The file is not YAML. The message names line and column.",
    "table-property": "The Iceberg property would break a load, or does not exist.",
    "tag": "A YAML tag (`!name`) is not allowed. Write the value without it.",
    "too-deep": "The file has too many levels.",
    "too-large": "The file is too large ([limits](configuration.md)).",
    "tracking-column": "A tracking column is left out that is needed, or a column has its name.",
    "two-identities": "Two ways to log in to the catalog are set. Remove one.",
    "unknown-alias": "A YAML alias refers to nothing.",
    "unknown-key": "There is no such setting. The hint names the nearest one.",
    "unknown-region": "AWS has no such region. Correct `region`.",
    "unknown-value": "The setting does not take this value. The hint lists those it takes.",
    "unreadable": "The file could not be read. Check its path and permissions.",
    "unsigned": "A catalog of AWS accepts only signed requests. Add `sigv4`.",
    "version": "`version` is missing or not 1.",
    "white-space": "A tab or an invisible character is where YAML wants spaces.",
    "wrong-kind": "A destination is where a pipeline is needed, or the reverse.",
    "wrong-type": "The value is of another type, for example text in place of a number.",
}
"""What each code of a problem in a configuration file means, and what to do."""

REPORTED: Mapping[str, tuple[str, str, str]] = {
    "MissingInput": (
        "3",
        "`plan` found no input files for a table.",
        "Correct `path`. Relative paths start at the folder of the pipeline's file.",
    ),
    "DriverDied": (
        "1, 4",
        "The Spark driver crashed before it wrote a result. The message has the cause from its "
        "log.",
        "Follow the hint, then run the same command with the same `--job-id`.",
    ),
    "NeverStarted": (
        "1, 3, 4",
        "Spark did not start. The message has the cause from its log.",
        "Follow the hint, and run `lakeload doctor`.",
    ),
    "NoResult": (
        "1",
        "Spark ended and there is no readable result.",
        "Run the same command with the same `--job-id`: it loads nothing twice.",
    ),
    "ResultMismatch": (
        "5",
        "The job reported success, and Spark ended with an error after it. The data is loaded.",
        "A rerun with the same `--job-id` loads nothing twice. `spark.log` shows the error.",
    ),
    "UnknownFailure": (
        "70",
        "The job failed and gave no reason. This is a bug.",
        "Report it with `spark.log`.",
    ),
    "OutOfMemory": (
        "4",
        "Spark's Java process ran out of memory.",
        "Raise `spark.driver_memory` ([memory](performance.md#memory)).",
    ),
    "JavaGone": (
        "4",
        "Spark's Java process ended unexpectedly.",
        "See the end of `spark.log`. If memory ran out, raise `spark.driver_memory`.",
    ),
    "WorkerDied": (
        "4",
        "A Python worker of Spark was killed, usually because memory ran out.",
        "Use fewer cores (`local[2]`), lower `spark.driver_memory`, or a larger machine.",
    ),
    "DiskFull": (
        "4",
        "The disk is full: Spark could not write its temporary files.",
        "Free space, or set `spark.local.dir` in `spark.conf` to a larger disk.",
    ),
    "Bug": (
        "70",
        "lakeload has a bug. The `type` is the name of a Python exception.",
        "Report it with the log file that the message names.",
    ),
}
"""Further types in results, each with its exit codes: no class of lakeload, or none that the
command raises."""

UNSEEN = {"CheckSkipped"}
"""Types that no user sees: they end inside lakeload."""


def error_types() -> dict[str, type[LakeloadError]]:
    """Return every type of error of both programs by its name."""
    for package in (lakeload, lakeload_jobs):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__") and ".entry." not in module.name:
                importlib.import_module(module.name)

    def family(error: type[LakeloadError]) -> Iterator[type[LakeloadError]]:
        for below in error.__subclasses__():
            yield below
            yield from family(below)

    return {error.__name__: error for error in family(LakeloadError)}


_PLACES_OF_CODE = {
    "Finding": (3,),
    "_OfNewData": (2,),
    "Problem": (1,),
    "problem": (1,),
    "_problem": (0, 2),
    "_at_value": (1,),
    "YamlRefused": (0,),
    "refusal": (),
}
"""Which arguments of a call may be the code of a problem."""


def problem_codes() -> set[str]:
    """Return the codes of problems that the sources write, found where problems are made."""
    codes = set()
    for folder in ("config", "documents", "sources"):
        for path in sorted((CLI / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    codes |= set(_code(node))
    return codes | {Finding("").code}


def _code(call: ast.Call) -> Iterator[str]:
    places = _PLACES_OF_CODE.get(ast.unparse(call.func).rpartition(".")[2])
    if places is None:
        return
    given = [argument for i, argument in enumerate(call.args) if i in places]
    given += [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    for node in (node for value in given for node in ast.walk(value)):
        if isinstance(node, ast.Constant) and re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", str(node.value)):
            yield str(node.value)


def _sorted(database: Any) -> list[tuple[str, str]]:
    """Return the codes of a database with what to do as a sentence."""
    hints = ((str(code), hint.format("…")) for code, hint in database.HINTS.items())
    return sorted((code, f"{hint[0].upper()}{hint[1:]}.") for code, hint in hints)


def error_codes_page() -> str:
    """Return the page of error codes."""
    types = error_types()
    shown = sorted(set(types) - UNSEEN, key=lambda name: (types[name].exit_code, name))
    anchors = _Anchors()
    rows = [
        f"| {anchors(name)} | {int(types[name].exit_code)} | {' | '.join(MEANINGS[name])} |"
        for name in shown
    ]
    rows += [f"| {anchors(name)} | {' | '.join(texts)} |" for name, texts in REPORTED.items()]
    causes = yaml.safe_load((CLI / "probes/causes.yml").read_text(encoding="utf-8"))
    same = causes["same"]
    return "\n".join(
        [
            _INTRODUCTION + "| type | exit code | what it means | what to do |\n|---|---|---|---|",
            *rows,
            "",
            "## Problems in configuration files\n",
            "The `code` of a problem in `lakeload validate --output json`.\n",
            "| code | what it means and what to do |\n|---|---|",
            *(f"| {anchors(code)} | {text} |" for code, text in sorted(PROBLEMS.items())),
            "",
            "[credentials]: credentials.md#secrets-are-references\n",
            "## Codes of AWS\n",
            "The codes of AWS, of S3-compatible stores and of the connection checks, with their "
            "usual causes,\nthe likeliest first. A denied request (`AccessDenied`, 403) names the "
            "IAM action that is missing,\nsuch as `s3:PutObject`: see [permission "
            "denied](troubleshooting.md#permission-denied).\n",
            "| code | usual causes |\n|---|---|",
            *_causes(causes["aws"], same, anchors),
            "",
            "## Codes of an Iceberg catalog\n",
            "| code | usual causes |\n|---|---|",
            *_causes(causes["catalog"], {}, anchors),
            "",
            "## Codes of databases\n",
            "A [source of type JDBC](databases.md) fails with the SQLSTATE of PostgreSQL, or the "
            "error number of\nMariaDB or MySQL, in its message. The manual of the database "
            "explains the other codes.\n",
            "| code | of | what to do |\n|---|---|---|",
            *(f"| {anchors(code)} | PostgreSQL | {hint} |" for code, hint in _sorted(postgres)),
            *(f"| {anchors(code)} | MariaDB, MySQL | {hint} |" for code, hint in _sorted(mysql)),
            "",
            "## Findings of connection checks\n",
            "A check can fail although every request was answered. `{…}` stands for a value.\n",
            "| code | message | what to do |\n|---|---|---|",
            *_findings(anchors),
            "",
            "## Signs in the log of Spark\n",
            "Where Spark ended without a result, lakeload finds the cause in its log "
            "(`spark.log` of the run).\n",
            "| message | exit code | what to do |\n|---|---|---|",
            *_signs(),
            "",
        ]
    )


class _Anchors:
    """Code spans with the anchor that links in results lead to; each anchor once on the page."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def __call__(self, code: str) -> str:
        name = anchor(code)
        mark = "" if name in self._used else f'<a id="{name}"></a>'
        self._used.add(name)
        return f"{mark}`{code}`"


def _causes(
    causes: Mapping[str, list[str]], same: Mapping[str, list[str]], anchors: _Anchors
) -> Iterator[str]:
    for code, texts in causes.items():
        names = ", ".join(anchors(name) for name in (code, *map(str, same.get(code, ()))))
        yield f"| {names} | {_cell('<br>'.join(texts))} |"


def _findings(anchors: _Anchors) -> Iterator[str]:
    text = (CLI / "probes/failures.toml").read_text(encoding="utf-8")
    for finding in tomllib.loads(text).values():
        code, message, hint = (
            finding[key].replace("{{", "{").replace("}}", "}")
            for key in ("code", "message", "hint")
        )
        yield f"| {anchors(code)} | {_cell(message)} | {_cell(hint)} |"


def _signs() -> Iterator[str]:
    text = (CLI / "launch/log_signs.toml").read_text(encoding="utf-8")
    for sign in tomllib.loads(text)["sign"]:
        message = sign["message"].replace("{1}", "…")
        hint = sign["hint"].replace("{1}", "…").replace("{disk_full}", DISK_FULL_HINT)
        yield f"| {_cell(message)} | {sign['exit_code']} | {_cell(hint)} |"


def _schema(name: str) -> str:
    found = result_schema(name) if name in RESULTS else json_schema(name)
    return json.dumps(found, indent=2) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    **{
        f"schemas/{kind.value}.json": functools.partial(_schema, kind.value)
        for kind in DocumentKind
    },
    "commands.md": commands_page,
    "error-codes.md": error_codes_page,
    "configuration.md": reference.reference_page,
    "advisories.md": advisories.page,
}
"""Pages that are made, with what makes them."""


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(page(), encoding="utf-8")
