"""Likely causes of denied requests, and their fixes."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib import resources

from lakeload.config.yaml_tree import own_yaml
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.codec import from_json
from lakeload_jobs.contract.errors import InvalidInput

LAKE_FORMATION = "Lake Formation permission"
"""In every refusal of Lake Formation: "Insufficient Lake Formation permission(s): Required …"."""

_GRANT = re.compile(r"Lake Formation permission\(s\): Required (.+?)(?:$|[.;(])")
_ACTION = re.compile(r"not authorized to perform: ([a-z][a-z0-9-]*:[A-Za-z]+)")
_EXPLICIT = re.compile(
    r"with an explicit deny in (?:an?|the) ([A-Za-z -]+?)(?: policy)?(?:[,.:(]|$)"
)
_IMPLICIT = re.compile(r"because no ([A-Za-z -]+?)(?: policy)? allows")

# The words that tell the kinds apart, the more special first.
_KINDS = (
    ("service control", "an SCP of the organization"),
    ("resource control", "an RCP of the organization"),
    ("vpc endpoint", "the policy of the VPC endpoint"),
    ("boundary", "the permissions boundary of the role or user"),
    ("session", "the policy of the session"),
    ("trust", "the role's trust policy"),
    ("resource-based", "the policy of the resource itself (bucket, key or catalog)"),
    ("identity-based", "a policy of the role or user"),
)


@dataclass(frozen=True)
class Refusal:
    """What a denial says of itself. `action` is '' where it names none; so is `policy`."""

    action: str
    policy: str
    """The kind of policy, as a phrase that follows "in"."""
    explicit: bool
    """A statement says Deny; else nothing says Allow."""

    @property
    def beyond_a_grant(self) -> bool:
        """Whether no statement in a policy of the role, user or resource would help."""
        guards = (
            "an SCP",
            "an RCP",
            "the policy of the VPC",
            "the permissions boundary",
            "the policy of the session",
        )
        return self.explicit or self.policy.startswith(guards)

    @property
    def of_identity(self) -> bool:
        """Whether nothing is denied, and the policies of who asks do not allow it."""
        return not self.explicit and self.policy.startswith("a policy of the role or user")

    @property
    def of_resource(self) -> bool:
        """Whether the policy of the bucket, key or catalog decided."""
        return self.policy.startswith("the policy of the resource")

    @property
    def cause(self) -> str:
        """The cause as a sentence; '' for the plain case, which every probe lists itself."""
        about = self.action or "this action"
        if self.explicit:
            where = self.policy or "some policy"
            return f"{where} has a Deny for {about}, which overrides every Allow"
        if self.policy and not self.policy.startswith("a policy"):
            return (
                f"{self.policy} does not allow {about}: it must, in addition to the "
                "role's own policy"
            )
        return ""


def read_refusal(text: str) -> Refusal | None:
    """Return what a denial's text names, or None when it is not AWS's wording."""
    action = _ACTION.search(text)
    found = _EXPLICIT.search(text)
    explicit = found is not None or "with an explicit deny" in text
    found = found or _IMPLICIT.search(text)
    if not action and not explicit and not found:
        return None
    kind = found[1].lower() if found else ""
    policy = next((phrase for word, phrase in _KINDS if word in kind), "")
    return Refusal(action[1] if action else "", policy, explicit)


def missing_grant(text: str) -> str:
    """Return what Lake Formation says it requires, such as `Create Table on shop`; or ''."""
    found = _GRANT.search(text)
    return found[1].strip() if found else ""


@dataclass(frozen=True)
class CatalogCauses:
    """The causes that depend on the type of an Iceberg catalog."""

    client_refused: tuple[str, ...]
    """Besides those that all have."""
    scope_refused: tuple[str, ...]
    other_path: str
    denied: tuple[str, ...]
    """In place of the general ones."""
    unknown_warehouse: tuple[str, ...]
    failing: tuple[str, ...]
    """What such a catalog fails at where others would say "not found"."""


@dataclass(frozen=True)
class KnownCauses:
    """What causes.yml holds: likely causes by code, the likeliest first."""

    aws: dict[str, tuple[str, ...]]
    same: dict[str, tuple[str, ...]]
    catalog: dict[str, tuple[str, ...]]
    said: dict[str, tuple[str, ...]]
    denied: dict[str, tuple[str, ...]]
    not_accepted: dict[str, tuple[str, ...]]
    client_refused: tuple[str, ...]
    catalog_types: dict[str, CatalogCauses]

    def of(self, code: str) -> tuple[str, ...]:
        """Return the causes of a code of AWS or of a store; none for an unknown one."""
        own = next((like for like, codes in self.same.items() if code in codes), code)
        return self.aws.get(own, ())


@functools.cache
def known_causes() -> KnownCauses:
    """Return the causes; read when the first error is explained."""
    text = resources.files("lakeload.probes").joinpath("causes.yml").read_text("utf-8")
    return from_json(KnownCauses, own_yaml(text))


_LAKE_FORMATION = (
    "Lake Formation governs this database or the catalog and has no grant for the role: IAM "
    "and Lake Formation both have to allow the call",
    "the grant is for another role or database: Lake Formation has no prefixes",
)


def likely_causes(error: Exception, *, denied: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the likely causes of `error`; `denied` are those of an AccessDenied here."""
    if is_clock(error):
        return known_causes().of("RequestTimeTooSkewed")
    if is_lake_formation(error):
        return _LAKE_FORMATION
    if isinstance(error, AwsError) and error.denied:
        denial = refusal(error)
        first = denial.cause if denial else ""
        if denial and denial.explicit:
            # That is certain then, and whether something allows it does not matter.
            return (first,)
        return (first, *denied) if first else denied
    if isinstance(error, InvalidInput):
        return ("the variable or file is set up for another user, shell or container",)
    return known_causes().of(getattr(error, "code", ""))


def refusal(error: Exception) -> Refusal | None:
    """Return what a denial's text says of the policy that refused; None where it says nothing.

    Advice only: no verdict follows from it.
    """
    if not isinstance(error, AwsError) or not error.denied:
        return None
    return read_refusal(error.message)


def grant_hint(error: AwsError) -> str | None:
    """Return what to do about a refusal of Lake Formation; None for any other error."""
    if not is_lake_formation(error):
        return None
    grant = missing_grant(error.message)
    what = f"grant `{grant}`" if grant else "grant what is missing"
    return (
        f"{what} to the role in Lake Formation, as a data lake administrator: "
        "`lakeload policy FILE --for lake-formation` writes the commands"
    )


def is_lake_formation(error: Exception) -> bool:
    """True when Lake Formation refused and not IAM: Glue gives both the same code."""
    return isinstance(error, AwsError) and error.denied and LAKE_FORMATION in error.message


def is_clock(error: Exception) -> bool:
    """True when AWS says that the request's time is wrong."""
    if not isinstance(error, AwsError):
        return False
    if error.code == "RequestTimeTooSkewed":
        return True
    text = error.message
    return error.code in ("SignatureDoesNotMatch", "InvalidSignatureException") and (
        "Signature expired" in text or "Signature not yet current" in text
    )
