"""`lakeload demo`: the whole product in one minute, without an AWS account."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import typer

from lakeload.commands.options import Output
from lakeload.ui.console import OutputFormat


class DemoFormat(StrEnum):
    """What the demo loads into."""

    PARQUET = "parquet"
    ICEBERG = "iceberg"


class DemoSource(StrEnum):
    """The source of the demo."""

    FILES = "files"
    POSTGRES = "postgres"


_TOURS: Mapping[tuple[DemoSource, DemoFormat | None], str] = {
    (DemoSource.FILES, None): "PARQUET",
    (DemoSource.FILES, DemoFormat.PARQUET): "PARQUET",
    (DemoSource.FILES, DemoFormat.ICEBERG): "ICEBERG",
    (DemoSource.POSTGRES, None): "POSTGRES",
    (DemoSource.POSTGRES, DemoFormat.ICEBERG): "POSTGRES",
}


def demo(
    table_format: Annotated[
        DemoFormat | None,
        typer.Option(
            "--table-format",
            case_sensitive=False,
            help="Append Parquet files, or change Iceberg tables in Glue (default: parquet for "
            "files, iceberg for postgres).",
        ),
    ] = None,
    source: Annotated[
        DemoSource,
        typer.Option(
            "--source",
            case_sensitive=False,
            help="Load files, or tables of a PostgreSQL server that the demo starts.",
        ),
    ] = DemoSource.FILES,
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
    and a query shows the table before that load. With PostgreSQL, the second
    load reads only the rows that have changed.
    """
    from lakeload_jobs.contract.errors import InvalidInput

    tour = _TOURS.get((source, table_format))
    if tour is None:
        raise InvalidInput(
            "the demo loads PostgreSQL into Iceberg tables, whose rows can change",
            hint="leave `--table-format` out",
        )
    from lakeload.commands.demo_tour import give_tour

    give_tour(tour, keep=keep, as_json=output is OutputFormat.JSON)
