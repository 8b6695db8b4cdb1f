"""Role keys that a command hands over to the processes that it starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.aws.credentials import Keys, handed_over, handover_variable, handover_variables
from lakeload_jobs.aws.errors import AwsError
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
    monkeypatch.setenv(*handover_variables(CREDENTIALS, given).popitem())

    found = AwsSession(DESTINATION).keys()
    assert (found.access_key_id, found.expires) == (given.access_key_id, given.expires)
    assert AwsSession(DESTINATION).handover() == handover_variables(CREDENTIALS, given)


def test_keys_of_another_identity_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*handover_variables(CREDENTIALS, keys()).popitem())

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
        monkeypatch.setenv(*handover_variables(CREDENTIALS, keys(lifetime)).popitem())
        assert AwsSession(DESTINATION).keys().access_key_id == "ASIARENEWED"


def test_roles_of_sources_are_handed_over_once_they_are_assumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str | None] = []

    def assume(session: AwsSession) -> dict[str, str]:
        role = session._credentials.role_arn
        calls.append(role)
        if role == "denied":
            raise AwsError("denied", code="AccessDenied")
        expires = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        return {"access_key": f"of {role}", "secret_key": "s", "token": "t", "expiry_time": expires}

    monkeypatch.setattr(AwsSession, "_assume", assume)
    session = AwsSession(DESTINATION).waiting(read_timeout=10)
    read, unread, denied = (CredentialsSpec(role_arn=name) for name in ("read", "unread", "denied"))
    for _ in range(2):
        session.reading(read).keys()
    session.reading(unread)
    with pytest.raises(AwsError):
        session.reading(denied).keys()

    given = session.handover()
    assert set(given) == {handover_variable(CREDENTIALS), handover_variable(read)}
    assert calls == ["read", "denied", CREDENTIALS.role_arn]
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert AwsSession(DESTINATION).reading(read).keys().access_key_id == "of read"
    assert calls == ["read", "denied", CREDENTIALS.role_arn]


def test_keys_that_are_no_roles_are_not_handed_over() -> None:
    assert handover_variables(CREDENTIALS, replace(keys(), session_token=None)) == {}
    assert AwsSession(replace(DESTINATION, credentials=CredentialsSpec())).handover() == {}
