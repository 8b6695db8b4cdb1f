"""What the pyiceberg and dlt peers share: the role's keys, the 18 columns, the dedupe.

Neither needs a JVM; both hold the rows as one Arrow table, as their interfaces want it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime

import boto3
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY = "order_id"


@dataclass(frozen=True)
class Place:
    """Where the table is, as the arguments of a peer say it."""

    endpoint: str
    region: str
    role_arn: str
    warehouse: str

    def catalog(self) -> dict[str, str]:
        """Properties of pyiceberg's Glue catalog, with the keys of the assumed role in them."""
        keys = self.assumed()
        return {
            "type": "glue",
            "glue.endpoint": self.endpoint,
            "s3.endpoint": self.endpoint,
            # An emulator that shares the cores with its client may be slow to answer.
            "s3.connect-timeout": "60",
            "s3.request-timeout": "300",
            "client.region": self.region,
            "client.access-key-id": keys["AccessKeyId"],
            "client.secret-access-key": keys["SecretAccessKey"],
            "client.session-token": keys["SessionToken"],
            "warehouse": self.warehouse,
        }

    def assumed(self) -> dict[str, str]:
        """Assume the role, with the ExternalId from the environment, and return its keys."""
        sts = boto3.client("sts", endpoint_url=self.endpoint, region_name=self.region)
        answer = sts.assume_role(
            RoleArn=self.role_arn,
            RoleSessionName="bench",
            ExternalId=os.environ["LAKELOAD_EXTERNAL_ID"],
        )
        found = answer["Credentials"]
        return {name: found[name] for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")}


def rows(source: str, job_id: str) -> pa.Table:
    """The Parquet files below `source` with the tracking columns."""
    read = pq.read_table(source)
    count = read.num_rows
    texts = read.column(KEY).cast(pa.string()).to_pylist()
    ids = pa.array((hashlib.sha256(text.encode()).hexdigest() for text in texts), pa.string())
    now = pa.scalar(datetime.now(UTC), pa.timestamp("us", tz="UTC"))
    return (
        read.append_column("_supa_synced", pa.repeat(now, count))
        .append_column("_supa_deleted", pa.repeat(pa.scalar(False), count))
        .append_column("_supa_index", pa.array(range(count), pa.int64()))
        .append_column("_supa_id", ids)
        .append_column("_supa_job_id", pa.repeat(pa.scalar(job_id), count))
    )


def latest(table: pa.Table) -> pa.Table:
    """The last row of each key; `_supa_index` is the place of a row in the table."""
    last = table.group_by(KEY).aggregate([("_supa_index", "max")]).column("_supa_index_max")
    return table.take(pc.take(last, pc.sort_indices(last)))
