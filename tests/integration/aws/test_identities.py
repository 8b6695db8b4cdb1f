"""Every way to say who we are reaches S3, with a role and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakeload.demo.aws import AccessKey, loader_policy
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec
from lakeload_jobs.storage.objects import Objects
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake

KEYS = CredentialsSpec(
    access_key_id=SecretReference("env", "MY_KEY_ID"),
    secret_access_key=SecretReference("env", "MY_KEY"),
)
FILES = CredentialsSpec(
    access_key_id=SecretReference("file", "key-id"),
    secret_access_key=SecretReference("file", "key"),
)
PROFILE = CredentialsSpec(profile="loader")
CHAIN = CredentialsSpec()
WAYS = {
    "keys by variable": KEYS,
    "keys by file": FILES,
    "a profile": PROFILE,
    "variables of the default chain": CHAIN,
    "the default profile of the default chain": CHAIN,
}


def _set_up(
    way: str, key: AccessKey, folder: Path, home: Path, environment: pytest.MonkeyPatch
) -> CredentialsSpec:
    """Put the key where this way looks for it, and nowhere else."""
    credentials = WAYS[way]
    pair = (key.access_key_id, key.secret_access_key)
    if credentials is KEYS:
        for name, value in zip(("MY_KEY_ID", "MY_KEY"), pair, strict=True):
            environment.setenv(name, value)
    elif credentials is FILES:
        environment.chdir(folder)
        for name, value in zip(("key-id", "key"), pair, strict=True):
            Path(name).write_text(f"{value}\n")
    elif way == "variables of the default chain":
        for name, value in zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), pair, strict=True):
            environment.setenv(name, value)
    else:
        name = credentials.profile or "default"
        (home / ".aws").mkdir()
        (home / ".aws" / "credentials").write_text(
            f"[{name}]\naws_access_key_id = {pair[0]}\naws_secret_access_key = {pair[1]}\n"
        )
    return credentials


def _destination(lake: Lake, credentials: CredentialsSpec) -> DestinationSpec:
    seeded, endpoint = lake.seeded, lake.server.endpoint
    return DestinationSpec(
        seeded.bucket,
        seeded.region,
        seeded.prefix,
        credentials,
        EndpointsSpec(s3=endpoint, sts=endpoint),
    )


def _write(destination: DestinationSpec) -> str:
    """Write one object and return who wrote it."""
    session = AwsSession(destination, label="test")
    Objects(session, destination).put_if_absent(f"{destination.prefix}/written", b"1")
    return session.sts.get_caller_identity()["Arn"]


@pytest.mark.parametrize("way", WAYS)
def test_a_role_is_assumed_from_any_base_identity(
    way: str, lake: Lake, tmp_path: Path, isolation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXTERNAL_ID_VARIABLE, lake.seeded.external_id)
    base = _set_up(way, lake.seeded.base_key, tmp_path, isolation, monkeypatch)
    external_id = SecretReference("env", EXTERNAL_ID_VARIABLE)
    credentials = replace(base, role_arn=lake.seeded.role_arn, external_id=external_id)
    arn = _write(_destination(lake, credentials))
    assert arn.endswith(f":assumed-role/{lake.seeded.role}/lakeload-test")
    assert lake.keys() == [f"{lake.seeded.prefix}/written"]


@pytest.mark.parametrize("way", WAYS)
def test_identity_without_a_role_is_used_directly(
    way: str, lake: Lake, tmp_path: Path, isolation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"{lake.seeded.user}-writer"
    policy = loader_policy(lake.seeded.bucket, lake.seeded.prefix)
    key = lake.server.admin.create_user(user, policy)
    credentials = _set_up(way, key, tmp_path, isolation, monkeypatch)
    assert _write(_destination(lake, credentials)).endswith(f":user/{user}")
    assert lake.keys() == [f"{lake.seeded.prefix}/written"]


def test_a_profile_of_the_document_wins_over_variables(
    lake: Lake, tmp_path: Path, isolation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = loader_policy(lake.seeded.bucket, lake.seeded.prefix)
    key = lake.server.admin.create_user(f"{lake.seeded.user}-writer", policy)
    credentials = _set_up("a profile", key, tmp_path, isolation, monkeypatch)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", lake.seeded.base_key.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", lake.seeded.base_key.secret_access_key)
    assert _write(_destination(lake, credentials)).endswith("-writer")


def test_the_base_identity_alone_may_not_write(base_identity: Lake) -> None:
    with pytest.raises(AwsError) as caught:
        _write(_destination(base_identity, CHAIN))
    assert caught.value.denied
    assert base_identity.keys() == []
