"""Principals that may assume the role: accounts, users and roles, with their ExternalIds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakeload.policy.model import role_is_catalogs
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core import aws_partitions

if TYPE_CHECKING:
    from lakeload_jobs.aws import AwsSession

_ACCOUNT = re.compile(r"[0-9]{12}", re.ASCII)
_PRINCIPAL = re.compile(
    r"arn:aws[a-z-]*:iam::[0-9]{12}:(root|(user|role)/[\w+=,.@/-]{1,576})", re.ASCII
)
_SESSION = re.compile(
    r"arn:(aws[a-z-]*):sts::([0-9]{12}):assumed-role/([\w+=.@-]{1,64})/[\w+=.@-]{1,64}", re.ASCII
)
_MISTYPED = re.compile(r"[,;:\s]\s*ext[a-z]*[-_\s]*id", re.IGNORECASE)
_HINT = (
    "give `arn:aws:iam::123456789012:root`, `…:user/NAME` or `…:role/NAME`, and with it, if it has "
    "one of its own, `,external-id=env:NAME`"
)


@dataclass(frozen=True)
class Principal:
    """Who may assume the role. `external_id` is the value or what stands for it; None is none."""

    arn: str
    external_id: str | None = field(default=None, repr=False)
    of_session: bool = False
    """Whether it was told by the ARN of a session, which leaves out the path of the role."""

    @property
    def account(self) -> str:
        """The 12 digits of the account."""
        return self.arn.split(":")[4]

    @property
    def kind(self) -> str:
        """`root`, `user` or `role`."""
        return self.arn.split(":")[5].split("/")[0]

    @property
    def name(self) -> str:
        """The user's or role's name without its path; '' for a whole account."""
        return self.arn.rpartition("/")[2] if "/" in self.arn else ""


@dataclass(frozen=True)
class ExternalId:
    """A secret of the trust policy. `placeholder` stands for it where it is not revealed."""

    variable: str
    reference: SecretReference

    @property
    def placeholder(self) -> str:
        """What stands in the document."""
        return f"<{self.variable}>"


def principal_arn(text: str, partition: str = "aws") -> str:
    """Return the ARN that a trust policy takes: an account is its root, a session its role.

    A session's ARN leaves out the path of its role, and so does the one made of it. Raises
    `InvalidInput`.
    """
    if _ACCOUNT.fullmatch(text):
        return f"arn:{partition}:iam::{text}:root"
    session = _SESSION.fullmatch(text)
    arn = f"arn:{session[1]}:iam::{session[2]}:role/{session[3]}" if session else text
    if not _PRINCIPAL.fullmatch(arn):
        raise InvalidInput(
            f"`{text}` is neither an account number nor the ARN of an account, a user or a role",
            hint=_HINT,
        )
    if arn.split(":")[1] != partition:
        raise InvalidInput(
            f"`{arn}` is of another partition of AWS than the bucket's, `{partition}`: no role "
            "can be assumed across partitions",
            hint=f"give a principal that begins with `arn:{partition}:`",
        )
    return arn


def is_session(text: str) -> bool:
    """Whether it is the ARN of a session of a role."""
    return _SESSION.match(text) is not None


def parse_principal(text: str, partition: str = "aws") -> tuple[str, SecretReference | None]:
    """Return ARN and ExternalId of `ARN[,external-id=env:NAME]`; the ExternalId is a reference.

    Raises `InvalidInput`.
    """
    arn, comma, rest = text.partition(",external-id=")
    if not comma:
        if mistyped := _MISTYPED.search(text):  # a name may hold `,` and `=`, and this a secret
            written = text[: mistyped.start()]
            raise InvalidInput(f"what follows `{written}` is not `,external-id=…`", hint=_HINT)
        return principal_arn(text, partition), None
    kind, _, name = rest.partition(":")
    for known in ("env", "file", "aws_secret", "aws_parameter"):
        if kind == known and name:
            return principal_arn(arn, partition), SecretReference(known, name)
    raise InvalidInput(
        f"the external id of `{arn}` is not a reference",  # it may be the secret itself
        hint="write `external-id=env:NAME`, `file:PATH`, `aws_secret:NAME` or `aws_parameter:NAME`",
    )


def principals_of(
    destination: DestinationSpec, given: Sequence[str], *, reveal: bool, wanted: bool
) -> tuple[tuple[Principal, ...], tuple[ExternalId, ...]]:
    """Return who may assume the role, and the secrets that their placeholders stand for.

    With nobody given and a trust policy `wanted`, STS is asked who runs this. With `reveal` the
    principals hold the secrets themselves. Raises `LakeloadError`.
    """
    where = aws_partitions.partition(destination.region)
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
        value = ids[reference].placeholder
        if reveal:
            value = _session(destination).resolve(reference).reveal()
        principals.append(Principal(arn, value, of_session))
    return tuple(principals), () if reveal else tuple(ids.values())


def _caller(destination: DestinationSpec) -> str:
    """Return the ARN of the base identity. Raises `LakeloadError` that names --principal."""
    hint = "say who may assume the role: --principal arn:aws:iam::123456789012:user/NAME"
    if role_is_catalogs(destination):
        raise InvalidInput(
            "the catalog vends credentials, so the role is for its principals, which only "
            "the catalog knows",
            hint="give each one with its own ExternalId: --principal ARN,external-id=env:NAME; "
            "before the catalog exists give the number of your account, and run it again later",
        )
    from lakeload_jobs.aws import aws_call

    try:
        with aws_call("getting your identity from STS"):
            return _session(destination).base_sts.get_caller_identity()["Arn"]
    except LakeloadError as error:
        error.hint = hint
        raise


def _variable(reference: SecretReference, taken: Iterable[ExternalId]) -> str:
    """Return a name for a secret that shells and Terraform take, and no other secret has."""
    names = {one.variable.lower() for one in taken}
    named = reference.name if reference.kind == "env" else "EXTERNAL_ID"
    name = re.sub("[^A-Za-z0-9_]", "_", named)
    if name[0].isdigit():
        name = f"_{name}"
    number = 1
    while name.lower() in names:
        number += 1
        name = f"EXTERNAL_ID_{number}"
    return name


def _session(destination: DestinationSpec) -> AwsSession:
    # Here, because most policies are written without asking AWS anything.
    from lakeload_jobs.aws import AwsSession

    return AwsSession(destination, connect_timeout=3, read_timeout=5, max_attempts=2)
