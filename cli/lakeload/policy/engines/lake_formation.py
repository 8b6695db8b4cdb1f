"""Lake Formation: the location to register and the grants on it (F26). Pure.

Lake Formation decides beside IAM: a request needs both. What a grant allows:
https://docs.aws.amazon.com/lake-formation/latest/dg/lf-permissions-reference.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeload.policy.iam.arns import place
from lakeload.policy.iam.glue import uses_glue
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec

ANY_PRINCIPAL = "<ROLE_ARN>"
"""Stands where nothing names the role; the text around it says to replace it."""


@dataclass(frozen=True)
class Grant:
    """One GrantPermissions request: `resource` is in the words of the API."""

    principal: str
    resource: Mapping[str, Mapping[str, object]]
    permissions: tuple[str, ...]
    why: str

    def as_request(self) -> dict[str, object]:
        """Return the parameters of GrantPermissions, and of an entry of a batch."""
        return {
            "Principal": {"DataLakePrincipalIdentifier": self.principal},
            "Resource": {kind: dict(value) for kind, value in self.resource.items()},
            "Permissions": list(self.permissions),
        }


@dataclass(frozen=True)
class LakeFormation:
    """The location to register, None where only readers are let in, and the grants."""

    location: str | None
    grants: tuple[Grant, ...]


def writer_grants(
    destination: DestinationSpec,
    databases: Sequence[str] = (),
    principals: Sequence[str] = (),
    *,
    reset: bool = False,
) -> LakeFormation:
    """Return what those who load need, and with `reset` to drop tables; by default that is the
    destination's role.

    Without `databases` they may create them, and have every right on what they create. With
    them they are taken to exist, and creating others is not granted. Raises `InvalidInput` when
    no table of the destination is in Glue.
    """
    _require_glue(destination)
    location = location_arn(destination)
    grants: list[Grant] = []
    for principal in principals or (destination.credentials.role_arn or ANY_PRINCIPAL,):
        grants.append(
            Grant(
                principal,
                {"DataLocation": {"ResourceArn": location}},
                ("DATA_LOCATION_ACCESS",),
                "to make databases and tables that lie there",
            )
        )
        if not databases:
            why = "to make the databases; it has every right on the databases and tables it makes"
            grants.append(Grant(principal, {"Catalog": {}}, ("CREATE_DATABASE",), why))
        for database in databases:
            grants += _on_database(principal, database, reset=reset)
    return LakeFormation(location, tuple(grants))


def reader_grants(
    destination: DestinationSpec,
    databases: Sequence[str] = (),
    principals: Sequence[str] = (),
) -> LakeFormation:
    """Return what somebody needs who only queries the tables of `databases`.

    Raises `InvalidInput` without databases, for Lake Formation knows no pattern of names, and
    when no table of the destination is in Glue.
    """
    _require_glue(destination)
    if not databases:
        raise InvalidInput(
            "writing Lake Formation grants for query users: they are given for each database, and "
            "a destination alone does not say which there are",
            hint="give the pipeline document instead of the destination's",
        )
    return LakeFormation(
        None,
        tuple(
            grant
            for principal in principals or (ANY_PRINCIPAL,)
            for database in databases
            for grant in (
                Grant(
                    principal,
                    {"Database": {"Name": database}},
                    ("DESCRIBE",),
                    f"to see the database `{database}`",
                ),
                Grant(
                    principal,
                    _all_tables(database),
                    ("DESCRIBE", "SELECT"),
                    f"to read all tables of `{database}`, those of later loads as well",
                ),
            )
        ),
    )


def location_arn(destination: DestinationSpec) -> str:
    """Return the ARN of everything the destination writes, without a final slash."""
    return place(destination).s3(destination.bucket, destination.prefix)


def _on_database(principal: str, database: str, *, reset: bool) -> list[Grant]:
    drop = ("DROP",) if reset else ()
    note = ", and to drop them with `reset`" if reset else ""
    return [
        Grant(
            principal,
            {"Database": {"Name": database}},
            ("CREATE_TABLE", "DESCRIBE"),
            f"to find the database `{database}` and make tables in it",
        ),
        Grant(
            principal,
            _all_tables(database),
            ("ALTER", "DESCRIBE", *drop, "INSERT", "SELECT"),
            f"to add columns and partitions to tables of `{database}` that others made{note}",
        ),
    ]


def _all_tables(database: str) -> dict[str, Mapping[str, object]]:
    return {"Table": {"DatabaseName": database, "TableWildcard": {}}}


def _require_glue(destination: DestinationSpec) -> None:
    if not uses_glue(destination):
        raise InvalidInput(
            "writing Lake Formation grants: it guards tables of AWS Glue, and no table of this "
            "destination is in Glue",
            hint="`parquet: {update_glue_catalog: true}`, or Iceberg with the catalog `GLUE`, puts "
            "them there",
        )
