"""The base identity: keys that are past their end, empty, or not what AWS gave."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import botocore.credentials
import pytest

from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.aws.credentials import CredentialSource, credential_source
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec
from tests.environments import without_settings


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine gives an identity."""
    import os

    for name in set(os.environ) - set(without_settings(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def process(folder: Path, **keys: str) -> None:
    """Make the default profile one with a `credential_process` that returns these keys."""
    answer = {"Version": 1, "AccessKeyId": "ASIA1", "SecretAccessKey": "canary", **keys}
    (folder / "answer.py").write_text(f"print({json.dumps(answer)!r})\n")
    command = shlex.join([sys.executable, "-IS", str(folder / "answer.py")])
    (folder / "config").write_text(f"[default]\ncredential_process = {command}\n")


def failure(credentials: CredentialsSpec | None = None) -> AwsError:
    """The error of a session that looks for its identity."""
    destination = DestinationSpec("lake", "us-east-1", credentials=credentials or CredentialsSpec())
    with pytest.raises(AwsError) as caught:
        _ = AwsSession(destination).s3
    assert "canary" not in f"{caught.value} {caught.value.hint}"
    assert caught.value.exit_code == ExitCode.REFUSED
    return caught.value


def test_expired_keys_of_a_process_are_an_error_that_names_it(tmp_path: Path) -> None:
    process(tmp_path, SessionToken="t", Expiration="2020-01-01T00:00:00Z")
    error = failure()
    assert error.code == "ExpiredCredentials"
    assert "those of `custom-process` have expired" in error.message
    assert "`credential_process`" in (error.hint or "")


def test_keys_that_expire_in_a_run_are_an_error_of_the_call() -> None:
    old = {
        "access_key": "ASIA1",
        "secret_key": "canary",
        "token": "t",
        "expiry_time": "2020-01-01T00:00:00Z",
    }
    renewed = botocore.credentials.RefreshableCredentials.create_from_metadata(
        old, refresh_using=lambda: old, method="custom-process"
    )
    with pytest.raises(AwsError) as caught, aws_call("listing `s3://lake`"):
        renewed.get_frozen_credentials()
    assert caught.value.code == "ExpiredCredentials"
    assert caught.value.message.startswith("listing `s3://lake`: the credentials have expired")
    with pytest.raises(RuntimeError, match="of ours"), aws_call("listing `s3://lake`"):
        raise RuntimeError("of ours")


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"])
def test_empty_variable_of_an_identity_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv(name, "")
    assert f"{name} is set and empty" in failure().message.replace("`", "")


@pytest.mark.parametrize("space", ["\n", " ", "\t", "\r\n"])
@pytest.mark.parametrize(
    "name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
)
def test_white_space_around_a_key_is_named(
    name: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "canary"}
    for variable, value in {**keys, name: f"canary{space}"}.items():
        monkeypatch.setenv(variable, value)
    error = failure()
    assert error.code == "MalformedCredentials"
    assert f"{name} begins or ends with white space" in error.message
    with pytest.raises(AwsError, match="begins or ends with white space"):
        credential_source(CredentialsSpec(), "us-east-1", asking=False)


def test_white_space_around_a_key_of_the_document_or_a_process_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "AKIA1")
    (tmp_path / "secret").write_text("canary \n")
    key, secret = SecretReference("env", "KEY"), SecretReference("file", str(tmp_path / "secret"))
    error = failure(CredentialsSpec(access_key_id=key, secret_access_key=secret))
    assert f"`{secret}` begins or ends with white space" in error.message
    (tmp_path / "secret").write_text("canary\n")
    spec = CredentialsSpec(access_key_id=key, secret_access_key=secret)
    assert AwsSession(DestinationSpec("lake", "us-east-1", credentials=spec)).s3

    process(tmp_path, AccessKeyId="ASIA1\n")
    assert "the access key id of `custom-process` begins or ends" in failure().message
    process(tmp_path)
    source = credential_source(CredentialsSpec(), "us-east-1", asking=True)
    assert source == CredentialSource("custom-process", "default", "SIA1")
