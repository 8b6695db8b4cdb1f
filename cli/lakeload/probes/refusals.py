"""What the text of a denial names: the action, and the kind of policy that refused.

AWS documents the wording (https://docs.aws.amazon.com/IAM/latest/UserGuide/
troubleshoot_access-denied.html); other stores say less or nothing. So what is read here orders and
adds advice, and never decides what a probe found (decision 0065).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    def of_resource(self) -> bool:
        """Whether the policy of the bucket, key or catalog decided."""
        return self.policy.startswith("the policy of the resource")

    @property
    def cause(self) -> str:
        """The cause as a sentence; '' for the plain case, which every probe lists itself."""
        about = self.action or "this action"
        if self.explicit:
            where = self.policy or "some policy"
            return f"{where} has a Deny for {about}: no Allow elsewhere outweighs it"
        if self.policy and not self.policy.startswith("a policy"):
            return f"{self.policy} does not allow {about}: it has to, beside the role's own policy"
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
