"""Policies as Terraform: `resource` blocks of the provider `aws`, formatted as `fmt` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakeload.policy.iam.model import PolicyDocument
from lakeload.policy.iam.policy_set import PolicySet
from lakeload.policy.render.hcl import Call, Expression, block, comment, label


def terraform(found: PolicySet, notes: tuple[str, ...] = ()) -> str:
    """Return one file. Secrets are sensitive variables unless the documents hold them."""
    parts = [comment(note) for note in notes]
    parts += _variables(found)
    for document in found.documents:
        parts += {"trust": _trust, "base": _base}.get(document.name, _attached)(found, document)
    return "\n\n".join(parts) + "\n"


def _variables(found: PolicySet) -> Iterator[str]:
    for external_id in found.asked.external_ids:
        if found.document("trust") is None:
            continue
        yield block(
            "variable",
            label(external_id.variable),
            body={
                "description": f"The ExternalId behind {external_id.reference}",
                "type": Expression("string"),
                "sensitive": True,
            },
        )
    if found.role is None and found.attached and _owner(found) is None:
        yield block(
            "variable",
            "role_name",
            body={
                "description": "The role that the policies are for",
                "type": Expression("string"),
            },
        )


def _trust(found: PolicySet, document: PolicyDocument) -> Iterator[str]:
    role = found.role
    if role is None:
        return
    body: dict[str, object] = {"name": role.name}
    if role.path != "/":
        body["path"] = role.path
    if role.session_seconds > 3600:
        body["max_session_duration"] = role.session_seconds
    body["assume_role_policy"] = Call("jsonencode", _variable_for(found, document.as_json()))
    yield _explained(document, block("resource", "aws_iam_role", "lakeload", body=body))


def _attached(found: PolicySet, document: PolicyDocument) -> Iterator[str]:
    name = f"lakeload_{document.name}"
    policy = {
        "name": found.policy_name(document),
        "policy": Call("jsonencode", document.as_json()),
    }
    yield _explained(document, block("resource", "aws_iam_policy", name, body=policy))
    owner = _owner(found)
    kind = owner[0] if owner else "role"
    body = {
        kind: owner[1] if owner else Expression("var.role_name"),
        "policy_arn": Expression(f"aws_iam_policy.{name}.arn"),
    }
    yield block("resource", f"aws_iam_{kind}_policy_attachment", name, body=body)


def _base(found: PolicySet, document: PolicyDocument) -> Iterator[str]:
    """Yield the policy; it is attached where its owner is known and in the role's account."""
    policy = Call("jsonencode", document.as_json())
    owner = found.base
    name = found.policy_name(document)
    elsewhere = owner and found.role and found.role.account not in (None, owner.account)
    if elsewhere:
        yield comment(
            f"For account {owner.account if owner else ''}, whose identity assumes the role: "
            "`lakeload policy FILE --only base` writes the policy that it needs there."
        )
        return
    if owner is None or owner.kind == "root":
        body: Mapping[str, object] = {"name": name, "policy": policy}
        made = block("resource", "aws_iam_policy", "lakeload_base", body=body)
    else:
        body = {"name": name, owner.kind: owner.name, "policy": policy}
        made = block("resource", f"aws_iam_{owner.kind}_policy", "lakeload_base", body=body)
    yield _explained(document, made)


def _owner(found: PolicySet) -> tuple[str, object] | None:
    """Return `role` or `user`, and its name, as far as it is known."""
    if found.role is not None:
        named = Expression("aws_iam_role.lakeload.name") if found.document("trust") else None
        return "role", named or found.role.name
    user = found.base
    return (user.kind, user.name) if user is not None and user.name else None


def _explained(document: PolicyDocument, text: str) -> str:
    reasons = [f"{one.sid}: {one.why}." for one in document.statements]
    return f"{comment(*reasons)}\n{text}"


def _variable_for(found: PolicySet, value: object) -> object:
    """Return the document with variables in place of placeholders."""
    if isinstance(value, Mapping):
        return {key: _variable_for(found, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_variable_for(found, item) for item in value]
    for external_id in found.asked.external_ids:
        if value == external_id.placeholder:
            return Expression(f"var.{label(external_id.variable)}")
    return value
