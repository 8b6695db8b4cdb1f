"""Credentials of AWS: their source, their renewal, and keys for other processes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.credentials import CredentialProvider, CredentialResolver, RefreshableCredentials
from botocore.exceptions import BotoCoreError
from botocore.loaders import Loader, create_loader
from botocore.session import Session as CoreSession
from botocore.session import get_session

from lakeload_jobs.aws.errors import AwsError, aws_call
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.secrets import Secret, SecretReference, resolve_locally
from lakeload_jobs.contract.spec import CredentialsSpec

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient
    from mypy_boto3_sts.type_defs import AssumeRoleRequestTypeDef


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
            f"reading the base credentials: those of `{found.method}` are incomplete",
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


_RENEWALS = {
    "custom-process": "run the profile's `credential_process` by hand: it returns old keys",
    "env": "set new AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and "
    "AWS_CREDENTIAL_EXPIRATION",
}


def _fetched(found: Any, doing: str = "reading the base credentials") -> Any:
    """Return the keys of credentials, renewed if need be. Raises `AwsError`."""
    try:
        keys = found.get_frozen_credentials()
    except RuntimeError as error:
        # What botocore raises for keys that are past their end after it renewed them.
        raise AwsError(
            f"{doing}: those of `{found.method}` have expired",
            code="ExpiredCredentials",
            hint=_RENEWALS.get(found.method, "renew them and run again"),
            provider=found.method,
        ) from error
    for name in ("access_key", "secret_key", "token"):
        value = getattr(keys, name) or ""
        if value != value.strip():
            raise malformed(doing, _names(found.method)[name])
    return keys


def malformed(doing: str, name: str) -> AwsError:
    """Return the error of a key or secret that could not be what AWS gave: some are made with
    `echo`."""
    return AwsError(
        f"{doing}: {name} begins or ends with white space",
        code="MalformedCredentials",
        hint="set it without the space or line break, for example with `printf %s` instead of "
        "`echo`",
    )


def _names(method: str) -> dict[str, str]:
    """Return what people call the three values of these credentials."""
    if method == "env":
        return {
            "access_key": "AWS_ACCESS_KEY_ID",
            "secret_key": "AWS_SECRET_ACCESS_KEY",
            "token": "AWS_SESSION_TOKEN",
        }
    return {
        "access_key": f"the access key id of `{method}`",
        "secret_key": f"the secret access key of `{method}`",
        "token": f"the session token of `{method}`",
    }


def _profile(session: boto3.Session, method: str) -> str | None:
    """The profile in use; what comes from variables or the machine has none."""
    beside = ("env", "container-role", "iam-role")
    return None if method in beside else session.profile_name


Resolve = Callable[[SecretReference], Secret]


@dataclass(frozen=True)
class RefreshWindow:
    """Seconds before expiry: from `early` on a renewal is tried and its failure tolerated; from
    `late` on a call waits for it and fails without it."""

    early: int
    late: int

    @classmethod
    def for_duration(cls, seconds: int) -> RefreshWindow:
        """Windows for sessions of this length: a third and a sixth, at most 15 and 10 minutes.

        botocore's fixed 15 and 10 minutes would renew a 900 s session on every call.
        """
        return cls(early=min(900, seconds // 3), late=min(600, seconds // 6))


@dataclass(frozen=True)
class Keys:
    """An identity's keys at one moment; `expires` is None for keys that do not expire."""

    access_key_id: str
    secret_access_key: Secret
    session_token: Secret | None
    expires: datetime | None


def has_keys(session: boto3.Session) -> bool:
    """Return whether a session has an identity; asks the program or service behind it at once.

    What fails there is then told of the identity and not of the first call. Raises `AwsError`.
    """
    doing = "reading the base credentials"
    with aws_call(doing):
        try:
            credentials = session.get_credentials()
            return credentials is not None and _fetched(credentials, doing) is not None
        except BotoCoreError:
            raise
        except ValueError:
            # What cannot be parsed may be the keys: it is no cause that anybody may read.
            raise AwsError(
                f"{doing}: `credential_process` or the container endpoint returned an "
                "invalid response",
                code="CredentialRetrievalError",
                hint="run the profile's `credential_process` by hand; "
                "AWS_CONTAINER_CREDENTIALS_FULL_URI has to be a loopback or metadata address",
            ) from None


def current_keys(session: boto3.Session) -> Keys | None:
    """Return the keys of a session, renewed if need be; None when it has none.

    botocore keeps the time they expire to itself, and whoever is handed them must know it.
    """
    credentials = session.get_credentials()
    if credentials is None:
        return None
    frozen = _fetched(credentials, "reading the credentials")
    if not frozen.access_key or not frozen.secret_key:
        return None
    return Keys(
        frozen.access_key,
        Secret(frozen.secret_key),
        Secret(frozen.token) if frozen.token else None,
        getattr(credentials, "_expiry_time", None),
    )


def base_session(credentials: CredentialsSpec, region: str, resolve: Resolve) -> boto3.Session:
    """A new session with the base identity: the keys, the profile, or the default chain.

    Files, variables and references are read anew, so a rotated key is picked up.
    """
    core = _core_session(credentials.profile)
    if credentials.access_key_id and credentials.secret_access_key:
        token = credentials.session_token
        core.set_credentials(
            _trimmed(credentials.access_key_id, resolve),
            _trimmed(credentials.secret_access_key, resolve),
            _trimmed(token, resolve) if token else None,
        )
    return boto3.Session(botocore_session=core, region_name=region)


def _trimmed(reference: SecretReference, resolve: Resolve) -> str:
    value = resolve(reference).reveal()
    if value != value.strip():
        raise malformed("reading the base credentials", f"the value of `{reference}`")
    return value


def role_session(
    fetch: Callable[[], dict[str, str]], region: str, window: RefreshWindow
) -> boto3.Session:
    """A session whose credentials come from `fetch` (AssumeRole) and are renewed with it."""
    core = _core_session(None)
    core.register_component("credential_provider", CredentialResolver([_Role(fetch, window)]))
    return boto3.Session(botocore_session=core, region_name=region)


def assume_role(
    sts: STSClient,
    credentials: CredentialsSpec,
    session_name: str,
    external_id: Secret | None,
) -> dict[str, str]:
    """Call sts:AssumeRole once; return botocore's metadata form. Raises `AwsError`."""
    request: AssumeRoleRequestTypeDef = {
        "RoleArn": credentials.role_arn or "",
        "RoleSessionName": session_name,
        "DurationSeconds": credentials.session_duration,
    }
    if external_id:
        request["ExternalId"] = external_id.reveal()
    if credentials.session_tags:
        request["Tags"] = [{"Key": k, "Value": v} for k, v in credentials.session_tags.items()]
    with aws_call(f"assuming the role `{credentials.role_arn}`"):
        answer = sts.assume_role(**request)["Credentials"]
    return {
        "access_key": answer["AccessKeyId"],
        "secret_key": answer["SecretAccessKey"],
        "token": answer["SessionToken"],
        "expiry_time": answer["Expiration"].isoformat(),
    }


def _core_session(profile: str | None) -> CoreSession:
    core = get_session()
    core.register_component("data_loader", _descriptions(core.get_config_variable("data_path")))
    if profile:
        core.set_config_variable("profile", profile)
    # sts.amazonaws.com is one region's; the regional endpoint keeps working when that region fails.
    core.set_config_variable("sts_regional_endpoints", "regional")
    return core


@lru_cache
def _descriptions(path: str | None) -> Loader:
    """Return botocore's descriptions of services, parsed once: a client then takes 7 ms, not 70."""
    loader: Loader = create_loader(path)
    return loader


class _Role(CredentialProvider):
    METHOD = "lakeload-assume-role"

    def __init__(self, fetch: Callable[[], dict[str, str]], window: RefreshWindow) -> None:
        super().__init__()
        self._fetch = fetch
        self._window = window

    def load(self) -> Any:
        return RefreshableCredentials.create_from_metadata(
            self._fetch(),
            refresh_using=self._fetch,
            method=self.METHOD,
            advisory_timeout=self._window.early,
            mandatory_timeout=self._window.late,
        )


_ROLE_KEYS = "LAKELOAD_ROLE_KEYS_"
"""The keys of assumed roles, for the processes that a command starts on its own machine.

The driver and its Python workers begin with them; otherwise each would call AssumeRole first. They
travel in the environment, which the system shows to the same user alone, as it does with
AWS_SECRET_ACCESS_KEY: a variable for each identity. Who begins with them renews them by itself.
"""


def handover_variables(credentials: CredentialsSpec, keys: Keys) -> dict[str, str]:
    """Return the environment variable that hands over the keys of the role of `credentials`; none
    for keys that never expire, which are no role's."""
    if keys.session_token is None or keys.expires is None:
        return {}
    content = {
        "access_key": keys.access_key_id,
        "secret_key": keys.secret_access_key.reveal(),
        "token": keys.session_token.reveal(),
        "expiry_time": keys.expires.isoformat(),
    }
    return {handover_variable(credentials): json.dumps(content)}


def handed_over(credentials: CredentialsSpec) -> dict[str, str] | None:
    """Return keys of the role of `credentials` that this process was started with, in botocore's
    form; None where there are none."""
    text = os.environ.get(handover_variable(credentials))
    if text is None:
        return None
    content: dict[str, str] = json.loads(text)
    return content


def handover_variable(credentials: CredentialsSpec) -> str:
    """Return the name of the variable for an identity. References are in its digest, no secrets."""
    text = json.dumps(to_json(credentials), sort_keys=True)
    return _ROLE_KEYS + hashlib.sha256(text.encode()).hexdigest()
