"""What IAM has to allow for a call of Glue, and why it may not (F13, F81; B11)."""

from __future__ import annotations

from typing import Literal

from lakeload.policy.iam.arns import place
from lakeload.policy.iam.glue import database_prefix
from lakeload_jobs.contract.spec import DestinationSpec

Scope = Literal["catalog", "database", "table"]
"""What a call is about."""


def resources(operation: str, scope: Scope, destination: DestinationSpec) -> str:
    """Return every ARN that AWS checks the call against, as a policy for the prefix has them.

    https://docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html: a call needs all
    that is above its resource, a deletion also all that is below.
    """
    arn, named = _arn(destination), f"{database_prefix(destination)}*"
    below: dict[Scope, list[str]] = {
        "catalog": [],
        "database": [f"{arn}:database/{named}"],
        "table": [f"{arn}:table/{named}/*", f"{arn}:database/{named}"],
    }
    found = [*below[scope], f"{arn}:catalog"]
    if operation == "DeleteDatabase":
        found[:0] = [f"{arn}:table/{named}/*", f"{arn}:userDefinedFunction/{named}/*"]
    return ", ".join(found)


def denied_causes(
    name: str, operation: str, scope: Scope, destination: DestinationSpec, database: str
) -> tuple[str, ...]:
    """Return why Glue denies the probe `name`, the likeliest cause first.

    `database` is the name of the test's own.
    """
    causes = [
        f"no policy of the role or user allows glue:{operation} on all of the resources above: "
        "Glue checks each of them"
    ]
    if operation == "DeleteDatabase":
        causes.append("the policy has no `userDefinedFunction` in it, which this action needs too")
    if scope != "catalog" and database_prefix(destination):
        causes.append(
            f"the policy is for databases of another prefix than the test's own `{database}`"
        )
    elif scope != "catalog":
        causes.append(
            "the policy is for certain databases, and without `glue_database_prefix` the test's "
            f"own `{database}` is none of them: set the prefix, or use --skip {name}"
        )
    causes.append(
        "Lake Formation governs the database or the catalog, and the role has no grant there: it "
        "refuses with the same code as IAM"
    )
    causes.append("a permissions boundary, an SCP or the catalog's own policy denies it")
    return tuple(causes)


def _arn(destination: DestinationSpec) -> str:
    """Return `arn:aws:glue:region:account`; without a role any account, as IAM takes it.

    `glue_id` is whose catalog it is, whoever asks.
    """
    return place(destination, destination.iceberg.catalog.glue_id).arn("glue", "")[:-1]
