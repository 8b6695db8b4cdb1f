"""Clients of AWS services: endpoints, certificates, signatures."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal

import boto3
from botocore.config import Config
from botocore.exceptions import InvalidRegionError
from botocore.httpsession import get_cert_path
from botocore.parsers import ResponseParserError
from botocore.session import get_session

from lakeload_jobs import __version__
from lakeload_jobs.aws.errors import aws_call
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec

if TYPE_CHECKING:
    from botocore.model import OperationModel
    from mypy_boto3_glue import GlueClient


def trusted_certificates() -> str:
    """Return the file of authorities that boto3 would go by: AWS_CA_BUNDLE, `ca_bundle` of the
    profile, or those it brings.

    Raises `AwsError` when AWS's configuration cannot be read.
    """
    with aws_call("reading AWS's configuration"):
        configured = get_session().get_config_variable("ca_bundle")
    return str(configured or get_cert_path(True))


def sends_checksums(profile: str | None) -> bool:
    """Return whether AWS's settings want checksums where an operation does not need them:
    AWS_REQUEST_CHECKSUM_CALCULATION, or `request_checksum_calculation` of the profile.

    Raises `AwsError` when AWS's configuration cannot be read.
    """
    with aws_call("reading AWS's configuration"):
        session = get_session()
        if profile:
            session.set_config_variable("profile", profile)
        chosen = session.get_config_variable("request_checksum_calculation")
    return str(chosen).lower() != "when_required"


_CONNECTIONS = 32
"""Of one client at the same time."""
AddressingStyle = Literal["auto", "path", "virtual"]


def client_config(
    destination: DestinationSpec, connect_timeout: float, read_timeout: float, attempts: int
) -> Config:
    """Return how every client of a destination asks; times in seconds."""
    return Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=_CONNECTIONS,
        tcp_keepalive=True,
        user_agent_extra=f"lakeload/{__version__}",
        # Uploads carry a CRC32 header of our own. botocore's default would send trailers, which
        # S3-compatible stores reject, or a CRC64 that some servers compute at 12 MB/s.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": _addressing_style(destination)},
    )


def make_client(
    session: boto3.Session, service: str, destination: DestinationSpec, config: Config
) -> Any:
    """Return a client for the destination's endpoint of the service.

    Raises `AwsError`, and `InvalidInput` for an endpoint that is no URL.
    """
    endpoint = getattr(destination.endpoints, service, None)
    with aws_call(f"preparing the {service} client"):
        # Typed overloads know only literal names.
        make: Any = session.client
        try:
            client = make(service, endpoint_url=endpoint, config=config)
        except InvalidRegionError:
            raise
        except ValueError as error:
            variable = f"AWS_ENDPOINT_URL_{service.upper()} or AWS_ENDPOINT_URL"
            where = f" `{endpoint}`" if endpoint else f", from {variable} or the AWS profile,"
            raise InvalidInput(
                f"the endpoint of {service}{where} is not a URL",
                hint="write it as `https://host[:port]`",
            ) from error
    if service == "glue":
        client.meta.events.register("before-parse.glue", _check_json)
    account = destination.iceberg.catalog.glue_id
    if service == "glue" and account:
        _of_account(client, account)
    return client


def _addressing_style(destination: DestinationSpec) -> AddressingStyle:
    if destination.addressing_style == "PATH":
        return "path"
    if destination.addressing_style == "VIRTUAL":
        return "virtual"
    # Compatible stores and emulators seldom have a DNS name for each bucket.
    overridden = destination.endpoints.s3 or os.environ.get("AWS_ENDPOINT_URL_S3")
    return "path" if overridden or os.environ.get("AWS_ENDPOINT_URL") else "auto"


def _check_json(response_dict: dict[str, Any], operation_model: OperationModel, **_: Any) -> None:
    """Raise `ResponseParserError` for a success that is no JSON object, such as the page of a
    proxy: botocore takes it for one, where the operation returns nothing. Of an error the status
    is left, as botocore cannot parse every such body."""
    try:
        document = json.loads(response_dict["body"])
    except ValueError:
        document = None
    if isinstance(document, dict):
        return
    if response_dict["status_code"] < 300 and not _returns_nothing(response_dict, operation_model):
        raise ResponseParserError("the response is not a JSON object")
    response_dict["body"] = b""


def _returns_nothing(response_dict: dict[str, Any], operation: OperationModel) -> bool:
    """Return whether an answer of AWS is empty, as Glue's reference has it for operations that
    return nothing."""
    shape = operation.output_shape
    named = "x-amzn-requestid" in response_dict["headers"]
    return named and not response_dict["body"] and not (shape and shape.members)


def _of_account(glue: GlueClient, account: str) -> None:
    """Let every call of this client be about the catalog of `account`."""

    def add(params: dict[str, Any], **_: Any) -> None:
        params.setdefault("CatalogId", account)

    glue.meta.events.register("provide-client-params.glue", add)
