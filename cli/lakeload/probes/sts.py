"""Checks of STS: identity, AssumeRole, the clock."""

from __future__ import annotations

import time
from functools import partial

from lakeload.policy.model import role_is_catalogs
from lakeload.probes.causes import likely_causes, refusal
from lakeload.probes.runner import BesideThePoint, Deadline, Level, Permission, Probe, ProbeFailed
from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec

WARN_SECONDS = 300.0


def clock_probe(session: AwsSession) -> Probe:
    """Return the probe. It sends nothing: every answer so far, refusals too, has told the time."""
    return Probe(
        name="clock",
        proves="this machine's clock agrees with the servers'",
        level=Level.USEFUL,
        action="",
        resource="",
        run=lambda: _compare(session.clock.ahead),
        explain=likely_causes,
    )


def _compare(ahead: float | None) -> str:
    if ahead is None:
        raise BesideThePoint("no server has told its time")
    if abs(ahead) < WARN_SECONDS:
        return ""
    which = "ahead of" if ahead > 0 else "behind"
    minutes, seconds = divmod(round(abs(ahead)), 60)
    raise ProbeFailed(
        f"this machine's clock is {minutes} min {seconds} s {which} the server's",
        code="ClockSkew",
        hint="set the clock, for example with `timedatectl set-ntp true`: AWS refuses requests "
        "that are 15 minutes off",
    )


RETRY_SECONDS = 5.0

_ROLE_DENIED = (
    "the ExternalId is not exactly the one in the role's trust policy: compare letter by letter, "
    "case and spaces included (AWS does not say which of these causes it is)",
    "the role does not exist, or its trust policy does not name this base identity: look at the "
    "account number, the role's name and `Principal`",
    "the base identity has no policy that allows sts:AssumeRole on this role",
    "the role or its policy was changed less than a minute ago: try again with --wait 120s",
)

_NO_EXTERNAL_ID = (
    "the role's trust policy demands an ExternalId and the destination has no `external_id` "
    "(AWS does not say which of these causes it is)"
)
_SECRET_DENIED = (
    "the base identity's own policy does not allow to read the secret: what the role may do does "
    "not count here",
    "the secret's resource policy, or the KMS key it is encrypted with (kms:Decrypt), denies it",
)
_UNTAGGED = (
    "`session_tags` need sts:TagSession beside sts:AssumeRole, in the role's trust policy and in "
    "the base identity's own policy"
)
_OPEN_ROLE = ("the role's trust policy has no `StringEquals` condition on sts:ExternalId",)


def sts_probes(
    destination: DestinationSpec, session: AwsSession, *, wait: float, deadline: Deadline
) -> list[Probe]:
    """Return the probes of who we are; a denied AssumeRole is repeated for `wait` seconds."""
    credentials = destination.credentials
    role = credentials.role_arn or ""
    no_role = "" if role else "the base identity is used as it is: no `role_arn`"
    unasked = "the catalog gives out the credentials" if _needs_no_identity(destination) else ""
    unconditional = "" if credentials.external_id else "no `external_id` is configured"
    return [
        Probe(
            name="credentials",
            proves="the base identity's keys and every secret of `credentials` are found",
            level=Level.REQUIRED,
            action="",
            resource="",
            run=lambda: _find_credentials(destination, session),
            explain=partial(likely_causes, denied=_SECRET_DENIED),
            beside_the_point=unasked,
        ),
        Probe(
            name="identity",
            proves="AWS knows the base identity",
            level=Level.REQUIRED if role else Level.USEFUL,
            action="sts:GetCallerIdentity",
            resource="*",
            run=lambda: _caller(session),
            explain=likely_causes,
            needs=("credentials",),
            beside_the_point=unasked or _without_sts(destination),
        ),
        Probe(
            name="assume-role",
            proves="the base identity may assume the role with the ExternalId",
            level=Level.REQUIRED,
            action="sts:AssumeRole",
            resource=role,
            run=lambda: _assume(session, wait, deadline),
            explain=lambda error: _explain_role(error, destination, session),
            needs=("credentials", "identity"),
            beside_the_point=no_role,
            also=(Permission("sts:TagSession", role),) if credentials.session_tags else (),
        ),
        Probe(
            name="external-id-enforced",
            proves="the role refuses whoever does not know the ExternalId (confused deputy)",
            level=Level.SAFETY,
            action="sts:AssumeRole",
            resource=role,
            run=lambda: _assume_without_id(session),
            explain=lambda error: likely_causes(error) or _OPEN_ROLE,
            needs=("assume-role",),
            beside_the_point=no_role or unconditional,
        ),
    ]


def _find_credentials(destination: DestinationSpec, session: AwsSession) -> str:
    credentials = destination.credentials
    if credentials.external_id:
        session.resolve(credentials.external_id)
    # Making the client looks for the base identity and calls nothing.
    _ = session.base_sts
    if credentials.access_key_id:
        return "from the document's keys"
    return f"from profile `{credentials.profile}`" if credentials.profile else "from the AWS chain"


def _caller(session: AwsSession) -> str:
    with aws_call("asking AWS who the base identity is"):
        return session.base_sts.get_caller_identity()["Arn"]


def _assume(session: AwsSession, wait: float, deadline: Deadline) -> str:
    started = time.monotonic()
    while True:
        try:
            session.assume()
        except AwsError as error:
            waited = time.monotonic() - started
            if not error.denied or waited >= wait:
                raise
            pause = min(RETRY_SECONDS, wait - waited)
            deadline.extend(pause)
            time.sleep(pause)
        else:
            waited = round(time.monotonic() - started)
            return f"after {waited} s" if waited >= RETRY_SECONDS else ""


def _assume_without_id(session: AwsSession) -> str:
    try:
        session.assume(with_external_id=False)
    except AwsError as error:
        if error.denied:
            return ""
        raise
    raise ProbeFailed(
        "the role can be assumed without the ExternalId",
        code="ExternalIdNotEnforced",
        hint='add `"Condition": {"StringEquals": {"sts:ExternalId": …}}` to its trust policy',
    )


def _explain_role(
    error: Exception, destination: DestinationSpec, session: AwsSession
) -> tuple[str, ...]:
    reference = destination.credentials.external_id
    wrong_id = _ROLE_DENIED[0] if reference else _NO_EXTERNAL_ID
    # STS answers an unknown role and an unknown ExternalId alike, but names a missing TagSession.
    told = refusal(error)
    if told and told.action == "sts:TagSession":
        return (_UNTAGGED,)
    tags = (_UNTAGGED,) if destination.credentials.session_tags else ()
    causes = likely_causes(error, denied=(wrong_id, *_ROLE_DENIED[1:3], *tags, *_ROLE_DENIED[3:]))
    if not reference or not isinstance(error, AwsError):
        return causes
    external_id = session.resolve(reference).reveal()
    if error.code == "ParamValidationError":
        return (
            f"the ExternalId in `{reference}` is shorter than 2 characters or longer than 1224",
        )
    if external_id != external_id.strip():
        return (f"the ExternalId in `{reference}` begins or ends with white space", *causes)
    return causes


def _needs_no_identity(destination: DestinationSpec) -> bool:
    """Whether the catalog's own keys are all there is, and nothing is asked of AWS."""
    return role_is_catalogs(destination) and destination.credentials == CredentialsSpec()


def _without_sts(destination: DestinationSpec) -> str:
    """A compatible store's keys mean nothing to AWS's own STS."""
    endpoints = destination.endpoints
    if destination.credentials.role_arn or not endpoints.s3 or endpoints.sts:
        return ""
    return "the S3 endpoint is not AWS's and no STS endpoint is configured"
