"""The part of the training run that loads Iceberg tables: a table that is appended to and one that
is merged into, each made by a first load and met by a second one."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    JobSpec,
    PartitionField,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.load.catalog_settings import connect
from lakeload_jobs.formats.iceberg.load.write import IcebergLoad, load_table
from lakeload_jobs.jobs.appcds.fake_aws import TrainingAws
from lakeload_jobs.storage.objects import Objects

_ROLE = "arn:aws:iam::000000000000:role/training"
_JOBS = ("first", "second")


def is_for_iceberg(spark: SparkSession) -> bool:
    """Whether this Spark was started as it is for loads of Iceberg tables."""
    return "iceberg" in (spark.conf.get("spark.sql.extensions", "") or "")


def load_iceberg_tables(spark: SparkSession, spec: JobSpec, folder: Path) -> None:
    """Load the tables of `spec` into a lake that is gone afterwards. Raises what a load raises."""
    with TrainingAws() as aws:
        spec = replace(
            spec,
            # Branches are named after it.
            attempt_id=str(uuid.uuid4()),
            destination=_destination(aws.endpoint, folder),
            nested="JSON",
        )
        session = AwsSession(spec.destination, label=spec.attempt_id)
        connect(spark, spec.destination, session)
        objects = Objects(session, spec.destination)
        for job in _JOBS:
            attempt = replace(spec, job_id=job)
            for number, table in enumerate(spec.tables):
                load_table(
                    IcebergLoad(
                        spark,
                        attempt,
                        _table(table, merged=bool(number)),
                        objects,
                        session,
                        enter=lambda stage: None,
                        notify=lambda text: None,
                    )
                )


def _table(table: TableSpec, *, merged: bool) -> TableSpec:
    if merged:
        return replace(table, mode="UPSERT", cursor="happened", primary_key=("id",))
    return replace(table, partition_by=(PartitionField("bucket", "id", 2),))


def _destination(endpoint: str, folder: Path) -> DestinationSpec:
    key = folder / "key"
    key.write_text("training", encoding="utf-8")
    reference = SecretReference("file", str(key))
    return DestinationSpec(
        bucket="training",
        region="us-east-1",
        credentials=CredentialsSpec(
            role_arn=_ROLE, access_key_id=reference, secret_access_key=reference
        ),
        endpoints=EndpointsSpec(s3=endpoint, sts=endpoint, glue=endpoint),
        table_format="ICEBERG",
    )
