"""DataFrame partitions as iterators of Arrow record batches, handed to a Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_batches(frame: DataFrame, function: BatchFunction, schema: str) -> DataFrame:
    """Do what `DataFrame.mapInArrow` does, without pandas.

    pyspark 4.1 refuses `mapInArrow` on a machine without pandas although neither driver nor
    worker uses it for Arrow batches; importing it would cost every Python process half a second.
    """
    udf = UserDefinedFunction(
        function, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = udf(*[frame[name] for name in frame.columns])
    return ClassicDataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)
