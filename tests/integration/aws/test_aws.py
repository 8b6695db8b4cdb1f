"""Identities against an AWS that enforces them."""

from __future__ import annotations

from dataclasses import replace

import boto3
import pytest

from lakeload_jobs.aws import AwsError, AwsSession, RefreshWindow
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec
from lakeload_jobs.storage.objects import Objects
from tests.integration.conftest import QUICK, make_destination
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake


def listing(session: AwsSession, destination: DestinationSpec) -> list[str]:
    objects = Objects(session, destination, waits=QUICK)
    return [entry.key for entry in objects.list(f"{destination.prefix}/")]


def test_the_role_writes_and_the_base_identity_assumes_it(
    base_identity: Lake, destination: DestinationSpec
) -> None:
    session = AwsSession(destination, label="job-1")
    assert session.sts.get_caller_identity()["Arn"].endswith("/lakeload-job-1")
    assert ":user/" in session.base_sts.get_caller_identity()["Arn"]
    session.assume()


def test_without_its_external_id_the_role_cannot_be_assumed(destination: DestinationSpec) -> None:
    with pytest.raises(AwsError) as caught:
        AwsSession(destination).assume(with_external_id=False)
    assert caught.value.denied
    assert (caught.value.code, caught.value.status) == ("AccessDenied", 403)
    assert caught.value.operation == "AssumeRole"
    assert "ExternalId" in (caught.value.hint or "")


def test_no_error_shows_the_external_id(
    destination: DestinationSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in ("canary-external-id", "c", "canary external id"):
        monkeypatch.setenv(EXTERNAL_ID_VARIABLE, wrong)
        with pytest.raises(AwsError) as caught:
            AwsSession(destination).s3.list_buckets()
        shown = [str(caught.value), caught.value.hint, str(caught.value.__cause__)]
        assert not any("canary" in str(text) for text in shown)


def test_credentials_are_renewed_before_they_expire(
    base_identity: Lake, destination: DestinationSpec
) -> None:
    short = replace(destination.credentials, session_duration=900)
    destination = replace(destination, credentials=short)
    # Of a session of 900 s all but the first moment counts as nearly over.
    session = AwsSession(destination, refresh=RefreshWindow(early=900, late=900))
    keys = set()
    session.s3.meta.events.register(
        "before-send.s3", lambda request, **_: keys.add(request.headers["X-Amz-Security-Token"])
    )
    for _ in range(3):
        listing(session, destination)
    assert len(keys) == 3


def test_a_session_far_from_expiry_is_not_renewed(destination: DestinationSpec) -> None:
    short = replace(destination.credentials, session_duration=900)
    destination = replace(destination, credentials=short)
    session = AwsSession(destination)
    keys = set()
    session.s3.meta.events.register(
        "before-send.s3", lambda request, **_: keys.add(request.headers["X-Amz-Security-Token"])
    )
    for _ in range(3):
        listing(session, destination)
    assert len(keys) == 1


def test_a_renewal_uses_the_base_keys_of_that_moment(
    base_identity: Lake, destination: DestinationSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = AwsSession(destination, refresh=RefreshWindow(early=3600, late=3600))
    listing(session, destination)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "no longer valid")
    with pytest.raises(AwsError) as caught:
        listing(session, destination)
    assert caught.value.operation == "AssumeRole"


def test_keys_of_a_destination_are_used_without_a_role(
    base_identity: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "test")
    key = SecretReference("env", "MY_KEY")
    keys = CredentialsSpec(access_key_id=key, secret_access_key=key)
    destination = make_destination(base_identity, credentials=keys)
    assert listing(AwsSession(destination), destination) == []


def test_executor_without_an_identity_fails_with_a_hint(
    destination: DestinationSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AwsError, match="this executor finds no AWS identity") as caught:
        listing(AwsSession(destination, on_executor=True), destination)
    assert "each executor needs its own base identity" in (caught.value.hint or "")
    with pytest.raises(AwsError, match="no AWS credentials were found"):
        listing(AwsSession(destination), destination)


def test_an_executor_cannot_resolve_the_drivers_variables(
    destination: DestinationSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(EXTERNAL_ID_VARIABLE)
    with pytest.raises(InvalidInput, match="on an executor") as caught:
        listing(AwsSession(destination, on_executor=True), destination)
    assert "{aws_secret}" in (caught.value.hint or "")


def test_secrets_in_aws_are_read_once(
    base_identity: Lake, destination: DestinationSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = base_identity.server.endpoint
    admin = boto3.Session("test", "test", region_name="us-east-1")
    admin.client("ssm", endpoint_url=endpoint).put_parameter(
        Name="/lake/external", Value="first", Type="SecureString", Overwrite=True
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    session = AwsSession(destination)
    reference = SecretReference("aws_parameter", "/lake/external")
    assert session.resolve(reference).reveal() == "first"
    admin.client("ssm", endpoint_url=endpoint).put_parameter(
        Name="/lake/external", Value="second", Type="SecureString", Overwrite=True
    )
    assert session.resolve(reference).reveal() == "first"
    with pytest.raises(AwsError, match="reading the secret"):
        session.resolve(SecretReference("aws_secret", "missing"))


@pytest.mark.parametrize(
    ("endpoint", "code"),
    [("http://127.0.0.1:9", "EndpointConnectionError"), ("https://{server}", "SSLError")],
)
def test_endpoint_without_a_response_is_named_within_the_timeout(
    base_identity: Lake, endpoint: str, code: str
) -> None:
    place = endpoint.format(server=base_identity.server.endpoint.removeprefix("http://"))
    destination = make_destination(base_identity, place)
    session = AwsSession(destination, connect_timeout=1, max_attempts=1)
    with pytest.raises(AwsError) as caught:
        listing(session, destination)
    assert caught.value.code == code
    assert destination.bucket in caught.value.message


def test_a_proxy_of_the_environment_is_used(destination: DestinationSpec) -> None:
    # The variable is gone before any fixture uses the emulator again.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        with pytest.raises(AwsError, match="the proxy does not respond") as caught:
            listing(AwsSession(destination, max_attempts=1), destination)
    assert caught.value.code == "ProxyConnectionError"


def test_endpoint_that_is_not_a_url_is_a_configuration_error(base_identity: Lake) -> None:
    destination = replace(
        make_destination(base_identity), endpoints=EndpointsSpec(s3="not a url", sts="not a url")
    )
    with pytest.raises(InvalidInput, match="is not a URL"):
        listing(AwsSession(destination), destination)


def test_a_missing_bucket_and_a_wrong_secret_have_their_own_messages(
    base_identity: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "test")
    key = SecretReference("env", "MY_KEY")
    keys = CredentialsSpec(access_key_id=key, secret_access_key=key)
    missing = make_destination(base_identity, bucket="no-such-bucket", credentials=keys)
    with pytest.raises(AwsError, match="the bucket does not exist"):
        listing(AwsSession(missing), missing)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    destination = make_destination(base_identity)
    with pytest.raises(AwsError) as caught:
        listing(AwsSession(destination), destination)
    assert "secret access key" in (caught.value.hint or "")
