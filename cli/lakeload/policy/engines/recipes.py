"""Grants, statements and queries for a destination and, where one is given, a pipeline. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from lakeload.policy.engines.athena import athena_access, athena_queries
from lakeload.policy.engines.duckdb import duckdb_access, duckdb_queries
from lakeload.policy.engines.duckdb_iceberg import duckdb_catalog, duckdb_iceberg_queries
from lakeload.policy.engines.iceberg_queries import iceberg_queries
from lakeload.policy.engines.iceberg_words import spark_words, trino_words
from lakeload.policy.engines.lake_formation import reader_grants, writer_grants
from lakeload.policy.engines.lake_formation_text import Form, lake_formation_snippets
from lakeload.policy.engines.pyiceberg import pyiceberg_access, pyiceberg_queries
from lakeload.policy.engines.snowflake import snowflake_setup, snowflake_table
from lakeload.policy.engines.spark import spark_access
from lakeload.policy.engines.trino import trino_access
from lakeload.policy.text.snippets import Snippet
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, DestinationSpec, Nested, TableSpec

Engine = Literal["lake-formation", "athena", "spark", "duckdb", "pyiceberg", "snowflake", "trino"]


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

    @property
    def then(self) -> datetime:
        """An example time in the past."""
        return self.now.astimezone(UTC) - timedelta(days=1)


def recipes(destination: DestinationSpec, engine: Engine, asked: Asked) -> tuple[Snippet, ...]:
    """Return what `lakeload policy --for ENGINE` shows, in the order to run it.

    Raises `InvalidInput` where the engine cannot read this destination, or needs a pipeline.
    """
    if engine == "lake-formation":
        return _lake_formation(destination, asked)
    if engine not in ("athena", "duckdb"):
        _require_iceberg(destination, engine)
    write = {
        "athena": _athena,
        "spark": _spark,
        "duckdb": _duckdb,
        "pyiceberg": _pyiceberg,
        "snowflake": _snowflake,
        "trino": _trino,
    }[engine]
    return tuple(write(destination, asked))


def readers(destination: DestinationSpec, asked: Asked) -> tuple[Engine, ...]:
    """Return the engines that can read this destination, the one most at hand first."""
    found: list[Engine] = []
    for engine in _READERS:
        with contextlib.suppress(InvalidInput):
            recipes(destination, engine, asked)
            found.append(engine)
    return tuple(found)


_READERS: tuple[Engine, ...] = ("athena", "spark", "duckdb", "pyiceberg", "snowflake", "trino")


def _athena(destination: DestinationSpec, asked: Asked) -> Iterator[Snippet]:
    _require_tables(asked, "athena")
    yield from _branch("Athena", destination)
    yield from athena_access(destination)
    for table in asked.tables:
        yield from athena_queries(
            destination, table, asked.tracking, now=asked.now, nested=asked.nested
        )


def _spark(destination: DestinationSpec, asked: Asked) -> Iterator[Snippet]:
    yield spark_access(destination)
    for table in asked.tables:
        words = spark_words(table, asked.then, destination.iceberg.branch)
        yield from iceberg_queries(table, words, asked.tracking)


def _duckdb(destination: DestinationSpec, asked: Asked) -> Iterator[Snippet]:
    if destination.table_format == "ICEBERG":
        yield from _branch("DuckDB", destination)
        yield from duckdb_catalog(destination)
        for table in asked.tables:
            yield from duckdb_iceberg_queries(destination, table, asked.tracking, asked.then)
        return
    _require_tables(asked, "duckdb")
    yield duckdb_access(destination)
    for table in asked.tables:
        yield from duckdb_queries(destination, table, asked.tracking, now=asked.now)


def _pyiceberg(destination: DestinationSpec, asked: Asked) -> Iterator[Snippet]:
    yield pyiceberg_access(destination, tables=bool(asked.tables))
    for table in asked.tables:
        yield from pyiceberg_queries(destination, table, asked.tracking, asked.then)


def _snowflake(destination: DestinationSpec, asked: Asked) -> Iterator[Snippet]:
    setup = snowflake_setup(destination)
    yield from _branch("Snowflake", destination)
    yield from setup
    for table in asked.tables:
        yield from snowflake_table(destination, table, asked.tracking, asked.then)


def _trino(destination: DestinationSpec, asked: Asked) -> Iterator[Snippet]:
    yield trino_access(destination, asked.tables)
    for table in asked.tables:
        words = trino_words(table, asked.then, destination.iceberg.branch)
        yield from iceberg_queries(table, words, asked.tracking)


def _require_tables(asked: Asked, engine: Engine) -> None:
    if not asked.tables:
        raise InvalidInput(
            f"writing queries for `{engine}`: queries are about tables, and a destination does not "
            "say which there are",
            hint="give the pipeline document instead of the destination's",
        )


def _require_iceberg(destination: DestinationSpec, engine: Engine) -> None:
    if destination.table_format != "ICEBERG":
        raise InvalidInput(
            f"writing what `{engine}` needs: the destination's `table_format` is `PARQUET`, and "
            "that is written for Iceberg tables alone",
            hint="`--for athena` and `--for duckdb` write queries for Parquet files",
        )


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
