"""Role keys that a command hands over to the processes that it starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.aws.credentials import Keys
from lakeload_jobs.aws.handover import VARIABLE, handed_over, variables
from lakeload_jobs.contract.secrets import Secret, SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec

CREDENTIALS = CredentialsSpec(
    role_arn="arn:aws:iam::123456789012:role/lake",
    external_id=SecretReference("env", "LAKELOAD_EXTERNAL_ID"),
)
DESTINATION = DestinationSpec("lake", "us-east-1", credentials=CREDENTIALS)


def keys(lifetime: timedelta = timedelta(hours=1)) -> Keys:
    return Keys("ASIAHANDED", Secret("secret"), Secret("token"), datetime.now(UTC) + lifetime)


def test_a_session_begins_with_the_keys_that_were_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = keys()
    monkeypatch.setenv(VARIABLE, variables(CREDENTIALS, given)[VARIABLE])

    found = AwsSession(DESTINATION).keys()
    assert (found.access_key_id, found.expires) == (given.access_key_id, given.expires)
    assert AwsSession(DESTINATION).handover() == variables(CREDENTIALS, given)


def test_keys_of_another_identity_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, variables(CREDENTIALS, keys())[VARIABLE])

    assert handed_over(replace(CREDENTIALS, session_duration=900)) is None
    assert handed_over(replace(CREDENTIALS, external_id=None)) is None


def test_keys_near_their_end_are_renewed_by_assuming_the_role(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assumed = {
        "access_key": "ASIARENEWED",
        "secret_key": "secret",
        "token": "token",
        "expiry_time": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
    }
    monkeypatch.setattr(AwsSession, "_assume", lambda _: assumed)
    for lifetime in (timedelta(minutes=1), timedelta(hours=-3)):
        monkeypatch.setenv(VARIABLE, variables(CREDENTIALS, keys(lifetime))[VARIABLE])
        assert AwsSession(DESTINATION).keys().access_key_id == "ASIARENEWED"


def test_keys_that_are_no_roles_are_not_handed_over() -> None:
    assert variables(CREDENTIALS, replace(keys(), session_token=None)) == {}
    assert AwsSession(replace(DESTINATION, credentials=CredentialsSpec())).handover() == {}
