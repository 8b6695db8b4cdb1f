"""Properties of Iceberg's FileIO: those that follow from the destination, and those that a catalog
sets for a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import vends

FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"
FILE_IO_SETTING = "io-impl"
FILE_IO_PREFIXES = ("s3.", "client.", "http-client.", FILE_IO_SETTING, "kms.", "lakeformation.")
"""What begins the names of properties that S3FileIO, its clients and their factories read. Others
are the catalog's own."""
KEY_SETTING = "s3.access-key-id"
SECRET_SETTING = "s3.secret-access-key"  # noqa: S105 - its name
LENT_SETTING = "s3.session-token"
EXTERNAL_ID_SETTING = "client.assume-role.external-id"

_ROLE_FACTORY = "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"
_SSE = {"SSE_S3": "s3", "SSE_KMS": "kms"}


def file_properties(destination: DestinationSpec) -> dict[str, str]:
    """Return how data and metadata reach S3, with the encryption of every other upload; also how a
    client of the catalog is signed for that does not vend credentials, or that signs."""
    catalog = destination.iceberg.catalog
    settings = _files(destination)
    if not vends(catalog):
        settings |= _role(destination)
        if destination.credentials.role_arn:
            settings["client.factory"] = _ROLE_FACTORY
    elif catalog.sigv4:
        settings |= _role(destination)
    return settings


def io_settings(
    told: Mapping[str, str],
    lent: Iterable[tuple[str, Mapping[str, str]]],
    destination: DestinationSpec,
    own_key: Callable[[], str],
) -> tuple[str, ...]:
    """Return the names of what a catalog sets for the files of a table, but for the destination's
    own: some catalogs tell everyone the keys that they were started with.

    `told` are properties of the table, `lent` those of single locations in it. `own_key` returns
    the access key id of the destination's own identity.
    """
    given = {str(name): str(value) for name, value in told.items()}
    properties = file_properties(destination)
    own = {name for name, value in given.items() if properties.get(name) == value}
    if destination.credentials.external_id:
        own.add(EXTERNAL_ID_SETTING)
    key = given.get(KEY_SETTING)
    if key is not None and LENT_SETTING not in given and key == own_key():
        own |= {KEY_SETTING, SECRET_SETTING}
    names = (name for name in given if name not in own)
    return (*names, *(str(name) for _, config in lent for name in config))


def _files(destination: DestinationSpec) -> dict[str, str]:
    endpoint = destination.endpoints.s3
    style = destination.addressing_style
    path_style = style == "PATH" or (style == "AUTO" and endpoint is not None)
    settings = {
        FILE_IO_SETTING: FILE_IO,
        "client.region": destination.region,
        "s3.path-style-access": str(path_style).lower(),
    }
    if endpoint:
        settings["s3.endpoint"] = endpoint
    if destination.encryption.type in _SSE:
        settings["s3.sse.type"] = _SSE[destination.encryption.type]
        if destination.encryption.kms_key_id:
            settings["s3.sse.key"] = destination.encryption.kms_key_id
    return settings


def _role(destination: DestinationSpec) -> dict[str, str]:
    """The role, which Iceberg assumes and renews; it signs for REST catalogs too."""
    credentials = destination.credentials
    if not credentials.role_arn:
        return {}
    settings = {
        "client.assume-role.arn": credentials.role_arn,
        "client.assume-role.region": destination.region,
        "client.assume-role.timeout-sec": str(credentials.session_duration),
    }
    for name, value in (credentials.session_tags or {}).items():
        settings[f"client.assume-role.tags.{name}"] = value
    return settings
