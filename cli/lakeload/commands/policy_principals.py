"""Who may assume the role: as the options say, or as STS does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lakeload.policy.iam.policy_set import ExternalId
from lakeload.policy.iam.s3 import role_is_catalogs
from lakeload.policy.iam.trust import Principal, is_session, parse_principal, principal_arn
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.aws_partitions import partition

_NOT_IN_A_VARIABLE = re.compile(r"[^A-Za-z0-9_]", re.ASCII)


def principals_of(
    destination: DestinationSpec, given: Sequence[str], *, reveal: bool, wanted: bool
) -> tuple[tuple[Principal, ...], tuple[ExternalId, ...]]:
    """Return who may assume the role, and the secrets that their placeholders stand for.

    With nobody given and a trust policy `wanted`, STS is asked who runs this. With `reveal` the
    principals hold the secrets themselves. Raises `LakeloadError`.
    """
    where = partition(destination.region)
    parsed = [(*parse_principal(text, where), is_session(text)) for text in given]
    if wanted and not parsed:
        caller = _caller(destination)
        parsed = [(principal_arn(caller, where), None, is_session(caller))]
    ids: dict[SecretReference, ExternalId] = {}
    principals = []
    for arn, own, of_session in parsed:
        reference = own or destination.credentials.external_id
        if reference is None or not wanted:
            principals.append(Principal(arn, None, of_session))
            continue
        if reference not in ids:
            ids[reference] = ExternalId(_variable(reference, ids.values()), reference)
        value = _reveal(destination, reference) if reveal else ids[reference].placeholder
        principals.append(Principal(arn, value, of_session))
    return tuple(principals), () if reveal else tuple(ids.values())


def _caller(destination: DestinationSpec) -> str:
    """Return the ARN of the base identity. Raises `LakeloadError` that names --principal."""
    hint = "say who may assume the role: --principal arn:aws:iam::123456789012:user/NAME"
    if role_is_catalogs(destination):
        raise InvalidInput(
            "the catalog vends credentials, so the role is for its principals, which only it knows",
            hint="give each one with its own ExternalId: --principal ARN,external-id=env:NAME; "
            "before the catalog exists give the number of your account, and run it again later",
        )
    from lakeload_jobs.aws import AwsSession, aws_call

    session = AwsSession(destination, connect_timeout=3, read_timeout=5, max_attempts=2)
    try:
        with aws_call("asking STS who you are"):
            return session.base_sts.get_caller_identity()["Arn"]
    except LakeloadError as error:
        error.hint = hint
        raise


def _variable(reference: SecretReference, taken: Iterable[ExternalId]) -> str:
    """Return a name for a secret that shells and Terraform take, and no other secret has."""
    names = {one.variable.lower() for one in taken}
    named = reference.name if reference.kind == "env" else "EXTERNAL_ID"
    name = _NOT_IN_A_VARIABLE.sub("_", named)
    if name[0].isdigit():
        name = f"_{name}"
    number = 1
    while name.lower() in names:
        number += 1
        name = f"EXTERNAL_ID_{number}"
    return name


def _reveal(destination: DestinationSpec, reference: SecretReference) -> str:
    from lakeload_jobs.aws import AwsSession

    session = AwsSession(destination, connect_timeout=3, read_timeout=5, max_attempts=2)
    return session.resolve(reference).reveal()
