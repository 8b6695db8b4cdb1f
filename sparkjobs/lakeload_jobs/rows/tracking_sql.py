"""Tracking columns and the row id as Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, TRACKING_TYPES
from lakeload_jobs.rows.casts import quoted
from lakeload_jobs.rows.tracking import DELETED_HELPER, HELPER_PREFIX, POSITION_BITS

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def row_id(columns: Sequence[tuple[Column, T.DataType]]) -> Column:
    """Return the expression of a row's id; `columns` are the key, in order.

    The session's time zone must be UTC. Raises `ValueError` without columns and `InvalidInput` for
    a type that has no encoding.
    """
    if not columns:
        raise ValueError("a row id needs at least one column")
    encoded = [encoding(column, kind) for column, kind in columns]
    return F.sha2(F.concat(*encoded).cast("binary"), 256)


def encoding(column: Column, kind: T.DataType) -> Column:
    """Return the expression of a value's encoding; never null. Bytes travel as strings, which
    Spark does not look into."""
    return F.coalesce(_encoding(column, kind), F.lit("~"))


def _encoding(column: Column, kind: T.DataType) -> Column:
    """Return the encoding, null for null."""
    if isinstance(kind, T.BooleanType):
        return F.when(column, F.lit("b1;")).when(~column, F.lit("b0;"))
    if isinstance(kind, _INTEGERS):
        return _tagged("n", column.cast("string"))
    if isinstance(kind, T.DecimalType):
        return _tagged("n", _shortest(column, kind))
    if isinstance(kind, T.FloatType | T.DoubleType):
        return _tagged("f", _bits(column))
    if isinstance(kind, T.StringType | T.VarcharType | T.CharType):
        return _counted("s", column)
    if isinstance(kind, T.BinaryType):
        return _counted("x", column)
    if isinstance(kind, T.DateType):
        return _tagged("d", F.unix_date(column).cast("string"))
    if isinstance(kind, T.TimestampType):
        return _tagged("u", F.unix_micros(column).cast("string"))
    if isinstance(kind, T.TimestampNTZType):
        return _tagged("l", F.unix_micros(column.cast("timestamp")).cast("string"))
    return _nested(column, kind)


def _nested(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        elements = F.transform(column, lambda value: encoding(value, element))
        return F.concat(F.lit("["), F.array_join(elements, ""), F.lit("]"))
    if isinstance(kind, T.MapType):
        keys, values = kind.keyType, kind.valueType
        entries = F.transform(
            F.map_entries(column),
            lambda entry: F.concat(
                encoding(entry.getField("key"), keys), encoding(entry.getField("value"), values)
            ),
        )
        # Spark compares text by its bytes; the order of entries in a map means nothing.
        return F.concat(F.lit("("), F.array_join(F.array_sort(entries), ""), F.lit(")"))
    if isinstance(kind, T.StructType):
        fields = [encoding(column.getField(f.name), f.dataType) for f in kind.fields]
        return F.when(column.isNotNull(), F.concat(F.lit("{"), *fields, F.lit("}")))
    raise InvalidInput(
        f"a key column of type `{kind.simpleString()}` has no row id",
        hint="choose another `primary_key`, or cast the column with `columns.types`",
    )


def _shortest(column: Column, kind: T.DecimalType) -> Column:
    """Return the shortest plain text: 1.50 as `1.5`, 2.00 as `2`."""
    text = column.cast("string")
    if kind.scale <= 0:
        return text
    return F.rtrim(F.rtrim(text, F.lit("0")), F.lit("."))


def _bits(column: Column) -> Column:
    """Return the IEEE 754 bits of the double as decimal text; one zero and one NaN."""
    double = column.cast("double") + F.lit(0.0)  # -0.0 + 0.0 is 0.0
    bits = F.reflect(F.lit("java.lang.Double"), F.lit("doubleToLongBits"), double)
    # Java's method takes no null.
    return F.when(column.isNotNull(), bits)


def _tagged(tag: str, text: Column) -> Column:
    return F.concat(F.lit(tag), text, F.lit(";"))


def _counted(tag: str, value: Column) -> Column:
    size = F.octet_length(value).cast("string")
    return F.concat(F.lit(tag), size, F.lit(":"), value.cast("string"))


_KINDS = {
    kind.simpleString(): kind
    for kind in (T.TimestampType(), T.BooleanType(), T.LongType(), T.StringType())
}
TRACKING_SQL_TYPES: dict[str, T.DataType] = {
    name: _KINDS[kind] for name, kind in TRACKING_TYPES.items()
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def with_tracking(
    frame: DataFrame,
    *,
    counts: Sequence[int] | None,
    synced: datetime,
    job_id: str,
    key_columns: Sequence[str],
    columns: Sequence[str] = TRACKING_COLUMNS,
    before: int = 0,
) -> DataFrame:
    """Return the frame with the tracking columns `columns` behind its data columns.

    `counts` are the rows of each partition of `frame`, as they were counted; without them the index
    has gaps. The first row has the index `before` + 1. Helpers stay, at the end. `key_columns` are
    target names; without any, all data columns make `_supa_id`.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    data = [name for name in frame.columns if not name.startswith(HELPER_PREFIX)]
    helpers = [name for name in frame.columns if name.startswith(HELPER_PREFIX)]
    makers: dict[str, Callable[[], Column]] = {
        "_supa_synced": lambda: F.timestamp_micros(F.lit(_micros(synced))),
        "_supa_deleted": lambda: deleted(frame),
        "_supa_index": lambda: _index(counts) + F.lit(before),
        "_supa_id": lambda: row_id(
            [(F.col(quoted(name)), kinds[name]) for name in key_columns or data]
        ),
        "_supa_job_id": lambda: F.lit(job_id),
    }
    tracked = [makers[name]().alias(name) for name in TRACKING_COLUMNS if name in columns]
    return frame.select(*map(quoted, data), *tracked, *helpers)


def deleted(frame: DataFrame) -> Column:
    """Return whether the source says that a row is deleted."""
    if DELETED_HELPER not in frame.columns:
        return F.lit(False)
    return F.coalesce(F.col(DELETED_HELPER), F.lit(False))


def _index(counts: Sequence[int] | None) -> Column:
    """Number rows from 1: those of the partitions before, and the position in this one."""
    if counts is None:
        return F.monotonically_increasing_id() + F.lit(1)
    position = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << POSITION_BITS) - 1))
    if len(counts) <= 1:
        return position + F.lit(1)
    before = [sum(counts[:number]) + 1 for number in range(len(counts))]
    first = F.array(*(F.lit(number).cast("long") for number in before))
    return F.get(first, F.spark_partition_id()) + position


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)
