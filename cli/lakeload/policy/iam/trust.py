"""Trust policies of the role, and the policy of a source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakeload.policy.iam.model import Conditions, Place, PolicyDocument, Statement, literal
from lakeload.sources.registry import source_of
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.core.aws_partitions import partition
from lakeload_jobs.sources.files.key_patterns import KeyPattern

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


def trust_policy(
    principals: Sequence[Principal], *, session_tags: Sequence[str] = ()
) -> PolicyDocument:
    """Return the trust policy: one statement for each ExternalId, and one for those without.

    `session_tags` are the keys of tags that they may give to the session.
    """
    groups: dict[str | None, list[str]] = {}
    for principal in principals:
        found = groups.setdefault(principal.external_id, [])
        if principal.arn not in found:
            found.append(principal.arn)
    statements = [
        _assume_role(number, tuple(arns), external_id)
        for number, (external_id, arns) in enumerate(groups.items(), 1)
    ]
    if session_tags:
        everybody = tuple(dict.fromkeys(principal.arn for principal in principals))
        statements.append(tag_session(session_tags, principals=everybody))
    return PolicyDocument("trust", tuple(statements))


def tag_session(
    keys: Sequence[str], *, principals: tuple[str, ...] = (), role_arn: str = ""
) -> Statement:
    """Return what `session_tags` take, for the role's trust policy or the base identity's own.

    A statement of its own: the action has no condition key sts:ExternalId, and by itself it lets
    nobody in. https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html
    """
    return Statement(
        sid="TagSession",
        actions=("sts:TagSession",),
        resources=(role_arn,) if role_arn else (),
        why="the session may carry the tags in `session_tags`",
        conditions={"ForAllValues:StringEquals": {"aws:TagKeys": tuple(keys)}},
        principals=principals,
    )


def _assume_role(number: int, arns: tuple[str, ...], external_id: str | None) -> Statement:
    why = f"{' and '.join(arns)} may assume the role"
    conditions: dict[str, dict[str, str]] = {}
    if external_id is not None:
        why += ", with a request that carries the ExternalId"
        conditions = {"StringEquals": {"sts:ExternalId": external_id}}
    return Statement(
        sid="AssumeRole" if number == 1 else f"AssumeRole{number}",
        actions=("sts:AssumeRole",),
        resources=(),
        why=why,
        conditions=conditions,
        principals=arns,
    )


def source_policy(
    destination: DestinationSpec, tables: Sequence[TableSpec]
) -> PolicyDocument | None:
    """Return what reading the tables with the destination's identity takes; None for no S3.

    Tables read with credentials of their own are left out.
    """
    by_bucket: dict[str, dict[str, None]] = {}
    for table in tables:
        source = source_of(table.input)
        if source.has_credentials(table.input):
            continue
        for path in source.objects(table.input):
            pattern = KeyPattern.parse(path)
            by_bucket.setdefault(pattern.bucket, {})[pattern.prefix] = None
    arns = Place(partition(destination.region), destination.region, "*")
    statements: list[Statement] = []
    for number, (bucket, beginnings) in enumerate(by_bucket.items(), 1):
        named = f"{number}" if len(by_bucket) > 1 else ""
        statements += _bucket(bucket, _shortest(list(beginnings)), arns, named)
    return PolicyDocument("source", tuple(statements)) if statements else None


def _bucket(
    bucket: str, beginnings: Sequence[str], arns: Place, number: str
) -> tuple[Statement, Statement]:
    patterns = tuple(f"{literal(beginning)}*" for beginning in beginnings)
    # IfExists: for a key that is not there HEAD answers 404 only to those who may list, and a
    # HEAD has no prefix; Spark takes the 403 that the others get for a refusal.
    limit: Conditions = {"StringLikeIfExists": {"s3:prefix": patterns}}
    return (
        Statement(
            f"ListSource{number}",
            ("s3:ListBucket",),
            (arns.s3(bucket),),
            f"the source's files in `{bucket}` are found",
            {} if "" in beginnings else limit,
        ),
        Statement(
            f"ReadSource{number}",
            ("s3:GetObject",),
            tuple(arns.s3(bucket, pattern) for pattern in patterns),
            f"the source's files in `{bucket}` are read; nothing is written there",
        ),
    )


def _shortest(beginnings: Sequence[str]) -> list[str]:
    """Return the beginnings that no other one covers, sorted."""
    kept: list[str] = []
    for beginning in sorted(beginnings):
        if not kept or not beginning.startswith(kept[-1]):
            kept.append(beginning)
    return kept
