"""All IAM documents of one destination with their notes, independent of the output format."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from lakeload.policy import iam
from lakeload.policy.iam import PolicyOptions
from lakeload.policy.model import (
    INLINE_POLICY_LIMITS,
    LAST_CHARACTER,
    MANAGED_POLICY_LIMIT,
    TRUST_POLICY_LIMIT,
    PolicyDocument,
    other_store,
    place,
    role_is_catalogs,
)
from lakeload.policy.principals import ExternalId, Principal
from lakeload.policy.templates import label, template
from lakeload.sources.registry import facts_of
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import catalog_of, catalog_traits, format_of
from lakeload_jobs.core.aws_partitions import partition

DOCUMENTS = ("trust", "s3", "glue", "kms", "source", "maintain", "reset", "base")
"""The names of the documents, in the order in which they are shown."""

_NOT_IN_A_NAME = re.compile(r"[^\w+=,.@-]", re.ASCII)


@dataclass(frozen=True)
class Role:
    """The role to make. `account` is None where nothing says whose it is."""

    name: str
    path: str
    account: str | None
    partition: str
    session_seconds: int = 3600
    kind: ClassVar[str] = "role"


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
        if role_is_catalogs(self.destination):
            return None
        return next(iter(self.asked.principals), None)

    def policy_name(self, document: PolicyDocument) -> str:
        """Return a name that IAM takes (128 characters)."""
        owner = self.role.name if self.role else f"lakeload-{self.destination.bucket}"
        return f"{owner[:110]}-{document.name}"


def needs_principal(destination: DestinationSpec, options: PolicyOptions) -> bool:
    """Whether there is a trust policy to write."""
    wanted = destination.credentials.role_arn is not None or role_is_catalogs(destination)
    return wanted and not options.read_only


def compose(
    destination: DestinationSpec, tables: Sequence[TableSpec] = (), asked: Asked | None = None
) -> PolicySet:
    """Return what `asked` is about; `tables` are those of a pipeline, if it is one."""
    asked = asked or Asked()
    found: list[PolicyDocument | None] = []
    if needs_principal(destination, asked.options):
        tags = tuple(destination.credentials.session_tags or ())
        found.append(iam.trust_policy(asked.principals, session_tags=tags))
    found += iam.role_policies(destination, asked.options)
    if not asked.options.read_only:
        vended = role_is_catalogs(destination)
        own = None if vended else next(iter(asked.principals), None)
        source = iam.source_policy(destination, tables)
        account = own.account if own else None
        base = iam.base_policy(destination, account=account, assumes=not vended, tables=tables)
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


def notes(
    found: PolicySet, tables: Sequence[TableSpec] = (), *, form: str = "json"
) -> tuple[str, ...]:
    """Return what to mind (`notes.jinja`), each a sentence or two; indented lines are verbatim.

    `form` is how the documents are written: `json`, `cli` or `terraform`.
    """
    destination, options = found.destination, found.asked.options
    catalog, trust = catalog_of(destination), found.document("trust")
    held = json.dumps(trust.as_json()) if trust else ""
    secrets = [
        {
            "json": f"{one.placeholder} ({one.reference})",
            "cli": str(one.reference),
            "terraform": f"the variable `{label(one.variable)}` to {one.reference}",
        }[form]
        for one in found.asked.external_ids
        if one.placeholder in held
    ]
    statements = [one for document in found.attached for one in document.statements]
    text = template("notes.jinja").render(
        found=found,
        form=form,
        destination=destination,
        options=options,
        principals=found.asked.principals,
        format=format_of(destination),
        catalog=catalog,
        in_glue=catalog is not None and catalog_traits(catalog).in_glue,
        glue=iam.uses_glue(destination),
        rest=iam.speaks_rest(destination),
        vended=role_is_catalogs(destination),
        other_store=other_store(destination),
        any_account=any(":*:" in arn for one in statements for arn in one.resources),
        secrets=" and ".join(secrets),
        key_policy=iam.key_policy(destination, options.account),
        account=place(destination, options.account).account,
        catalog_owner=iam.catalog_owner(destination),
        database_prefix=iam.database_prefix(destination),
        own_credentials=any(facts_of(one.input).has_credentials for one in tables),
        secrets_in_aws=any(
            one.kind.startswith("aws_")
            for one in (*iam.references(destination), *iam.source_references(tables))
        ),
        sizes=[_size(found, document, form) for document in found.documents],
    )
    parts = re.split(r"^- ", text, flags=re.MULTILINE)[1:]
    return tuple(re.sub(r"\n(?! )", " ", part.strip("\n")) for part in parts)


def _size(found: PolicySet, document: PolicyDocument, form: str) -> tuple[str, int, bool, str, int]:
    """Return name and size of a document, whether it holds letters that IAM does not take, what
    becomes of it, and how long that may be."""
    foreign = max(json.dumps(document.as_json(), ensure_ascii=False)) > LAST_CHARACTER
    what, limit = "a managed policy", MANAGED_POLICY_LIMIT
    owner = found.base.kind if found.base else "root"
    if document.name == "trust":
        what, limit = "a trust policy", TRUST_POLICY_LIMIT
    elif document.name == "base" and form != "json" and owner in INLINE_POLICY_LIMITS:
        what, limit = f"the policies embedded in a {owner}", INLINE_POLICY_LIMITS[owner]
    return document.name, document.size, foreign, what, limit
