"""Counts of rows that Spark makes: of one column, or of all that a load would make."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeload_jobs.formats.data_files.parts import of_frame


def test_count_of_all_columns_fails_for_a_row_that_cannot_be_read(spark: SparkSession) -> None:
    wrong = F.when(F.col("id") == 2, F.raise_error(F.lit("broken"))).otherwise(F.lit("good"))
    rows = of_frame(spark.range(0, 4, 1, 2).select("id", wrong.alias("text")))

    one, every = (rows.to_count(all_columns=wanted).frame for wanted in (False, True))
    assert one is not None
    assert every is not None
    assert len(one.collect()) == 4
    with pytest.raises(Exception, match="broken"):
        every.collect()
