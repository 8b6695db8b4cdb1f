"""`_supa_id` as a Spark expression: the bytes of `rows.encoding`, without leaving the JVM.

docs/row-id.md is the contract; a test holds both to it over every type (docs/decisions/0082).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import InvalidInput

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
