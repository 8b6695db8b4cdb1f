"""What Spark knows of a table's files, handed to the direct reader."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.sources.base import Splits
from lakeload_jobs.sources.files.direct_parquet import NotDirect, split_parquet
from lakeload_jobs.sources.files.file_state import is_s3, normal_path, partition_base
from lakeload_jobs.sources.files.spark.reader import FilesRows

_CALENDARS = {
    "datetimerebasemode": "spark.sql.parquet.datetimeRebaseModeInRead",
    "int96rebasemode": "spark.sql.parquet.int96RebaseModeInRead",
}
"""Reader options that may choose another calendar for old dates, and the same as properties."""

_SHIFTED = "spark.sql.parquet.int96TimestampConversion"


def split_rows(spark: SparkSession, rows: FilesRows, columns: ColumnsSpec) -> Splits:
    """Return the rows of Parquet files as the direct reader splits them, with those columns that
    are loaded. Raises `NotDirect` where only Spark reads them as Spark does."""
    given = rows.given
    options = {name.lower(): value for name, value in given.options.items()}
    if given.format != "PARQUET":
        raise NotDirect(f"{given.format} is read by Spark")
    if any(is_s3(file.path) for file in rows.files):
        raise NotDirect("the files are in S3")
    for option, name in _CALENDARS.items():
        if options.get(option, str(spark.conf.get(name))).upper() != "CORRECTED":
            raise NotDirect(f"`{name}` is set")
    if str(spark.conf.get(_SHIFTED)).lower() != "false":
        raise NotDirect(f"`{_SHIFTED}` is set")
    base = _base(rows, options)
    loaded = [
        field
        for field in rows.frame.schema
        if field.name in rows.names
        and (not columns.include or field.name in columns.include)
        and field.name not in columns.exclude
    ]
    try:
        schema = to_arrow_schema(StructType(loaded))
    except PySparkException as error:
        raise NotDirect("a column has a type that only Spark has") from error
    cores = spark.sparkContext.defaultParallelism
    typed = frozenset(columns.types or ())
    return split_parquet(rows.files, schema, base=base, typed=typed, parallelism=cores)


def _base(rows: FilesRows, options: dict[str, str]) -> str | None:
    if options.get("recursivefilelookup", "false").lower() == "true":
        return None
    if "basepath" in options:
        return normal_path(options["basepath"].removeprefix("file:"))
    return partition_base(rows.files, rows.given.options)
