"""Lake Formation grants as commands, as Terraform and as requests. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Literal

from lakeload.policy.engines.lake_formation import ANY_PRINCIPAL, Grant, LakeFormation
from lakeload.policy.iam.arns import place
from lakeload.policy.iam.glue import catalog_owner
from lakeload.policy.text.hcl import string
from lakeload.policy.text.snippets import Snippet, words
from lakeload_jobs.contract.spec import DestinationSpec

Form = Literal["cli", "terraform", "json"]

_REGISTER = (
    "Query engines then get their credentials for this location from Lake Formation. With hybrid "
    "access, what IAM allows today goes on working for everybody who is not opted in. Leave this "
    "out if the location or one above it is registered already. Run it, and the grants, as a data "
    "lake administrator."
)
_KMS = (
    "\nThe bucket is encrypted with KMS: the service-linked role has to be a user of the key, or "
    "register with a role of your own (`--role-arn`)."
)
_READERS = (
    "\nThe reader's IAM policy needs lakeformation:GetDataAccess as well, and no right on S3."
)


def lake_formation_snippets(
    destination: DestinationSpec, wanted: LakeFormation, form: Form
) -> tuple[Snippet, ...]:
    """Return the registration, if there is one, and the grants in one of three forms."""
    if form == "json":
        return (_as_requests(destination, wanted),)
    made: list[Snippet] = []
    if wanted.location is not None:
        made.append(_registration(destination, wanted.location, form))
    labels = _labels(wanted.grants)
    for label, grant in zip(labels, wanted.grants, strict=True):
        made.append(
            Snippet(
                f"grant {', '.join(grant.permissions)}",
                _grant_command(destination, grant) if form == "cli" else _grant_block(label, grant),
                _why(grant, readers=wanted.location is None),
                _LANGUAGES[form],
            )
        )
    return tuple(made)


_LANGUAGES: dict[Form, Literal["sh", "hcl", "json"]] = {
    "cli": "sh",
    "terraform": "hcl",
    "json": "json",
}


def _why(grant: Grant, *, readers: bool) -> str:
    found = f"For {grant.principal}: {grant.why}."
    if grant.principal == ANY_PRINCIPAL:
        found += f"\nReplace {ANY_PRINCIPAL} by the ARN of the role or user."
    return found + (_READERS if readers else "")


def _registration(destination: DestinationSpec, location: str, form: Form) -> Snippet:
    kms = _KMS if destination.encryption.type == "SSE_KMS" else ""
    if form == "cli":
        text = _command(
            "register-resource",
            destination,
            f"--resource-arn {shlex.quote(location)}",
            "--use-service-linked-role",
            "--hybrid-access-enabled",
        )
    else:
        text = "\n".join(
            [
                'resource "aws_lakeformation_resource" "lakeload" {',
                f"  arn                     = {string(location)}",
                "  use_service_linked_role = true",
                "  hybrid_access_enabled   = true",
                "}",
            ]
        )
    return Snippet("register the location", text, _REGISTER + kms, _LANGUAGES[form])


def _grant_command(destination: DestinationSpec, grant: Grant) -> str:
    resource = json.dumps(grant.as_request()["Resource"], separators=(",", ":"))
    return _command(
        "grant-permissions",
        destination,
        f"--principal DataLakePrincipalIdentifier={shlex.quote(grant.principal)}",
        f"--resource {shlex.quote(resource)}",
        f"--permissions {' '.join(grant.permissions)}",
    )


def _command(action: str, destination: DestinationSpec, *options: str) -> str:
    region = f"--region {shlex.quote(destination.region)}"
    return " \\\n  ".join([f"aws lakeformation {action}", region, *options])


def _labels(grants: Sequence[Grant]) -> list[str]:
    """Return names for Terraform, no two alike: of who gets the grant and what it is on."""
    found: list[str] = []
    for grant in grants:
        label = f"{words(grant.principal.rpartition('/')[2])}_{_terraform_resource(grant)[0]}"
        label = f"_{label}" if label[0].isdigit() else label
        number, numbered = 1, label
        while numbered in found:
            number += 1
            numbered = f"{label}_{number}"
        found.append(numbered)
    return found


def _grant_block(label: str, grant: Grant) -> str:
    permissions = ", ".join(string(permission) for permission in grant.permissions)
    _, inner = _terraform_resource(grant)
    return "\n".join(
        [
            f'resource "aws_lakeformation_permissions" "{label}" {{',
            f"  principal   = {string(grant.principal)}",
            f"  permissions = [{permissions}]",
            "",
            *(f"  {line}" for line in inner),
            "}",
        ]
    )


def _terraform_resource(grant: Grant) -> tuple[str, list[str]]:
    """Return a name for the grant, and what it is on in Terraform's words."""
    if location := grant.resource.get("DataLocation"):
        return "location", [
            "data_location {",
            f"  arn = {string(str(location['ResourceArn']))}",
            "}",
        ]
    if "Catalog" in grant.resource:
        return "catalog", ["catalog_resource = true"]
    if database := grant.resource.get("Database"):
        name = str(database["Name"])
        return f"database_{words(name)}", ["database {", f"  name = {string(name)}", "}"]
    name = str(grant.resource["Table"]["DatabaseName"])
    block = ["table {", f"  database_name = {string(name)}", "  wildcard      = true", "}"]
    return f"tables_{words(name)}", block


def _as_requests(destination: DestinationSpec, wanted: LakeFormation) -> Snippet:
    """Return the parameters of RegisterResource and BatchGrantPermissions."""
    entries = [
        {"Id": str(number), **grant.as_request()} for number, grant in enumerate(wanted.grants, 1)
    ]
    batch: dict[str, object] = {"Entries": entries}
    owner = catalog_owner(destination) or place(destination).account
    if owner != "*":
        batch = {"CatalogId": owner, **batch}
    found: dict[str, object] = {"BatchGrantPermissions": batch}
    if wanted.location is not None:
        register = {
            "ResourceArn": wanted.location,
            "UseServiceLinkedRole": True,
            "HybridAccessEnabled": True,
        }
        found = {"RegisterResource": register, **found}
    return Snippet(
        "requests to Lake Formation",
        json.dumps(found, indent=2, ensure_ascii=False),
        "Each value is the `--cli-input-json` of the command of that name.",
        "json",
    )
