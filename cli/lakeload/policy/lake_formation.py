"""Lake Formation grants of a destination, as GrantPermissions takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lakeload.policy.iam import catalog_owner
from lakeload.policy.model import place
from lakeload.policy.templates import words
from lakeload_jobs.contract.spec import DestinationSpec

ANY_PRINCIPAL = "<ROLE_ARN>"
"""Stands where nothing names the role; the text around it says to replace it."""


@dataclass(frozen=True)
class Grant:
    """One GrantPermissions request."""

    principal: str
    kind: Literal["location", "catalog", "database", "tables"]
    target: str
    """The location's ARN or the database's name; '' for the catalog."""
    permissions: tuple[str, ...]
    why: str
    label: str = ""
    """Its name in Terraform, unlike any other grant's."""

    @property
    def resource(self) -> dict[str, object]:
        """Return what the grant is on, in the words of the API."""
        resources: dict[str, dict[str, object]] = {
            "location": {"DataLocation": {"ResourceArn": self.target}},
            "catalog": {"Catalog": {}},
            "database": {"Database": {"Name": self.target}},
            "tables": {"Table": {"DatabaseName": self.target, "TableWildcard": {}}},
        }
        return resources[self.kind]


def grants(
    destination: DestinationSpec,
    databases: Sequence[str],
    principals: Sequence[str],
    *,
    read_only: bool,
    reset: bool,
) -> tuple[Grant, ...]:
    """Return what `principals` need to load, or to query where they are `read_only`.

    Those who load are by default the destination's role. Without `databases` they may create
    them, and have every right on what they create. With them the databases are taken to exist,
    and creating others is not granted. `reset` grants dropping tables.
    """
    default = None if read_only else destination.credentials.role_arn
    labelled: dict[str, Grant] = {}
    for principal in principals or (default or ANY_PRINCIPAL,):
        made = (
            _reader(principal, databases)
            if read_only
            else _writer(destination, principal, databases, reset=reset)
        )
        for grant in made:
            label = _label(grant, labelled)
            labelled[label] = replace(grant, label=label)
    return tuple(labelled.values())


def requests(
    destination: DestinationSpec, granted: Sequence[Grant], *, register: bool
) -> dict[str, object]:
    """Return the parameters of RegisterResource, if `register`, and of BatchGrantPermissions."""
    entries = [
        {
            "Id": str(number),
            "Principal": {"DataLakePrincipalIdentifier": grant.principal},
            "Resource": grant.resource,
            "Permissions": list(grant.permissions),
        }
        for number, grant in enumerate(granted, 1)
    ]
    owner = catalog_owner(destination) or place(destination).account
    batch = {"CatalogId": owner} if owner != "*" else {}
    resource = {
        "ResourceArn": location_arn(destination),
        "UseServiceLinkedRole": True,
        "HybridAccessEnabled": True,
    }
    return {
        **({"RegisterResource": resource} if register else {}),
        "BatchGrantPermissions": {**batch, "Entries": entries},
    }


def location_arn(destination: DestinationSpec) -> str:
    """Return the ARN of everything the destination writes, without a final slash."""
    return place(destination).s3(destination.bucket, destination.prefix)


def _reader(principal: str, databases: Sequence[str]) -> Iterator[Grant]:
    for database in databases:
        why = f"to see the database `{database}`"
        yield Grant(principal, "database", database, ("DESCRIBE",), why)
        why = f"to read all tables of `{database}`, those of later loads as well"
        yield Grant(principal, "tables", database, ("DESCRIBE", "SELECT"), why)


def _writer(
    destination: DestinationSpec, principal: str, databases: Sequence[str], *, reset: bool
) -> Iterator[Grant]:
    why = "to make databases and tables that lie there"
    location = location_arn(destination)
    yield Grant(principal, "location", location, ("DATA_LOCATION_ACCESS",), why)
    if not databases:
        why = "to make the databases; it has every right on the databases and tables it makes"
        yield Grant(principal, "catalog", "", ("CREATE_DATABASE",), why)
    for database in databases:
        why = f"to find the database `{database}` and make tables in it"
        yield Grant(principal, "database", database, ("CREATE_TABLE", "DESCRIBE"), why)
        drop, note = (("DROP",), ", and to drop them with `reset`") if reset else ((), "")
        rights = ("ALTER", "DESCRIBE", *drop, "INSERT", "SELECT")
        why = f"to add columns and partitions to tables of `{database}` that others made{note}"
        yield Grant(principal, "tables", database, rights, why)


def _label(grant: Grant, taken: dict[str, Grant]) -> str:
    """Return a name for Terraform, of who gets the grant and what it is on."""
    on = (
        f"{grant.kind}_{words(grant.target)}"
        if grant.kind in ("database", "tables")
        else grant.kind
    )
    label = f"{words(grant.principal.rpartition('/')[2])}_{on}"
    label = numbered = f"_{label}" if label[0].isdigit() else label
    number = 1
    while numbered in taken:
        number += 1
        numbered = f"{label}_{number}"
    return numbered
