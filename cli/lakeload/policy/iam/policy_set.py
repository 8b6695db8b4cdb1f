"""Everything one destination asks of IAM, ready to be shown in any format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakeload.policy.iam import s3
from lakeload.policy.iam.base import base_policy
from lakeload.policy.iam.iam import PolicyOptions, role_policies
from lakeload.policy.iam.model import PolicyDocument
from lakeload.policy.iam.trust import Principal, source_policy, trust_policy
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.core.aws_partitions import partition

DOCUMENTS = ("trust", "s3", "glue", "kms", "source", "maintain", "reset", "base")
"""The names of the documents, in the order in which they are shown."""

_NOT_IN_A_NAME = re.compile(r"[^\w+=,.@-]", re.ASCII)


@dataclass(frozen=True)
class ExternalId:
    """A secret of the trust policy. `placeholder` stands for it where it is not revealed."""

    variable: str
    reference: SecretReference

    @property
    def placeholder(self) -> str:
        """What stands in the document."""
        return f"<{self.variable}>"


@dataclass(frozen=True)
class Role:
    """The role to make. `account` is None where nothing says whose it is."""

    name: str
    path: str
    account: str | None
    partition: str
    session_seconds: int = 3600


@dataclass(frozen=True)
class Asked:
    """What the user wants to see."""

    options: PolicyOptions = field(default_factory=PolicyOptions)
    principals: tuple[Principal, ...] = ()
    """Who may assume the role; the first one is who runs lakeload, unless the catalog vends."""
    external_ids: tuple[ExternalId, ...] = ()
    """Those that the principals hold the placeholders of."""
    only: str | None = None


@dataclass(frozen=True)
class PolicySet:
    """The documents of one destination, and to whom they belong."""

    destination: DestinationSpec
    asked: Asked
    role: Role | None
    """None: the documents belong to the identity that loads, which no role is made for."""
    documents: tuple[PolicyDocument, ...]

    def shows(self, name: str) -> bool:
        """Whether the document of that name would be among these, if there is one."""
        return self.asked.only in (None, name)

    def document(self, name: str) -> PolicyDocument | None:
        """Return the document of that name, if there is one."""
        return next((one for one in self.documents if one.name == name), None)

    @property
    def attached(self) -> tuple[PolicyDocument, ...]:
        """The documents that grant something to the role, or to the identity that loads."""
        return tuple(one for one in self.documents if one.name not in ("trust", "base"))

    @property
    def base(self) -> Principal | None:
        """Who runs lakeload and assumes the role, as far as it is known."""
        if s3.role_is_catalogs(self.destination):
            return None
        return next(iter(self.asked.principals), None)

    def policy_name(self, document: PolicyDocument) -> str:
        """Return a name that IAM takes (128 characters)."""
        owner = self.role.name if self.role else f"lakeload-{self.destination.bucket}"
        return f"{owner[:110]}-{document.name}"


def needs_principal(destination: DestinationSpec, options: PolicyOptions) -> bool:
    """Whether there is a trust policy to write."""
    wanted = destination.credentials.role_arn is not None or s3.role_is_catalogs(destination)
    return wanted and not options.read_only


def compose(
    destination: DestinationSpec, tables: Sequence[TableSpec] = (), asked: Asked | None = None
) -> PolicySet:
    """Return what `asked` is about; `tables` are those of a pipeline, if it is one."""
    asked = asked or Asked()
    found: list[PolicyDocument | None] = []
    if needs_principal(destination, asked.options):
        tags = tuple(destination.credentials.session_tags or ())
        found.append(trust_policy(asked.principals, session_tags=tags))
    found += role_policies(destination, asked.options)
    if not asked.options.read_only:
        vended = s3.role_is_catalogs(destination)
        own = None if vended else next(iter(asked.principals), None)
        source = source_policy(destination, tables)
        account = own.account if own else None
        base = base_policy(destination, account=account, assumes=not vended)
        # The catalog's role writes tables; the source is read by who runs lakeload.
        found += [merged("base", base, source)] if vended else [source, base]
    kept = {one.name: one for one in found if one is not None and asked.only in (None, one.name)}
    return PolicySet(
        destination=destination,
        asked=asked,
        role=_role(destination, asked.options),
        documents=tuple(kept[name] for name in DOCUMENTS if name in kept),
    )


def merged(name: str, *documents: PolicyDocument | None) -> PolicyDocument | None:
    """Return the documents as one of that name, None when there is nothing in them."""
    statements = [one for document in documents if document for one in document.statements]
    return PolicyDocument(name, tuple(statements)) if statements else None


def _role(destination: DestinationSpec, options: PolicyOptions) -> Role | None:
    if not needs_principal(destination, options):
        return None
    credentials = destination.credentials
    if credentials.role_arn is None:
        name = _NOT_IN_A_NAME.sub("-", f"lakeload-{destination.bucket}")[:64]
        return Role(name, "/", options.account, partition(destination.region))
    parts = credentials.role_arn.split(":", 5)
    path, _, name = parts[5].removeprefix("role").rpartition("/")
    return Role(name, f"{path}/", parts[4], parts[1], credentials.session_duration)
