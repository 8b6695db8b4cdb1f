"""The command line: its commands, and the exit code of each error."""

from __future__ import annotations

import atexit
import gc
import importlib
import inspect
import re
import signal
import sys
from collections.abc import Iterator, MutableMapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lakeload.commands.options import with_common_options
from lakeload.ui.console import survive_any_terminal
from lakeload_jobs.contract.errors import ExitCode, Interrupted, LakeloadError, disk_full
from lakeload_jobs.core.names import nearest

# The first sentence of each command's help. A command's module imports at its top only what is
# light: typer, contract and config; its function, of the module's name, imports the rest. The list
# of all commands imports none of them.
COMMANDS = {
    "demo": "Show the whole product in one minute, without an AWS account.",
    "lake": "Run an S3 store and an Iceberg catalog on this machine, to try lakeload.",
    "init": "Write destination.yml and pipeline.yml, and .env for their secrets.",
    "import": "Write destination.yml and pipeline.yml from another product's configuration.",
    "inspect": "Show the content of files: format, encoding, dialect, columns, types, three rows.",
    "validate": (
        "Check configuration files: every problem, with line, column and a hint. No network."
    ),
    "schema": "Print the JSON Schema of a configuration file, or of a command's `--output json`.",
    "test-connection": (
        "Test identity, role, bucket, permissions and the database of a pipeline; show fixes."
    ),
    "policy": "Write the IAM policies that a destination needs, and no more.",
    "doctor": "Check this machine: Java, Spark, memory, disk, clock, credentials, variables.",
    "plan": "Show what `sync` would do, table by table; writes nothing.",
    "sync": "Load the tables of a pipeline: all rows of a table or none, each job once.",
    "recover": "Finish abandoned attempts in the tables of a pipeline or a destination.",
    "runs": "Show the load history: the newest jobs of the tables, from their logs.",
    "status": "Show which tables of a pipeline are fresh, stale or failing, for monitors.",
    "reset": "Remove the rows that this pipeline has loaded into some of its tables.",
    "maintain": "Compact and clean up a pipeline's tables, also while loads run.",
    "jars": "Fetch, list or verify the jars that Spark does not include, with pinned checksums.",
}
_MODULES = {"import": "import_configuration"}
"""Those that are not called as their command is."""


class LazyCommands(MutableMapping[str, Any]):
    """Commands by name; a command's module is imported when the command is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in COMMANDS and name not in self._loaded:
            self._loaded[name] = _command(name, _MODULES.get(name, name.replace("-", "_")))
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*COMMANDS, *self._loaded]))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _without_flag_types(params: list[Any]) -> list[Any]:
    """Return the parameters; the help would show `<bool>` behind flags, which take no value."""
    for option in params:
        if getattr(option, "is_flag", False) or getattr(option, "count", False):
            option.metavar = ""
    return params


class Command(TyperCommand):
    """A command whose help shows types only of options that take a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return options and arguments, `--help` among them."""
        return _without_flag_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line. The error of a value that is none of several names the nearest."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if wrong := _NO_CHOICE.search(error.message):
                near = nearest(wrong[1], re.findall(r"'([^']+)'", wrong[2]))
                error.message += f" Did you mean '{near}'?" if near else ""
            raise


_NO_CHOICE = re.compile(r"'([^']*)' is not one of (.*)", re.DOTALL)


class ErrorBoundary(TyperGroup):
    """Shows expected errors and maps them to exit codes, also under a test runner."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands()

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of every command, `--help` among them."""
        return _without_flag_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table, without importing anything."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help, with the summaries of commands that are not imported for it."""
        commands = self.commands
        self.commands = {
            name: TyperCommand(name, help=summary) for name, summary in COMMANDS.items()
        }
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = commands

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except LakeloadError as error:
            raise _shown(error) from error
        except OSError as error:
            if (full := disk_full(error)) is None:
                raise
            raise _shown(full) from error
        except KeyboardInterrupt as stop:
            raise _shown(Interrupted("interrupted")) from stop


def _shown(error: LakeloadError) -> typer.Exit:
    """Show an error, and return the end of the command."""
    from lakeload.ui.errors import show_error

    show_error(error)
    return typer.Exit(error.exit_code)


app = typer.Typer(
    name="lakeload",
    cls=ErrorBoundary,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from lakeload.ui.console import answer
        from lakeload_jobs import __version__

        answer(f"lakeload {__version__}")
        raise typer.Exit


@app.callback()
def lakeload(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Load tables into an S3 data lake, exactly once, with Spark doing the work."""


def main() -> None:
    """Run the command line; what nobody expected is a bug, exit code 70."""
    survive_any_terminal()
    # Imports make no garbage: looking for it cost a tenth of a command's CPU.
    gc.set_threshold(50_000, 20, 20)
    try:
        app(prog_name="lakeload")
    except Exception as error:  # noqa: BLE001 - the last resort
        from lakeload.ui.errors import show_bug

        show_bug(error)
        sys.exit(ExitCode.BUG)
    finally:
        atexit.register(_ignore_stop_signals)


def _ignore_stop_signals() -> None:
    """Keep the exit code that was shown: all is said, and Python only ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _command(name: str, module: str) -> Any:
    function = getattr(importlib.import_module(f"lakeload.commands.{module}"), module)
    alone = typer.Typer(
        add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}
    )
    alone.command(name, cls=Command)(with_common_options(function))
    command = typer.main.get_command(alone)
    # A line break within a paragraph of a docstring is none on the screen.
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(function.__doc__ or ""))
    return command


if __name__ == "__main__":
    main()
