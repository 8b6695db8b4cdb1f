"""destination.yml: one bucket and prefix, and how to get at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from lakeload.config.credentials import Credentials
from lakeload.config.model import Finding, Model, refusals
from lakeload.config.scalars import (
    REGION,
    Bucket,
    Endpoint,
    FileNamePattern,
    FileSize,
    GluePrefix,
    Prefix,
    Region,
    Text,
)
from lakeload.config.secret_names import shown
from lakeload.documents.iceberg import Iceberg
from lakeload_jobs.contract.spec import PartitionStrategy, TableFormat
from lakeload_jobs.core.aws_partitions import AWS_DOMAINS, domain, regions
from lakeload_jobs.core.names import nearest


class Endpoints(Model):
    """URLs of the services, for VPC and FIPS endpoints and for emulators."""

    s3: Endpoint = ""
    """S3; empty for AWS."""
    sts: Endpoint = ""
    """STS; empty for the regional endpoint of AWS."""
    glue: Endpoint = ""
    """AWS Glue; empty for the regional endpoint of AWS."""


class Encryption(Model):
    """Server-side encryption, sent with every upload and every check."""

    type: Literal["NONE", "SSE_S3", "SSE_KMS"] = "NONE"
    """`NONE` leaves it to the bucket's default."""
    kms_key_id: Text | None = None
    """Id, ARN or alias of the key; with SSE_KMS only. Without it: the key `aws/s3`."""

    @model_validator(mode="after")
    def _key_fits(self) -> Encryption:
        if self.kms_key_id is not None and self.type != "SSE_KMS":
            message = f"`kms_key_id` has no effect with type {self.type}"
            raise refusals([Finding(message, "write `type: SSE_KMS`", ("kms_key_id",))])
        return self


class Parquet(Model):
    """Layout of Parquet files below the table's folder."""

    update_glue_catalog: bool = False
    """Create and update a Glue table for each table; all names are then in lower case."""
    partition_strategy: PartitionStrategy = "HOUR"
    """`HOUR` yyyy/MM/dd/HH, `DAY` yyyy/MM/dd, `SYNC_ID` the job's id, `NONE` no folder. UTC."""
    file_name_pattern: FileNamePattern = Field(default="part-{supa_job_id}-{seq}")
    """Variables: {seq} {uuid} {timestamp} {supa_job_id} {date}; `.gzip.parquet` is added."""
    upload_parallelism: Annotated[int, Field(ge=1, le=10)] = 5
    """Concurrent uploads to S3 of each process."""
    partition_projection: bool = False
    """Athena partition projection in place of registered partitions; needs Glue."""

    @model_validator(mode="after")
    def _projection_has_partitions(self) -> Parquet:
        if not self.partition_projection:
            return self
        at = ("partition_projection",)
        found = []
        if not self.update_glue_catalog:
            message = "`partition_projection` is a property of Glue tables, and Glue is off"
            found.append(Finding(message, "add `update_glue_catalog: true`, or remove it", at))
        if self.partition_strategy == "NONE":
            message = "`partition_projection` needs partitions, and `partition_strategy` is NONE"
            found.append(Finding(message, "choose DAY, HOUR or SYNC_ID, or remove it", at))
        if found:
            raise refusals(found)
        return self


class Destination(Model):
    """Where the data goes."""

    version: Literal[1]
    """The version of this format."""
    bucket: Bucket
    """The bucket's name."""
    region: Region
    """The bucket's region."""
    prefix: Prefix = ""
    """The path below the bucket; empty for its root."""
    credentials: Credentials = Credentials()
    endpoint_url: Endpoint = ""
    """An S3-compatible store; short for `endpoints.s3`. Empty for AWS."""
    endpoints: Endpoints = Endpoints()
    addressing_style: Literal["AUTO", "PATH", "VIRTUAL"] = "AUTO"
    """How the bucket is named in URLs; `AUTO` is path style with an S3 endpoint of your own."""
    single_writer: bool = False
    """`true` for stores without conditional writes, and then for one writer at a time."""
    encryption: Encryption = Encryption()
    target_file_size: FileSize = 1 << 30
    """About the encoded size at which a file ends and the next begins, 1MiB to 64GiB."""
    table_format: TableFormat = "PARQUET"
    """Parquet files, which are appended to, or Iceberg tables, also replaced and changed by key."""
    glue_database_prefix: GluePrefix = ""
    """The first part of Glue database names, where Glue is the catalog."""
    parquet: Parquet = Parquet()
    iceberg: Iceberg = Iceberg()

    @model_validator(mode="after")
    def _one_s3_endpoint(self) -> Destination:
        if self.endpoint_url and self.endpoints.s3:
            message = "`endpoint_url` and `endpoints.s3` are the same setting"
            raise refusals([Finding(message, "remove one of them", ("endpoint_url",))])
        return self


NO_REGION = "auto"
"""What Cloudflare's store calls its only region."""


def region_findings(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield that the region is a misspelt one of AWS; a store with an endpoint names its own."""
    region, endpoints = data.get("region"), data.get("endpoints")
    own_store = data.get("endpoint_url") or (isinstance(endpoints, dict) and endpoints.get("s3"))
    if not own_store and isinstance(region, str) and (meant := _meant_region(region)):
        hint = f"did you mean `{meant}`? `pip install --upgrade boto3` brings newer ones"
        yield Finding(_not_of_aws(region), hint, ("region",))


def region_notes(model: Destination) -> Iterator[Finding]:
    """Yield that the region is none of AWS's, where nothing says which store has it instead."""
    known = model.region in (*regions(), NO_REGION) or _meant_region(model.region)
    if not (known or model.endpoint_url or model.endpoints.s3):
        hint = "AWS has regions such as `us-east-1`; set `endpoint_url` for another store"
        yield Finding(_not_of_aws(model.region), hint, ("region",), "unknown-region")


def own_store(url: str) -> bool:
    """Return True for the S3 endpoint of a store other than AWS's; VPC endpoints are AWS's."""
    return bool(url) and not (urlsplit(url).hostname or "").endswith(AWS_DOMAINS)


def role_notes(model: Destination) -> Iterator[Finding]:
    """Yield that a role is assumed at AWS's STS, where the bucket is another store's."""
    s3 = model.endpoint_url or model.endpoints.s3
    if model.credentials.role_arn and own_store(s3) and not model.endpoints.sts:
        host = f"sts.{model.region}.{domain(model.region)}"
        yield Finding(
            f"the role is assumed at AWS (`{host}`), and the bucket is at `{shown(s3)}`",
            f"a store with roles of its own has an STS: add `endpoints: {{sts: {shown(s3)}}}`",
            ("credentials", "role_arn"),
            "sts-of-aws",
        )


def _meant_region(region: str) -> str | None:
    """Return the region of AWS that a misspelt one or a city stands for, if that is clear."""
    if region in (*regions(), NO_REGION) or not REGION.fullmatch(region):
        return None
    letters = sorted(region.replace("-", ""))
    likely = (
        name
        for name, about in regions().items()
        if sorted(name.replace("-", "")) == letters
        or name.startswith(f"{region}-")
        or f"({region})" in about.lower()
    )
    return next(likely, None) or nearest(region, regions())


def _not_of_aws(region: str) -> str:
    return f"`{shown(region)}` is not a region of AWS that boto3 knows"
