"""AWS's signature for requests that boto3 does not send: those to Iceberg REST catalogs."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from lakeload_jobs.aws.session import AwsSession


def signed_headers(
    session: AwsSession,
    *,
    method: str,
    url: str,
    body: bytes,
    content_type: str | None,
    name: str,
    region: str,
) -> dict[str, str]:
    """Return the headers that sign this request as the identity that writes.

    `name` is the service's signing name (`glue`, `s3tables`). Raises what `AwsSession.keys` raises.
    """
    keys = session.keys()
    token = keys.session_token.reveal() if keys.session_token else None
    headers = {"host": urlsplit(url).netloc.rpartition("@")[2]}
    if content_type:
        headers["content-type"] = content_type
    headers["x-amz-content-sha256"] = sha256(body).hexdigest()
    request = AWSRequest(method=method, url=url, data=body, headers=headers)
    secret = keys.secret_access_key.reveal()
    SigV4Auth(Credentials(keys.access_key_id, secret, token), name, region).add_auth(request)
    return {key: str(value) for key, value in request.headers.items() if key.lower() != "host"}
