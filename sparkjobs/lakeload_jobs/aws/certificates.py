"""Which certificates boto3 trusts."""

from __future__ import annotations

from botocore.httpsession import get_cert_path
from botocore.session import get_session

from lakeload_jobs.aws.errors import aws_call


def trusted_certificates() -> str:
    """Return the file of authorities that boto3 would go by: AWS_CA_BUNDLE, `ca_bundle` of the
    profile, or those it brings.

    Raises `AwsError` when AWS's configuration cannot be read.
    """
    with aws_call("reading AWS's configuration"):
        configured = get_session().get_config_variable("ca_bundle")
    return str(configured or get_cert_path(True))
