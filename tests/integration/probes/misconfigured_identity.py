"""What STS says no to: keys, the role, its ExternalId, tags and duration, and the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from lakeload.demo.aws import ACCOUNT_ID, allow_assume_role, trust_policy
from lakeload_jobs.contract.secrets import SecretReference
from tests.integration.probes.world import Case, World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Forward, Response, answer
from tests.servers.ministack import EXTERNAL_ID_VARIABLE


def _trailing_space(world: World) -> None:
    world.environment.setenv(EXTERNAL_ID_VARIABLE, world.lake.seeded.external_id + " ")


def _other_principal(world: World) -> None:
    principal = f"arn:aws:iam::{ACCOUNT_ID}:user/somebody-else"
    world.trust(trust_policy(principal, world.lake.seeded.external_id))


def _open_role(world: World) -> None:
    world.trust(trust_policy(f"arn:aws:iam::{ACCOUNT_ID}:user/{world.lake.seeded.user}", None))


def _foreign_token(world: World) -> None:
    world.static_keys()
    world.environment.setenv("TOKEN", "bm90IGEgdG9rZW4=")
    world.credentials(session_token=SecretReference("env", "TOKEN"))


def _untagged(world: World) -> None:
    world.credentials(session_tags={"team": "data"})
    world.refuse("AssumeRole", "sts:TagSession", "", world.lake.seeded.role_arn)


def _too_many_tags(world: World) -> None:
    world.credentials(session_tags={"team": "data"})
    world.proxy.on("AssumeRole", answer(400, "PackedPolicyTooLarge", "Packed size"))


def _seven_minutes_late(request: Request, forward: Forward) -> Response:
    told = format_datetime(datetime.now(UTC) + timedelta(minutes=7), usegmt=True)
    response = forward(request)
    kept = tuple(pair for pair in response.headers if pair[0].lower() != "date")
    return replace(response, headers=(*kept, ("Date", told)))


IDENTITIES = [
    Case(
        "wrong external id",
        lambda world: world.environment.setenv(EXTERNAL_ID_VARIABLE, "another-id"),
        *("assume-role", "AccessDenied", "the ExternalId is not exactly the one"),
    ),
    Case(
        "external id with a space after it",
        _trailing_space,
        *("assume-role", "AccessDenied", "begins or ends with whitespace"),
    ),
    Case(
        "no external id for a role that demands one",
        lambda world: world.credentials(external_id=None),
        *("assume-role", "AccessDenied", "the destination has no `external_id`"),
    ),
    Case(
        "external id of one character",
        lambda world: world.environment.setenv(EXTERNAL_ID_VARIABLE, "x"),
        *("assume-role", "ParamValidationError", "check bucket, role_arn, external_id"),
    ),
    Case(
        "missing role",
        lambda world: world.credentials(role_arn=f"arn:aws:iam::{ACCOUNT_ID}:role/nobody"),
        *("assume-role", "AccessDenied", "the role does not exist"),
    ),
    Case(
        "role that trusts somebody else",
        _other_principal,
        *("assume-role", "AccessDenied", "does not name this base identity"),
    ),
    Case(
        "base identity without sts:AssumeRole",
        lambda world: world.lake.server.admin.put_user_policy(
            world.lake.seeded.user, allow_assume_role("arn:aws:iam::000000000000:role/other")
        ),
        *("assume-role", "AccessDenied", "no policy that allows sts:AssumeRole"),
    ),
    Case(
        "role that does not ask for the external id",
        _open_role,
        *("external-id-enforced", "ExternalIdNotEnforced", "sts:ExternalId"),
        warning=True,
    ),
    Case(
        "unknown access key",
        lambda world: world.environment.setenv("AWS_ACCESS_KEY_ID", "AKIAUNKNOWNUNKNOWN00"),
        *("identity", "InvalidClientTokenId", "misspelt, deactivated or deleted"),
    ),
    Case(
        "wrong secret key",
        lambda world: world.environment.setenv("AWS_SECRET_ACCESS_KEY", "wrong"),
        *("identity", "SignatureDoesNotMatch", "not the one of this access key id"),
    ),
    Case(
        "session token of other keys",
        _foreign_token,
        *("identity", "InvalidClientTokenId", "session token"),
        warning=True,
    ),
    Case(
        "expired base credentials",
        lambda world: world.proxy.on("GetCallerIdentity", answer(403, "ExpiredToken")),
        *("identity", "ExpiredToken", "sign in again"),
    ),
    Case(
        "clock that is wrong, as STS says it",
        lambda world: world.proxy.on(
            "GetCallerIdentity",
            answer(403, "SignatureDoesNotMatch", "Signature expired: 1 is now earlier than 2"),
        ),
        *("identity", "SignatureDoesNotMatch", "compare `date -u`"),
    ),
    Case(
        "session longer than the role allows",
        lambda world: world.proxy.on("AssumeRole", answer(400, "ValidationError", "Duration")),
        *("assume-role", "ValidationError", "maximum session duration"),
    ),
    Case(
        "session tags that the role does not allow",
        _untagged,
        *("assume-role", "AccessDenied", "`session_tags` need sts:TagSession"),
    ),
    Case(
        "session tags that are too long",
        _too_many_tags,
        *("assume-role", "PackedPolicyTooLarge", "fewer or shorter"),
    ),
    Case(
        "role that the organization forbids to assume",
        lambda world: world.refuse(
            "AssumeRole", "sts:AssumeRole", "with an explicit deny in a service control policy"
        ),
        *("assume-role", "AccessDenied", "an SCP of the organization has a Deny"),
    ),
    Case(
        "endpoint of STS in the VPC that lets only other roles through",
        lambda world: world.refuse(
            "AssumeRole",
            "sts:AssumeRole",
            "because no VPC endpoint policy allows the sts:AssumeRole action",
        ),
        *("assume-role", "AccessDenied", "the policy of the VPC endpoint does not allow"),
    ),
    Case(
        "region that the account has not opted into",
        lambda world: world.proxy.on(
            "GetCallerIdentity", answer(403, "RegionDisabledException", "STS is not activated")
        ),
        *("identity", "RegionDisabledException", "opt into"),
    ),
    Case(
        "clock that will soon be too wrong",
        lambda world: world.proxy.on("*", _seven_minutes_late),
        *("clock", "ClockSkew", "set-ntp"),
        warning=True,
    ),
]
