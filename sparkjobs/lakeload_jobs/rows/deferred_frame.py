"""DataFrames that are made when they are first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType


class DeferredFrame:
    """A DataFrame that is made when somebody reads it, and its schema, which is known before.

    The first DataFrame of a process makes Java load Spark's SQL engine: two seconds of CPU, which a
    load whose rows never pass through Spark does not need.
    """

    def __init__(self, schema: StructType, make: Callable[[], DataFrame]) -> None:
        self.schema = schema
        self._make = make

    @classmethod
    def made(cls, frame: DataFrame) -> DeferredFrame:
        """Return a frame that is there already."""
        return cls(frame.schema, lambda: frame)

    @cached_property
    def frame(self) -> DataFrame:
        """The rows."""
        return self._make()
