"""`lakeload demo`: the whole product in one minute, without an AWS account."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeload.commands.options import Output
from lakeload.ui.console import OutputFormat


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the documents, the logs and a copy of the lake.")
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Show the whole product in one minute, without an AWS account.

    Starts an embedded AWS that enforces IAM, makes sample tables, tests the
    connection, loads twice, shows the objects and queries them. Everything is
    removed at the end.
    """
    from lakeload.commands.demo_tour import give_tour

    give_tour(keep=keep, as_json=output is OutputFormat.JSON)
