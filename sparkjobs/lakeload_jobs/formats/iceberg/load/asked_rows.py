"""Questions that a load has about the rows of its table: only Spark reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.load.tables import spark_name
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts, branch_with_rows, head_of
from lakeload_jobs.rows.casts import quoted


@dataclass(frozen=True)
class AskedTable:
    """A table, by its metadata and, where that does not tell, by Spark."""

    tables: CatalogTables
    catalog: SparkCatalog
    spark: SparkSession
    table: TableSpec

    def has_rows(self, branch: str, facts: TableFacts, job_id: str) -> bool | None:
        """Return whether the branch has rows of a job; None where the table cannot be asked."""
        if "_supa_job_id" not in facts.columns:
            return None
        if head_of(facts, branch) is None:
            return False
        spark = self._opened("whether it has rows of a job")
        rows = spark.read.option("branch", branch_with_rows(facts, branch))
        found = rows.table(self._name).where(F.col("_supa_job_id") == job_id)
        return not found.limit(1).isEmpty()

    def count_nulls(self, branch: str, columns: Sequence[str]) -> dict[str, int]:
        """Return how many rows of a branch have null in each of these columns."""
        branch = branch_with_rows(facts_of(self.tables.existing(self.table)), branch)
        rows = self._opened("which rows have no value in a column").read.option("branch", branch)
        counts = [F.count_if(F.col(quoted(column)).isNull()) for column in columns]
        found = rows.table(self._name).select(*counts).collect()[0]
        return {column: int(count) for column, count in zip(columns, found, strict=True)}

    @property
    def _name(self) -> str:
        return spark_name(self.table.schema, self.table.table)

    def _opened(self, question: str) -> SparkSession:
        self.catalog.open_in(
            self.spark, self.table.target, f"its rows say {question}, and Spark reads them"
        )
        return self.spark
