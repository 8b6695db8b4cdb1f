"""Which provider of boto3's chain answers for the base identity, without telling any secret."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3
from botocore.credentials import RefreshableCredentials

from lakeload_jobs.aws.credentials import base_session
from lakeload_jobs.aws.errors import AwsError, aws_call
from lakeload_jobs.contract.secrets import SecretReference, resolve_locally
from lakeload_jobs.contract.spec import CredentialsSpec

_ASKING = {"container-role", "iam-role", "custom-process"}
"""Providers that ask somebody else for the mere answer whether there are credentials."""


@dataclass(frozen=True)
class CredentialSource:
    """The provider that answers, as botocore names it (`env`, `sso`, `iam-role`, …).

    `profile` is the profile in use, None where no profile was asked; `key_end` the last four
    characters of the access key id, '' where it was not fetched; `expires` None where the keys do
    not expire or botocore does not say.
    """

    method: str
    profile: str | None
    key_end: str = ""
    expires: datetime | None = None


def credential_source(
    credentials: CredentialsSpec, region: str, *, asking: bool
) -> CredentialSource | None:
    """Return who would answer for the base identity; None when nobody would.

    Without `asking` nothing but files and variables of this machine is read: providers that ask a
    network or start a program are passed over, and roles and logins are named, not fetched.
    Raises `AwsError` for credentials that are partial, expired, or cannot be had.
    """
    identity = CredentialsSpec(profile=credentials.profile)
    with aws_call("reading the base credentials"):
        session = base_session(identity, region, resolve_locally)
        found = _first(session, asking=asking)
        if found is None:
            return None
        if isinstance(found, RefreshableCredentials) and not _may_fetch(session, found, asking):
            return CredentialSource(found.method, _profile(session, found.method))
        frozen = _fetched(found)
    if not frozen.access_key or not frozen.secret_key:
        raise AwsError(
            f"reading the base credentials: those of `{found.method}` are not whole",
            code="PartialCredentialsError",
            hint="give both the access key id and the secret access key",
        )
    return CredentialSource(
        found.method,
        _profile(session, found.method),
        frozen.access_key[-4:],
        getattr(found, "_expiry_time", None),
    )


def local_references(credentials: CredentialsSpec) -> tuple[SecretReference, ...]:
    """Return the references of a destination's credentials that this machine has to hold."""
    named = (
        credentials.external_id,
        credentials.access_key_id,
        credentials.secret_access_key,
        credentials.session_token,
    )
    return tuple(one for one in named if one is not None and one.kind in ("env", "file"))


def _first(session: boto3.Session, *, asking: bool) -> Any:
    """The credentials of the first provider that has some, in botocore's order."""
    # boto3 has no public way to its chain; botocore's component is what it asks itself.
    chain: Any = session._session.get_component("credential_provider")
    for provider in chain.providers:
        if asking or provider.METHOD not in _ASKING:
            found = provider.load()
            if found is not None:
                return found
    return None


def _may_fetch(session: boto3.Session, found: Any, asking: bool) -> bool:
    """Whether keys that botocore renews may be fetched; one that asks for a code never is."""
    if found.method == "env":
        return True
    # boto3 has no public way to a profile's settings.
    return asking and "mfa_serial" not in session._session.get_scoped_config()


def _fetched(found: Any) -> Any:
    try:
        return found.get_frozen_credentials()
    except RuntimeError as error:
        # What botocore raises for keys that are past their end after it renewed them.
        raise AwsError(
            f"reading the base credentials: those of `{found.method}` have expired",
            code="ExpiredCredentials",
            hint="renew them and run again",
        ) from error


def _profile(session: boto3.Session, method: str) -> str | None:
    """The profile in use; what comes from variables or the machine has none."""
    beside = ("env", "container-role", "iam-role")
    return None if method in beside else session.profile_name
