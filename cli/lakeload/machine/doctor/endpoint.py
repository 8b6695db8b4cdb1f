"""Which S3 endpoint a load would speak to."""

from __future__ import annotations

from urllib.parse import urlsplit

from lakeload.machine.doctor.model import Patient
from lakeload.machine.jars.download import without_login
from lakeload_jobs.core.aws_partitions import domain

_DEFAULT_REGION = "us-east-1"


def endpoint_of(patient: Patient) -> str:
    """Return the URL of the destination's S3 endpoint, or of AWS's in the environment's region."""
    destination, variables = patient.need.destination, patient.environment
    if destination is not None and destination.endpoints.s3:
        return destination.endpoints.s3
    if variables.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() != "true":
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            if value := variables.get(name):
                return value
    region = destination.region if destination is not None else ""
    # boto3 reads AWS_DEFAULT_REGION; the other SDKs read AWS_REGION.
    region = region or variables.get("AWS_DEFAULT_REGION") or variables.get("AWS_REGION", "")
    region = region or _DEFAULT_REGION
    return f"https://s3.{region}.{domain(region)}/"


def without_userinfo(url: str) -> str:
    """Return a URL without user, password and query, for people."""
    return urlsplit(without_login(url))._replace(query="").geturl()
