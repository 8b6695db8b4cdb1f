"""AwsSession: one destination's identities and clients, for the command line, driver and tasks."""

from __future__ import annotations

import copy
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import boto3

from lakeload_jobs.aws.clients import client_config, make_client, sends_checksums
from lakeload_jobs.aws.credentials import (
    Keys,
    RefreshWindow,
    assume_role,
    base_session,
    current_keys,
    handed_over,
    handover_variable,
    handover_variables,
    has_keys,
    role_session,
)
from lakeload_jobs.aws.errors import AwsError, aws_call
from lakeload_jobs.contract.errors import InvalidInput, Refused
from lakeload_jobs.contract.secrets import Secret, SecretReference, resolve_locally
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec
from lakeload_jobs.contract.usage import REQUESTS

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sts import STSClient

_EXECUTOR_HINT = (
    "on this Spark master each executor needs its own base identity: an instance profile, IRSA, "
    "or AWS_* variables in the worker's environment; `{env}` and `{file}` do not resolve there, "
    "`{aws_secret}` and `{aws_parameter}` do"
)


class ServerClock:
    """Compares the Date header of each answer with the local clock; refusals carry it too.

    AWS refuses requests that are more than 15 minutes off
    (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, RequestTimeTooSkewed).
    """

    def __init__(self) -> None:
        self.ahead: float | None = None
        """Seconds this machine is ahead of the server that answered last, negative behind; to about
        a second. None before the first answer, and of servers that tell no time."""

    def note(self, response_dict: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Take an answer, as botocore's event `response-received` hands it over."""
        told = response_dict["headers"].get("Date") if response_dict else None
        if not told:
            return
        try:
            then = parsedate_to_datetime(told)
        except ValueError:
            return
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        self.ahead = (datetime.now(UTC) - then).total_seconds()


@dataclass
class _Identity:
    """Who a session is: one, however many ways of waiting for answers there are."""

    clock: ServerClock = field(default_factory=ServerClock)
    lock: threading.RLock = field(default_factory=threading.RLock)
    secrets: dict[SecretReference, Secret] = field(default_factory=dict)
    final: boto3.Session | None = None
    begun: bool = False
    """The role has been assumed for `final`."""
    assumed: dict[str, str] | None = None
    """The role's keys from before `final` needed some."""
    checksums: bool | None = None
    """Whether uploads carry checksums; None until it was read."""


class AwsSession:
    """Clients of one destination with its final identity. Thread-safe.

    Driver and tasks each build their own from the spec. Credentials do not travel, but for those
    of `handover`, with which processes of the same machine begin. Times in seconds. `label` (a
    command, and an attempt's id) becomes part of the role session name, which CloudTrail shows.
    `on_executor` makes a missing identity say what an executor needs. Nothing is called before a
    client is asked for; every property raises `AwsError` or `InvalidInput`.
    """

    def __init__(
        self,
        destination: DestinationSpec,
        *,
        label: str = "",
        connect_timeout: float = 5,
        read_timeout: float = 60,
        max_attempts: int = 5,
        refresh: RefreshWindow | None = None,
        on_executor: bool = False,
    ) -> None:
        self._destination = destination
        self._credentials = destination.credentials
        self._session_name = _session_name(label)
        self._patience = (connect_timeout, read_timeout, max_attempts)
        self._refresh = refresh or RefreshWindow.for_duration(self._credentials.session_duration)
        self._on_executor = on_executor
        self._identity = _Identity()
        self._readers: dict[str, AwsSession] = {}
        self._clients: dict[str, Any] = {}

    def waiting(
        self, *, connect_timeout: float = 5, read_timeout: float = 60, max_attempts: int = 5
    ) -> AwsSession:
        """Return the same identity with clients that wait otherwise: no role is assumed again."""
        other = copy.copy(self)
        other._clients = {}
        other._patience = (connect_timeout, read_timeout, max_attempts)
        return other

    def reading(self, credentials: CredentialsSpec | None) -> AwsSession:
        """Return the session of those who read with `credentials`; None means with ours."""
        if credentials is None or credentials == self._credentials:
            return self
        other = self.waiting()
        other._destination = replace(self._destination, credentials=credentials)
        other._credentials = credentials
        other._refresh = RefreshWindow.for_duration(credentials.session_duration)
        with self._identity.lock:
            other._identity = _Identity()
            known = self._readers.setdefault(handover_variable(credentials), other)
            other._identity = known._identity
        return other

    @property
    def clock(self) -> ServerClock:
        """The clock of the servers that answered."""
        return self._identity.clock

    @property
    def sends_checksums(self) -> bool:
        """Whether uploads carry checksums in headers, which some S3-compatible stores reject."""
        if self._identity.checksums is None:
            self._identity.checksums = sends_checksums(self._credentials.profile)
        return self._identity.checksums

    @property
    def s3(self) -> S3Client:
        """S3 with the final identity and standard retries."""
        client: S3Client = self._client("s3")
        return client

    @property
    def s3_once(self) -> S3Client:
        """S3 without automatic retries, for writes whose lost answer matters.

        A retry hidden inside the client would turn "unknown" into a clear refusal.
        """
        client: S3Client = self._client("s3", attempts=1)
        return client

    @property
    def sts(self) -> STSClient:
        """STS with the final identity."""
        client: STSClient = self._client("sts")
        return client

    @property
    def glue(self) -> GlueClient:
        """Glue with the final identity."""
        client: GlueClient = self._client("glue")
        return client

    @property
    def base_sts(self) -> STSClient:
        """STS with the base identity: the one that calls AssumeRole."""
        client: STSClient = self._client("sts", base=True)
        return client

    def assume(self, *, with_external_id: bool = True) -> None:
        """Call AssumeRole once, as the connection test does; clients made later begin with it.

        Without the ExternalId the call should be refused (confused deputy), and what it gives is
        dropped. Raises `AwsError`.
        """
        keys = self._assume(with_external_id=with_external_id)
        with self._identity.lock:
            if with_external_id and not self._identity.begun:
                self._identity.assumed = keys

    def keys(self) -> Keys:
        """Return the final identity's keys, for a program that cannot call this one.

        Raises `AwsError` or `InvalidInput` as the clients do.
        """
        with aws_call("reading the credentials"):
            keys = current_keys(self._final_session())
        if keys is None:
            raise self._no_identity()
        return keys

    def handover(self) -> dict[str, str]:
        """Return the variables with which processes of this machine begin with the role's keys, and
        with those of the roles that `reading` has assumed. Raises as `keys` does."""
        own = (
            handover_variables(self._credentials, self.keys()) if self._credentials.role_arn else {}
        )
        with self._identity.lock:
            readers = [reader for reader in self._readers.values() if reader._identity.begun]
        return own | {
            name: value
            for reader in readers
            for name, value in handover_variables(reader._credentials, reader.keys()).items()
        }

    def base_keys(self) -> Keys:
        """Return the base identity's keys, read anew. Raises as `keys` does."""
        with aws_call("reading the base credentials"):
            keys = current_keys(self._base())
        if keys is None:
            raise self._no_identity()
        return keys

    def resolve(self, reference: SecretReference) -> Secret:
        """Return the value behind a reference; one in AWS is read once, with the base identity."""
        if reference.kind in ("env", "file"):
            return self._resolve_locally(reference)
        with self._identity.lock:
            secrets = self._identity.secrets
            if reference not in secrets:
                secrets[reference] = self._fetch_secret(reference)
            return secrets[reference]

    def database_token(self, host: str, port: int, user: str, region: str | None = None) -> Secret:
        """Return a token of IAM database authentication of the base identity, for one login.

        It is signed here, without a request, and valid for 15 minutes. `region` None means that of
        the destination. Raises as `keys` does.
        """
        with aws_call("signing a token for the database"):
            client = self._base().client("rds", region_name=region or self._destination.region)
            token = client.generate_db_auth_token(DBHostname=host, Port=port, DBUsername=user)
        return Secret(token)

    def _client(self, service: str, *, base: bool = False, attempts: int | None = None) -> Any:
        key = f"{service}:{base}:{attempts}"
        with self._identity.lock:
            if key not in self._clients:
                session = self._base() if base else self._final_session()
                self._clients[key] = self._build(session, service, attempts)
            return self._clients[key]

    def _build(self, session: boto3.Session, service: str, attempts: int | None = None) -> Any:
        connect, read, tries = self._patience
        config = client_config(self._destination, connect, read, attempts or tries)
        client = make_client(session, service, self._destination, config)
        client.meta.events.register("response-received", self._identity.clock.note)
        client.meta.events.register("before-send", _count)
        return client

    def _final_session(self) -> boto3.Session:
        with self._identity.lock:
            if self._identity.final is None:
                if self._credentials.role_arn:
                    region = self._destination.region
                    self._identity.final = role_session(self._role_keys, region, self._refresh)
                else:
                    self._identity.final = self._base()
            return self._identity.final

    def _role_keys(self) -> dict[str, str]:
        with self._identity.lock:
            keys, self._identity.assumed = self._identity.assumed, None
            if not self._identity.begun:
                keys = keys or handed_over(self._credentials)
        keys = keys or self._assume()
        # Not before: a role that could not be assumed has no keys to hand over.
        self._identity.begun = True
        return keys

    def _base(self) -> boto3.Session:
        with aws_call("reading the base credentials"):
            base = base_session(self._credentials, self._destination.region, self.resolve)
        if not has_keys(base):
            raise self._no_identity()
        return base

    def _assume(self, *, with_external_id: bool = True) -> dict[str, str]:
        # A new base session each time: a base identity that was renewed meanwhile is picked up.
        sts = self._build(self._base(), "sts")
        reference = self._credentials.external_id if with_external_id else None
        external_id = self.resolve(reference) if reference else None
        return assume_role(sts, self._credentials, self._session_name, external_id)

    def _no_identity(self) -> AwsError:
        if self._on_executor:
            return AwsError(
                "reading the base credentials: this executor finds no AWS identity",
                code="NoCredentialsError",
                hint=_EXECUTOR_HINT,
            )
        key = "AWS_ACCESS_KEY_ID"
        empty = f" ({key} is set and empty)" if os.environ.get(key) == "" else ""
        return AwsError(
            f"reading the base credentials: no AWS credentials were found{empty}",
            code="NoCredentialsError",
            hint="set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or `credentials` in the destination",
        )

    def _resolve_locally(self, reference: SecretReference) -> Secret:
        try:
            return resolve_locally(reference)
        except InvalidInput as error:
            if self._on_executor:
                raise InvalidInput(
                    f"on an executor: {error.message}", hint=_EXECUTOR_HINT
                ) from error
            raise

    def _fetch_secret(self, reference: SecretReference) -> Secret:
        # Keys that are themselves references into AWS cannot be what reads them.
        identity = CredentialsSpec(profile=self._credentials.profile)
        doing = f"reading the secret `{reference}`"
        with aws_call(doing):
            default = base_session(identity, self._destination.region, self.resolve)
            if reference.kind == "aws_secret":
                client = self._build(default, "secretsmanager")
                value = client.get_secret_value(SecretId=reference.name).get("SecretString")
            else:
                client = self._build(default, "ssm")
                answer = client.get_parameter(Name=reference.name, WithDecryption=True)
                value = answer["Parameter"]["Value"]
        if not value:
            raise Refused(
                f"{doing}: the secret has no string value", hint="store the secret as a string"
            )
        return Secret(value)


def _session_name(label: str) -> str:
    """Return a valid RoleSessionName (2–64 of `[A-Za-z0-9_+=,.@-]`)."""
    text = re.sub(r"[^A-Za-z0-9_+=,.@-]", "-", f"lakeload-{label}" if label else "lakeload")
    return text[:64]


def _count(event_name: str = "", **_: Any) -> None:
    """Count a request that botocore is about to send: `before-send.s3.GetObject`."""
    REQUESTS.add(event_name.partition(".")[2])
