"""`lakeload demo`: the whole product in one minute, without an AWS account."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakeload.commands.options import Output
from lakeload.ui.console import OutputFormat


class DemoFormat(StrEnum):
    """What the demo loads into."""

    PARQUET = "parquet"
    ICEBERG = "iceberg"


def demo(
    table_format: Annotated[
        DemoFormat,
        typer.Option(
            "--table-format",
            case_sensitive=False,
            help="Append Parquet files, or change Iceberg tables in Glue.",
        ),
    ] = DemoFormat.PARQUET,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the configuration files, the logs and a copy of the lake."
        ),
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Show the whole product in one minute, without an AWS account.

    Starts an embedded AWS that enforces IAM, creates sample tables, tests the
    connection, loads twice, shows the objects and queries them. Everything is
    removed at the end. With Iceberg, the second load changes rows and columns,
    and a query shows the table before that load.
    """
    from lakeload.commands.demo_tour import give_tour

    give_tour(table_format.name, keep=keep, as_json=output is OutputFormat.JSON)
