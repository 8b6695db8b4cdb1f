"""Rows of PostgreSQL by Spark's JDBC source, in the same snapshot and by the same SELECT.

Spark hands over numbers, booleans, bytes and text. All other values are text until Python casts
them, by the code that reads without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from urllib.parse import quote

import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakeload_jobs.rows.batches import map_batches
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.sources.databases.columns import SelectedColumn
from lakeload_jobs.sources.databases.engines.base import host_of
from lakeload_jobs.sources.databases.engines.postgres.adbc import ReadPart
from lakeload_jobs.sources.databases.engines.postgres.connection import session_settings
from lakeload_jobs.sources.databases.engines.postgres.snapshot import (
    ExportedSnapshot,
    PostgresPart,
    select_sql,
)
from lakeload_jobs.sources.databases.engines.postgres.sql import literal

_AS_IS = ("boolean", "smallint", "int", "bigint", "float", "double", "string", "binary")
"""Types whose values JDBC and Spark do not change."""
_FETCHED = 1000
"""Rows of one fetch. Without this the driver holds all rows, and the snapshot is not imported:
Spark leaves autocommit on."""
_PARAMETERS = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "application_name": "ApplicationName",
    "connect_timeout": "connectTimeout",
    "options": "options",
}
"""The parameters of libpq under the names of the driver."""


def part_frames(
    spark: SparkSession,
    snapshot: ExportedSnapshot,
    reader: ReadPart,
    parts: Sequence[PostgresPart],
) -> DataFrame:
    """Return the rows of parts, part n as partition n, in the columns of `reader`."""
    schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
    options = _options(snapshot.connection, reader)
    carried = replace(reader, selected=tuple(map(_carried, reader.selected)))
    frames = [
        map_batches(_read(spark, options, carried, part), _Convert(carried, part), schema)
        for part in parts
    ]
    return reduce(DataFrame.unionAll, frames)


@dataclass(frozen=True)
class _Convert:
    """The function of the task that reads one part."""

    reader: ReadPart
    part: PostgresPart

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with failures_for_driver("stage"):
            yield from self.reader.converted(self.part, batches)


def _carried(column: SelectedColumn) -> SelectedColumn:
    if column.carried == "TEXT" or column.type in _AS_IS:
        return column
    return replace(column, expression=f"({column.expression})::text", carried="TEXT")


def _read(
    spark: SparkSession, options: Mapping[str, str], reader: ReadPart, part: PostgresPart
) -> DataFrame:
    # Names by place: Spark does not read two columns that differ in case only.
    select = select_sql(reader.relation, reader.selected, part, by_place=True)
    kinds = ["string" if one.carried == "TEXT" else one.type for one in reader.selected]
    if any(column.bad for column in reader.selected):
        kinds.append("int")
    schema = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
    table = f"({select}) AS t"
    return spark.read.format("jdbc").options(**options, dbtable=table, customSchema=schema).load()


def _options(connection: psycopg.Connection[Any], reader: ReadPart) -> dict[str, str]:
    """Return the options of Spark's source, with the login that libpq has found. The password is
    in the option that Spark hides in all it shows."""
    read, info = reader.read, connection.info
    given = info.get_parameters()
    own = {name: given[libpq] for libpq, name in _PARAMETERS.items() if libpq in given}
    if own.get("sslrootcert") == "system":
        del own["sslrootcert"]
        own["sslfactory"] = "org.postgresql.ssl.DefaultJavaSSLFactory"
    elif "sslrootcert" in own and own.get("sslmode") == "require":
        # With a certificate it means more to libpq than to the driver.
        own["sslmode"] = "verify-ca"
    return own | {
        "url": f"jdbc:postgresql://{host_of(read)}:{read.port}/{quote(read.name, safe='')}",
        "driver": "org.postgresql.Driver",
        "user": info.user,
        "password": info.password,
        "tcpKeepAlive": "true",
        "fetchsize": str(_FETCHED),
        # In this order: nothing can be read before the snapshot is set.
        "sessionInitStatement": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; "
        f"SET TRANSACTION SNAPSHOT {literal(reader.snapshot)}; {session_settings(read)}",
    }
