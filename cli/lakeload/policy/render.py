"""Policies as shell commands (`cli.jinja`) and Terraform (`terraform.jinja`)."""

from __future__ import annotations

import json
import re
from typing import Any

from lakeload.policy.model import PolicyDocument
from lakeload.policy.policy_set import PolicySet
from lakeload.policy.secret_variables import own_variable, reading_command
from lakeload.policy.templates import aligned, comment, hcl, label, template


def shell(found: PolicySet, notes: tuple[str, ...] = ()) -> str:
    """Return a script for sh. Secrets are read when it runs, unless the documents hold them."""
    unread = [
        one
        for one in found.asked.external_ids
        if found.document("trust")
        and not (own_variable(one.reference) and one.reference.name == one.variable)
    ]

    def here_document(document: PolicyDocument) -> str:
        """Only one with secrets to fill in is expanded."""
        text = json.dumps(document.as_json(), indent=2)
        held = [one for one in found.asked.external_ids if json.dumps(one.placeholder) in text]
        if document.name != "trust" or not held:
            return f"'POLICY'\n{text}\nPOLICY"
        text = re.sub(r"[\\$`]", r"\\\g<0>", text)
        for one in held:
            text = text.replace(one.placeholder, f"${{{one.variable}:?}}")
        return f"POLICY\n{text}\nPOLICY"

    facts = {"unread": unread, "reading_command": reading_command, "here_document": here_document}
    return _written("cli", found, notes, facts)


def terraform(found: PolicySet, notes: tuple[str, ...] = ()) -> str:
    """Return one file. Secrets are sensitive variables unless the documents hold them."""

    def jsonencode(document: PolicyDocument) -> str:
        text = hcl(document.as_json(), "  ")
        for one in found.asked.external_ids:
            text = text.replace(hcl(one.placeholder), f"var.{label(one.variable)}")
        return f"jsonencode({text})"

    return aligned(_written("terraform", found, notes, {"jsonencode": jsonencode}))


def _written(form: str, found: PolicySet, notes: tuple[str, ...], facts: dict[str, Any]) -> str:
    role, base = found.role, found.base
    who = role or base
    owner = role or (base if base and base.name else None)
    text = template(f"{form}.jinja").render(
        **facts,
        notes=notes,
        found=found,
        external_ids=found.asked.external_ids,
        region=found.destination.region,
        role=role,
        base=base,
        whose=base is not None and base.kind != "root",
        elsewhere=base and role and role.account not in (None, base.account),
        account=who.account if who else None,
        kind=owner.kind if owner else "role",
        owner=owner.name if owner else None,
        reasons=_reasons,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def _reasons(document: PolicyDocument) -> str:
    """Return a blank line and what each statement is for."""
    return "\n" + comment(*(f"{one.sid}: {one.why}." for one in document.statements))
