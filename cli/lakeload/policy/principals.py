"""Who may assume the role: ARNs of accounts, users and roles, with an ExternalId of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import SecretReference

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
        raise InvalidInput(f"`{text}` is not the ARN of an account, a user or a role", hint=_HINT)
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
