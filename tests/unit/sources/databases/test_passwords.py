"""Passwords of databases: references, and tokens of IAM database authentication."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, JdbcInput
from lakeload_jobs.core.aws_partitions import rds_region
from lakeload_jobs.sources.databases.identity import TaskIdentity, password_of

SIGNATURE = "196253882584aa4a1f44eaec55152813c98af48579c5fa8abc50e604fa135447"
HOST = "shop.c9.eu-west-1.rds.amazonaws.com"


@pytest.fixture
def destination(tmp_path: Path) -> DestinationSpec:
    """A destination whose base identity has keys, and which loads with a role."""
    for name in ("AKIDEXAMPLE", "wJalrXUtnFEMI"):
        (tmp_path / name).write_text(name)
    keys = [
        SecretReference("file", str(tmp_path / name)) for name in ("AKIDEXAMPLE", "wJalrXUtnFEMI")
    ]
    role = "arn:aws:iam::111122223333:role/loader"
    credentials = CredentialsSpec(role, access_key_id=keys[0], secret_access_key=keys[1])
    return DestinationSpec("bucket", "us-east-1", credentials=credentials)


def database(host: str = HOST) -> JdbcInput:
    """Return a table of a database with a login by IAM."""
    place = ("POSTGRESQL", host, 5432, "shop", "public", "orders")
    return JdbcInput(*place, user="lo@der", iam_authentication=True)  # type: ignore[arg-type]


def test_a_token_is_signed_for_the_server_by_the_base_identity(
    destination: DestinationSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [datetime(2026, 11, 23, 6, 0, 0, tzinfo=UTC)]
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: now[0])

    secret = password_of(AwsSession(destination), database())

    assert secret is not None
    token = secret.reveal()
    assert token not in repr(secret)
    # Not a URL: libpq and PyMySQL send it as the password.
    assert token.startswith(f"{HOST}:5432/?Action=connect&DBUser=lo%40der&X-Amz-")
    query = {name: value for name, [value] in parse_qs(urlsplit(f"//{token}").query).items()}
    assert query["X-Amz-Credential"] == "AKIDEXAMPLE/20261123/eu-west-1/rds-db/aws4_request"
    assert (query["X-Amz-Date"], query["X-Amz-Expires"]) == ("20261123T060000Z", "900")
    # Of the algorithm of Signature Version 4, with these keys, at this time.
    assert query["X-Amz-Signature"] == SIGNATURE

    now[0] = datetime(2026, 11, 23, 6, 1, 0, tzinfo=UTC)
    later = TaskIdentity(destination, "load", True).password(database())
    assert later is not None
    assert "X-Amz-Date=20261123T060100Z" in later.reveal()


def test_a_server_elsewhere_is_of_the_region_of_the_destination(
    destination: DestinationSpec,
) -> None:
    secret = password_of(AwsSession(destination), database("db.example.com"))
    assert secret is not None
    assert "%2Fus-east-1%2Frds-db%2F" in secret.reveal()


def test_no_token_is_signed_without_an_identity(
    destination: DestinationSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeload_jobs.aws.session.has_keys", lambda _: False)
    with pytest.raises(AwsError, match="no AWS credentials were found"):
        password_of(AwsSession(destination), database())


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-west-1"),
        ("shop.cluster-ro-c9.us-gov-west-1.rds.amazonaws.com", "us-gov-west-1"),
        ("shop.c9.cn-north-1.rds.amazonaws.com.cn", "cn-north-1"),
        ("shop.c9.eu-west-1.rds.example.com", None),
        ("db.example.com", None),
    ],
)
def test_the_region_is_in_the_name_of_an_endpoint(host: str, region: str | None) -> None:
    assert rds_region(host) == region
