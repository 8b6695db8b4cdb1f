"""DataFrame partitions as iterators of Arrow record batches, handed to a Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import BarrierTaskContext, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_batches(
    frame: DataFrame, function: BatchFunction, schema: str | StructType, *, at_once: bool = False
) -> DataFrame:
    """Do what `DataFrame.mapInArrow` does, without pandas. `at_once`: Spark starts all tasks at the
    same time or none (barrier mode), and does not try one of them again.

    pyspark 4.1 refuses `mapInArrow` on a machine without pandas although neither driver nor
    worker uses it for Arrow batches; importing it would cost every Python process half a second.
    """
    udf = UserDefinedFunction(
        function, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = udf(*[frame[name] for name in frame.columns])
    return ClassicDataFrame(frame._jdf.mapInArrow(column._jc, at_once, None), frame.sparkSession)


def tasks_at_once() -> int:
    """Return how many tasks the running session can start at the same time, at least 1."""
    context = SparkContext._active_spark_context
    # Barrier mode does not wait for executors that have to be started first.
    if context is None or context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return 1
    java = context._jsc.sc()
    profile = java.resourceProfileManager().defaultResourceProfile()
    return max(1, int(java.maxNumConcurrentTasks(profile)))


def barrier_task() -> BarrierTaskContext:
    """Return the task that runs, which can wait for those that were started `at_once` with it."""
    return BarrierTaskContext.get()


def part_numbers(spark: SparkSession, count: int) -> DataFrame:
    """Return the numbers from 0 to `count`, without the latter, each in a partition of its own."""
    return spark.range(0, count, 1, max(count, 1))


def numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """Yield the numbers that a task of `part_numbers` is given."""
    for batch in batches:
        yield from (int(value) for value in batch.column(0).to_pylist() if value is not None)
