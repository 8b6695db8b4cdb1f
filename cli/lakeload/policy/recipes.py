"""Grants, statements and queries for a destination and, where one is given, a pipeline. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakeload.policy.athena import athena_queries
from lakeload.policy.duckdb import duckdb_access, duckdb_queries
from lakeload.policy.lake_formation import reader_grants, writer_grants
from lakeload.policy.lake_formation_text import Form, lake_formation_snippets
from lakeload.policy.snippets import Snippet
from lakeload.policy.snowflake import snowflake_setup, snowflake_table
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, DestinationSpec, Nested, TableSpec

Engine = Literal["lake-formation", "athena", "duckdb", "snowflake"]


@dataclass(frozen=True)
class Asked:
    """What a recipe is for. `tables` are those of a pipeline; without one there are none."""

    now: datetime
    """The end of example ranges."""
    tables: tuple[TableSpec, ...] = ()
    tracking: Sequence[str] = TRACKING_COLUMNS
    nested: Nested = "NATIVE"
    principals: tuple[str, ...] = ()
    """Lake Formation: the ARNs of those who get the grants; by default who loads."""
    read_only: bool = False
    reset: bool = False
    form: Form = "cli"


def recipes(destination: DestinationSpec, engine: Engine, asked: Asked) -> tuple[Snippet, ...]:
    """Return what `lakeload policy --for ENGINE` shows, in the order to run it.

    Raises `InvalidInput` where the engine cannot read this destination, or needs a pipeline.
    """
    if engine == "lake-formation":
        return _lake_formation(destination, asked)
    if engine == "snowflake":
        setup = snowflake_setup(destination)
        tables = [snowflake_table(destination, table, asked.tracking) for table in asked.tables]
        branch = _branch("Snowflake", destination)
        return (*branch, *setup, *(snippet for found in tables for snippet in found))
    if not asked.tables:
        raise InvalidInput(
            f"writing queries for `{engine}`: queries are about tables, and a destination does not "
            "say which there are",
            hint="give the pipeline document instead of the destination's",
        )
    if engine == "duckdb":
        access = duckdb_access(destination)
        queries = [
            duckdb_queries(destination, table, asked.tracking, now=asked.now)
            for table in asked.tables
        ]
        return (access, *(snippet for found in queries for snippet in found))
    found = tuple(
        snippet
        for table in asked.tables
        for snippet in athena_queries(
            destination, table, asked.tracking, now=asked.now, nested=asked.nested
        )
    )
    return (*_branch("Athena", destination), *found)


def _branch(engine: str, destination: DestinationSpec) -> tuple[Snippet, ...]:
    """Say what is not seen of tables whose loads go into another branch."""
    written = destination.iceberg.branch
    if destination.table_format != "ICEBERG" or written == "main":
        return ()
    why = (
        f"{engine} reads the branch `main`, and this destination writes into `{written}`: loads "
        "are seen once `main` is brought up to it."
    )
    return (Snippet("which rows are seen", "", why),)


def _lake_formation(destination: DestinationSpec, asked: Asked) -> tuple[Snippet, ...]:
    """A pipeline names its databases, which are then taken to exist."""
    databases = tuple(dict.fromkeys(table.schema for table in asked.tables if table.schema))
    if asked.read_only:
        wanted = reader_grants(destination, databases, asked.principals)
    else:
        wanted = writer_grants(destination, databases, asked.principals, reset=asked.reset)
    return lake_formation_snippets(destination, wanted, asked.form)
