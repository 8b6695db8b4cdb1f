"""Columns of a load in the shape the table has them: fields that are gone are null."""

from __future__ import annotations

import json

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.formats.iceberg.load.java import Java, jvm
from lakeload_jobs.rows.tracking import HELPER_PREFIX


def table_columns(spark: SparkSession, java_table: Java) -> T.StructType:
    """Return the table's columns as Spark's types."""
    convert = jvm(spark).org.apache.iceberg.spark.SparkSchemaUtil.convert
    return T.StructType.fromJson(json.loads(convert(java_table.schema()).json()))


def conform(frame: DataFrame, table: T.StructType) -> DataFrame:
    """Return the frame with structs that have every field of the table's, in its order.

    Columns the load does not have are left out: they are null in new rows. Helpers stay.
    """
    known = {field.name: field.dataType for field in table.fields}
    values = []
    for field in frame.schema.fields:
        value = F.col(f"`{field.name}`")
        if not field.name.startswith(HELPER_PREFIX) and field.name in known:
            value = _shaped(value, field.dataType, known[field.name]).alias(field.name)
        values.append(value)
    return frame.select(*values)


def _shaped(column: Column, now: T.DataType, table: T.DataType) -> Column:
    if not _lacks(now, table):
        return column
    if isinstance(now, T.StructType) and isinstance(table, T.StructType):
        own = {field.name.lower(): field for field in now.fields}
        fields = []
        for field in table.fields:
            given = own.get(field.name.lower())
            value = (
                F.lit(None).cast(field.dataType)
                if given is None
                else _shaped(column.getField(given.name), given.dataType, field.dataType)
            )
            fields.append(value.alias(field.name))
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(now, T.ArrayType) and isinstance(table, T.ArrayType):
        element, wanted = now.elementType, table.elementType
        return F.transform(column, lambda value: _shaped(value, element, wanted))
    if isinstance(now, T.MapType) and isinstance(table, T.MapType):
        value_type, value_wanted = now.valueType, table.valueType
        return F.transform_values(column, lambda _, v: _shaped(v, value_type, value_wanted))
    return column


def _lacks(now: T.DataType, table: T.DataType) -> bool:
    """Whether a struct at some depth has other fields than the table's, or in another order."""
    if isinstance(now, T.StructType) and isinstance(table, T.StructType):
        if now.names != table.names:
            return True
        pairs = zip(now.fields, table.fields, strict=True)
        return any(_lacks(one.dataType, other.dataType) for one, other in pairs)
    if isinstance(now, T.ArrayType) and isinstance(table, T.ArrayType):
        return _lacks(now.elementType, table.elementType)
    if isinstance(now, T.MapType) and isinstance(table, T.MapType):
        return _lacks(now.valueType, table.valueType)
    return False
