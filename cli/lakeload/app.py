"""The command line: its commands, and the exit code of each error."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, MutableMapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lakeload.commands.options import with_common_options
from lakeload.ui.errors import show_bug, show_error, survive_any_terminal
from lakeload_jobs.contract.errors import ExitCode, Interrupted, LakeloadError, disk_full

# The name of the function is the module's. A command's module imports at its top only what
# is light: typer, contract and config; its function imports the rest.
COMMANDS = {
    "demo": "lakeload.commands.demo",
    "init": "lakeload.commands.init",
    "import": "lakeload.commands.import_configuration",
    "inspect": "lakeload.commands.inspect",
    "validate": "lakeload.commands.validate",
    "schema": "lakeload.commands.schema",
    "test-connection": "lakeload.commands.test_connection",
    "policy": "lakeload.commands.policy",
    "doctor": "lakeload.commands.doctor",
    "plan": "lakeload.commands.plan",
    "sync": "lakeload.commands.sync",
    "recover": "lakeload.commands.recover",
    "runs": "lakeload.commands.runs",
    "reset": "lakeload.commands.reset",
    "maintain": "lakeload.commands.maintain",
    "jars": "lakeload.commands.jars",
}


class LazyCommands(MutableMapping[str, Any]):
    """Commands by name; a command's module is imported when the command is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _command(name, COMMANDS[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*COMMANDS, *self._loaded]))

    def __len__(self) -> int:
        return len(list(iter(self)))


class ErrorBoundary(TyperGroup):
    """Shows expected errors and maps them to exit codes, also under a test runner."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table, without importing anything."""
        return list(self.commands)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except LakeloadError as error:
            show_error(error)
            raise typer.Exit(error.exit_code) from error
        except OSError as error:
            if (full := disk_full(error)) is None:
                raise
            show_error(full)
            raise typer.Exit(full.exit_code) from error
        except KeyboardInterrupt as stop:
            show_error(Interrupted("interrupted"))
            raise typer.Exit(ExitCode.INTERRUPTED) from stop


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
        from importlib.metadata import version

        from lakeload.ui.console import answer

        answer(f"lakeload {version('lakeload')}")
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
    try:
        app(prog_name="lakeload")
    except Exception as error:  # noqa: BLE001 - the last resort
        show_bug(error)
        sys.exit(ExitCode.BUG)


def _command(name: str, module: str) -> Any:
    function = getattr(importlib.import_module(module), module.rpartition(".")[2])
    alone = typer.Typer(
        add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}
    )
    alone.command(name)(with_common_options(function))
    return typer.main.get_command(alone)


if __name__ == "__main__":
    main()
