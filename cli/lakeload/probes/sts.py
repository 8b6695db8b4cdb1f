"""Checks of STS: identity, AssumeRole, the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from lakeload.policy.model import role_is_catalogs
from lakeload.probes.causes import likely_causes, refusal
from lakeload.probes.runner import (
    CheckSkipped,
    Deadline,
    Level,
    Permission,
    Probe,
    failed,
    probes_of,
)
from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec

WARN_SECONDS = 300.0


RETRY_SECONDS = 5.0

_ROLE_DENIED = (
    "the ExternalId is not exactly the one in the role's trust policy: compare them "
    "literally, with case and spaces (AWS does not report which cause it is)",
    "the role does not exist, or its trust policy does not name this base identity: check "
    "the account number, the role's name and `Principal`",
    "the base identity has no policy that allows sts:AssumeRole on this role",
    "the role or its policy was changed less than a minute ago: try again with --wait 120s",
)

_NO_EXTERNAL_ID = (
    "the role's trust policy requires an ExternalId and the destination has no `external_id` "
    "(AWS does not report which cause it is)"
)
_SECRET_DENIED = (
    "the base identity's own policy does not allow reading the secret; the permissions of "
    "the role do not apply here",
    "the secret's resource policy, or the KMS key it is encrypted with (kms:Decrypt), denies it",
)
_UNTAGGED = (
    "`session_tags` need sts:TagSession beside sts:AssumeRole, in the role's trust policy and in "
    "the base identity's own policy"
)
_OPEN_ROLE = ("the role's trust policy has no `StringEquals` condition on sts:ExternalId",)


@dataclass(frozen=True)
class ProbeIdentity:
    """The probes of who we are; a denied AssumeRole is repeated for `wait` seconds."""

    destination: DestinationSpec
    session: AwsSession
    wait: float
    deadline: Deadline

    def probes(self) -> list[Probe]:
        """Return the probes of STS."""
        credentials = self.destination.credentials
        role = credentials.role_arn or ""
        no_role = "" if role else "the base identity is used as it is: no `role_arn`"
        unasked = "the catalog vends the credentials" if self._needs_no_identity else ""
        unconditional = "" if credentials.external_id else "no `external_id` is configured"
        beside_the_point = {
            "credentials": unasked,
            "identity": unasked or _without_sts(self.destination),
            "assume-role": no_role,
            "external-id-enforced": no_role or unconditional,
        }
        explain: dict[str, Callable[[Exception], tuple[str, ...]]] = {
            "credentials": partial(likely_causes, denied=_SECRET_DENIED),
            "assume-role": self._explain_role,
            "external-id-enforced": lambda error: likely_causes(error) or _OPEN_ROLE,
        }
        # Nothing but the role needs AWS to know the base identity.
        levels = {} if role else {"identity": Level.USEFUL}
        resources = {"identity": "*", "assume-role": role, "external-id-enforced": role}
        tags = (Permission("sts:TagSession", role),) if credentials.session_tags else ()
        return [
            replace(
                probe,
                level=levels.get(probe.name, probe.level),
                explain=explain.get(probe.name, likely_causes),
                resource=resources.get(probe.name, ""),
                beside_the_point=beside_the_point[probe.name],
                also=tags if probe.name == "assume-role" else (),
            )
            for probe in probes_of("sts", self)
        ]

    def clock(self) -> Probe:
        """Return the probe of the clock, for after the first answers."""
        (probe,) = probes_of("clock", self)
        return probe

    def find_credentials(self) -> str:
        """The keys and secrets are there."""
        credentials = self.destination.credentials
        if credentials.external_id:
            self.session.resolve(credentials.external_id)
        # Making the client looks for the base identity and calls nothing.
        _ = self.session.base_sts
        if credentials.access_key_id:
            return "from the document's keys"
        profile = credentials.profile
        return f"from profile `{profile}`" if profile else "from the AWS chain"

    def find_caller(self) -> str:
        """AWS knows who asks."""
        with aws_call("getting the base identity from STS"):
            return self.session.base_sts.get_caller_identity()["Arn"]

    def assume(self) -> str:
        """The role can be assumed."""
        started = time.monotonic()
        while True:
            try:
                self.session.assume()
            except AwsError as error:
                waited = time.monotonic() - started
                if not error.denied or waited >= self.wait:
                    raise
                pause = min(RETRY_SECONDS, self.wait - waited)
                self.deadline.extend(pause)
                time.sleep(pause)
            else:
                waited = round(time.monotonic() - started)
                return f"after {waited} s" if waited >= RETRY_SECONDS else ""

    def assume_without_id(self) -> str:
        """The role cannot be assumed without the ExternalId."""
        try:
            self.session.assume(with_external_id=False)
        except AwsError as error:
            if error.denied:
                return ""
            raise
        raise failed("open-role")

    def compare_clock(self) -> str:
        """The clock is that of the servers."""
        ahead = self.session.clock.ahead
        if ahead is None:
            raise CheckSkipped("no server has reported its time")
        if abs(ahead) < WARN_SECONDS:
            return ""
        which = "ahead of" if ahead > 0 else "behind"
        minutes, seconds = divmod(round(abs(ahead)), 60)
        raise failed("clock", minutes=minutes, seconds=seconds, which=which)

    def _explain_role(self, error: Exception) -> tuple[str, ...]:
        credentials = self.destination.credentials
        reference = credentials.external_id
        wrong_id = _ROLE_DENIED[0] if reference else _NO_EXTERNAL_ID
        # STS answers an unknown role and an unknown ExternalId alike, but names a missing
        # TagSession.
        denial = refusal(error)
        if denial and denial.action == "sts:TagSession":
            return (_UNTAGGED,)
        tags = (_UNTAGGED,) if credentials.session_tags else ()
        denied = (wrong_id, *_ROLE_DENIED[1:3], *tags, *_ROLE_DENIED[3:])
        if denial and denial.of_identity:
            # STS has named it; the trust policy, and with it the ExternalId, may be right.
            denied = tuple(sorted(denied, key=lambda cause: cause != _ROLE_DENIED[2]))
            denied = (*(cause for cause in denied if cause != wrong_id), wrong_id)
        causes = likely_causes(error, denied=denied)
        if not reference or not isinstance(error, AwsError):
            return causes
        secret = self.session.resolve(reference).reveal()
        if error.code == "ParamValidationError":
            return (
                f"the ExternalId in `{reference}` is shorter than 2 characters or longer than 1224",
            )
        if secret != secret.strip() and not (denial and denial.of_identity):
            return (f"the ExternalId in `{reference}` begins or ends with whitespace", *causes)
        return causes

    @property
    def _needs_no_identity(self) -> bool:
        """Whether the catalog's own keys are all there is, and nothing is asked of AWS."""
        spec = self.destination
        return role_is_catalogs(spec) and spec.credentials == CredentialsSpec()


def _without_sts(destination: DestinationSpec) -> str:
    """A compatible store's keys mean nothing to AWS's own STS."""
    endpoints = destination.endpoints
    if destination.credentials.role_arn or not endpoints.s3 or endpoints.sts:
        return ""
    return "the S3 endpoint is not AWS's and no STS endpoint is configured"
