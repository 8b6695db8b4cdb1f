"""Policies as `aws iam` commands, to be pasted into a shell or run by one.

Documents come by standard input: the ExternalId never stands in the arguments of a process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from shlex import quote

from lakeload.policy.engines.secret_variables import own_variable, reading_command
from lakeload.policy.iam.model import PolicyDocument
from lakeload.policy.iam.policy_set import ExternalId, PolicySet
from lakeload.policy.render.hcl import comment
from lakeload_jobs.core.aws_partitions import partition

_OWN_ACCOUNT = "$(aws sts get-caller-identity --query Account --output text)"


def shell(found: PolicySet, notes: tuple[str, ...] = ()) -> str:
    """Return a script for sh. Secrets are read when it runs, unless the documents hold them."""
    parts = [comment(note) for note in notes]
    if found.document("trust"):
        parts += [_reading(one, found.destination.region) for one in _to_read(found)]
    for document in found.documents:
        make = {"trust": _trust, "base": _base}.get(document.name, _attached)
        reasons = comment(*(f"{one.sid}: {one.why}." for one in document.statements))
        parts.append("\n".join([reasons, *make(found, document)]))
    return "\n\n".join(parts) + "\n"


def _to_read(found: PolicySet) -> list[ExternalId]:
    """Return the secrets that no variable of the environment holds already."""
    kept = []
    for one in found.asked.external_ids:
        if not (own_variable(one.reference) and one.reference.name == one.variable):
            kept.append(one)
    return kept


def _reading(external_id: ExternalId, region: str) -> str:
    return f"{external_id.variable}=$({reading_command(external_id.reference, region)})"


def _trust(found: PolicySet, document: PolicyDocument) -> Iterator[str]:
    role = found.role
    if role is None:
        return
    options = [f"--role-name {quote(role.name)}"]
    if role.path != "/":
        options.append(f"--path {quote(role.path)}")
    if role.session_seconds > 3600:
        options.append(f"--max-session-duration {role.session_seconds}")
    ids = found.asked.external_ids
    yield _with_document("create-role", options, "--assume-role-policy-document", document, ids)


def _attached(found: PolicySet, document: PolicyDocument) -> Iterator[str]:
    name = found.policy_name(document)
    yield _with_document("create-policy", [f"--policy-name {name}"], "--policy-document", document)
    owner = _owner(found)
    options = [f"--{owner[0]}-name {owner[1]}", _policy_arn(found, name)]
    yield _command(f"attach-{owner[0]}-policy", options)


def _base(found: PolicySet, document: PolicyDocument) -> Iterator[str]:
    owner, name = found.base, f"--policy-name {found.policy_name(document)}"
    if owner is None or owner.kind == "root":
        yield comment("Attach it to whoever runs lakeload.")
        yield _with_document("create-policy", [name], "--policy-document", document)
        return
    if found.role and found.role.account not in (None, owner.account):
        yield comment(f"To be run in account {owner.account}.")
    options = [f"--{owner.kind}-name {quote(owner.name)}", name]
    yield _with_document(f"put-{owner.kind}-policy", options, "--policy-document", document)


def _owner(found: PolicySet) -> tuple[str, str]:
    """Return `role` or `user`, and its name; a variable to set where nobody knows it."""
    if found.role is not None:
        return "role", quote(found.role.name)
    user = found.base
    if user is not None and user.name:
        return user.kind, quote(user.name)
    return "role", '"${ROLE_NAME:?}"'


def _policy_arn(found: PolicySet, name: str) -> str:
    """Return the option that names a policy made before; the shell asks for an unknown account."""
    role, user = found.role, found.base
    account = role.account if role else (user.account if user else None)
    start = f"arn:{partition(found.destination.region)}:iam::"
    if account:
        return f"--policy-arn {start}{account}:policy/{name}"
    return f'--policy-arn "{start}{_OWN_ACCOUNT}:policy/{name}"'


def _with_document(
    command: str,
    options: Sequence[str],
    option: str,
    document: PolicyDocument,
    external_ids: Sequence[ExternalId] = (),
) -> str:
    """Return the command and its here-document; only one with secrets to fill in is expanded."""
    text = json.dumps(document.as_json(), indent=2)
    held = [one for one in external_ids if json.dumps(one.placeholder) in text]
    end = "POLICY" if held else "'POLICY'"
    if held:
        text = re.sub(r"[\\$`]", r"\\\g<0>", text)
    for one in held:
        text = text.replace(one.placeholder, f"${{{one.variable}:?}}")
    return f"{_command(command, [*options, f'{option} file:///dev/stdin'])} <<{end}\n{text}\nPOLICY"


def _command(name: str, options: Sequence[str]) -> str:
    return " \\\n  ".join([f"aws iam {name}", *options])
