"""`lakeload lake`: an S3 store and an Iceberg catalog on this machine, for trying."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import Output, stoppable
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from lakeload.lake.server import Lake


class Action(StrEnum):
    """Subcommands of `lakeload lake`."""

    UP = "up"
    DOWN = "down"
    STATUS = "status"
    QUERY = "query"


class Format(StrEnum):
    """The formats of its tables."""

    PARQUET = "PARQUET"
    ICEBERG = "ICEBERG"


def lake(
    action: Annotated[
        Action,
        typer.Argument(
            help="`up` starts it, `down` stops it, `status` shows it, `query` reads its tables."
        ),
    ],
    sql: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SQL",
            help="query: a statement that names tables as `schema.table`.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where the lake is stored. Default: LAKELOAD_LAKE_DIR, or a folder of the user's "
            "state directory.",
            show_default=False,
        ),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="down: also remove the data and the keys.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Apply --delete. Without it, only show what would be removed."),
    ] = False,
    table_format: Annotated[
        Format | None,
        typer.Option(
            "--table-format",
            case_sensitive=False,
            help="query: only tables of this format.",
            show_default=False,
        ),
    ] = None,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Run an S3 store and an Iceberg catalog on this machine, to try lakeload.

    It needs no account and no network, and listens on this machine only, with
    keys of its own. Data, keys and ports stay when it stops. It is for trying:
    one process without TLS or copies of the data. `lakeload init --local` writes
    a destination for it. Exit code 0; 2 when a query is wrong; 4 when the server
    does not start or, of `status`, does not run or cannot write.
    """
    from lakeload.lake.server import Lake, lake_directory

    statement = _statement(action, sql)
    _check_flags(action, statement, delete=delete, yes=yes, table_format=table_format)
    for name in ("NO_PROXY", "no_proxy"):  # the lake is never behind a proxy
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1"]))
    own = Lake(folder.absolute() if folder else lake_directory(os.environ))
    if action is Action.QUERY:
        _query(own, statement or "", table_format, output)
        return
    if action is Action.UP:
        with stoppable():
            own.start()
    elif action is Action.DOWN and not delete:
        own.stop()
    _report(action, own, delete=delete, yes=yes, output=output)


def _statement(action: Action, words: list[str] | None) -> str | None:
    """Return the statement. Raises `InvalidInput` for one that the shell has cut into words."""
    if action is Action.QUERY and words and len(words) > 1:
        raise InvalidInput(
            f"`lakeload lake query` takes one statement, and there are {len(words)} arguments",
            hint="write it in quotes: `lakeload lake query 'SELECT * FROM shop.orders'`",
        )
    return words[0] if words else None


def _check_flags(
    action: Action, sql: str | None, *, delete: bool, yes: bool, table_format: Format | None
) -> None:
    """Raise `InvalidInput` for options of another action."""
    if action is Action.QUERY and not (sql or "").strip():
        raise InvalidInput(
            "`lakeload lake query` needs a statement",
            hint="write one in quotes: `lakeload lake query 'SELECT * FROM shop.orders'`; "
            "`lakeload lake status` lists the tables",
        )
    of_query = sql if sql is not None else table_format
    if action is not Action.QUERY and of_query is not None:
        raise InvalidInput(f"`{of_query}` belongs to `lakeload lake query`", hint="leave it out")
    if delete and action is not Action.DOWN:
        raise InvalidInput("`--delete` belongs to `lakeload lake down`", hint="leave it out")
    if yes and not delete:
        raise InvalidInput("`--yes` belongs to `--delete`", hint="leave it out")


def _query(own: Lake, sql: str, table_format: Format | None, output: OutputFormat) -> None:
    from lakeload.lake.tables import ask
    from lakeload.ui.lake import show_answer

    answer = ask(own, sql, table_format.value if table_format else None)
    if output is OutputFormat.JSON:
        console.show_json(to_json(answer))
    else:
        show_answer(answer)


def _report(action: Action, own: Lake, *, delete: bool, yes: bool, output: OutputFormat) -> None:
    from lakeload.ui.lake import LakeState, show_deleted, show_state, to_document

    state = LakeState.of(own, writes=action is Action.STATUS)
    if delete and yes:
        own.stop()
        own.delete()
    if output is OutputFormat.JSON:
        console.show_json(to_document(state, deleted=delete and yes))
    elif delete:
        show_deleted(state, done=yes)
    else:
        show_state(state, started=action is Action.UP)
    if action is Action.STATUS and (not state.running or state.write_failure is not None):
        raise typer.Exit(ExitCode.MACHINE)
