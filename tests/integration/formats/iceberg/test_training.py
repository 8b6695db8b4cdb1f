"""The training run of the AppCDS archive, in a Spark that has Iceberg's jars."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.jobs import appcds as train
from lakeload_jobs.jobs import appcds as train_iceberg
from lakeload_jobs.jobs.appcds import TrainingAws


def test_appcds_training_run_loads_iceberg_tables_into_the_fake_aws(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[TrainingAws] = []

    def remembered() -> TrainingAws:
        made.append(TrainingAws())
        return made[-1]

    monkeypatch.setattr(train_iceberg, "TrainingAws", remembered)

    assert train.main(str(tmp_path / "spec.json")) == 0

    [aws] = made
    assert {table["Parameters"]["table_type"] for table in aws.tables.values()} == {"ICEBERG"}
    merged = [table for (_, name), table in aws.tables.items() if name != "sample_csv"]
    assert len(merged) == 2
    # Made, staged and published, and met by a second load that did both again.
    assert all(int(table["VersionId"]) >= 6 for table in aws.tables.values())
