"""What the role may do in AWS Glue (docs/glue.md, "Permissions").

A call needs what it is about and everything above it; the deletion of a database also everything
inside. https://docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html
"""

from __future__ import annotations

import re
from dataclasses import replace

from lakeload.policy.iam.model import Place, Statement, place
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import catalog_of, catalog_traits
from lakeload_jobs.core.names import MAX_NAME_LENGTH, normalize, schema_name

PROBE_MARK_LENGTH = 12
"""Random characters at the end of the name of a connection test's database."""
PROBE_DATABASE = "lakeload_probe_"
"""What the name of a connection test's database has between the prefix and its mark."""
_ROOM = MAX_NAME_LENGTH - len(f"_{PROBE_DATABASE}") - PROBE_MARK_LENGTH

_ACCOUNT = re.compile(r"[0-9]{12}(?=:|$)", re.ASCII)
_TABLE_CALLS = ("GetTable", "CreateTable", "UpdateTable")
_PARTITION_CALLS = ("GetPartition", "BatchCreatePartition")
_READS = ("GetTable", "GetTables")
_OPTIMIZER_CALLS = ("GetTableOptimizer", "CreateTableOptimizer", "UpdateTableOptimizer")
_PARTITION_READS = ("GetPartition", "GetPartitions", "BatchGetPartition")


def uses_glue(destination: DestinationSpec) -> bool:
    """Whether tables of the destination are tables of Glue's catalog."""
    catalog = catalog_of(destination)
    if catalog is None:
        return destination.parquet.update_glue_catalog
    return catalog_traits(catalog).in_glue or speaks_rest(destination)


def speaks_rest(destination: DestinationSpec) -> bool:
    """Whether the catalog is Glue behind Iceberg's REST protocol.

    https://docs.aws.amazon.com/glue/latest/dg/connect-glu-iceberg-rest.html
    """
    catalog = catalog_of(destination)
    signed = catalog.sigv4 if catalog else None
    return signed is not None and signed.signing_name == "glue"


def catalog_owner(destination: DestinationSpec) -> str | None:
    """Return the account whose catalog an Iceberg destination names, None where it names none.

    Behind Iceberg's REST protocol the account is the warehouse, or how it begins.
    """
    catalog = catalog_of(destination)
    if catalog is None:
        return None
    if speaks_rest(destination):
        named = _ACCOUNT.match(catalog.warehouse or "")
        return named[0] if named else None
    return catalog.glue_id


def database_prefix(destination: DestinationSpec) -> str:
    """Return how the names of the destination's Glue databases begin; '' when only pipelines say.

    Cut where a longer one would leave no room for the rest of the test's own name.
    """
    prefix = destination.glue_database_prefix
    return normalize(prefix, lower=True, max_length=_ROOM) if prefix.strip() else ""


def writing(destination: DestinationSpec, account: str | None = None) -> tuple[Statement, ...]:
    """Return what a load and the connection test need. No table of a load can be deleted."""
    arns, names = _place(destination, account), f"{database_prefix(destination)}*"
    tables: tuple[str, ...] = _TABLE_CALLS
    if registers_partitions(destination):
        tables = (*tables, *_PARTITION_CALLS)
    rest = speaks_rest(destination)
    listing = ("glue:GetDatabases",) if rest else ()
    return (
        *((_catalog(arns),) if catalog_of(destination) else ()),
        *((_lent_keys(),) if rest and _lends(destination) else ()),
        Statement(
            "Databases",
            ("glue:GetDatabase", *listing, "glue:CreateDatabase"),
            (arns.arn("glue", "catalog"), arns.arn("glue", f"database/{names}")),
            "the database of a schema is looked up, and made when it is missing",
        ),
        Statement(
            "Tables",
            _calls(tables),
            _tables(arns, names),
            "tables are made, follow added columns"
            + (", and get their partitions" if len(tables) > len(_TABLE_CALLS) else ""),
        ),
        *_probe_removal(destination, arns),
    )


def reading(destination: DestinationSpec, account: str | None = None) -> tuple[Statement, ...]:
    """Return what Athena and other readers of the catalog call."""
    arns, names = _place(destination, account), f"{database_prefix(destination)}*"
    calls: tuple[str, ...] = _READS
    if registers_partitions(destination):
        calls = (*calls, *_PARTITION_READS)
    return (
        *((_catalog(arns),) if catalog_of(destination) else ()),
        Statement(
            "ReadDatabases",
            ("glue:GetDatabase", "glue:GetDatabases"),
            (arns.arn("glue", "catalog"), arns.arn("glue", f"database/{names}")),
            "databases are found",
        ),
        Statement(
            "ReadTables",
            _calls(calls),
            _tables(arns, names),
            "tables and their columns are found"
            + (", and the partitions that a query needs" if len(calls) > len(_READS) else ""),
        ),
    )


def deleting(destination: DestinationSpec, account: str | None = None) -> Statement:
    """Return what `reset` needs: tables go, with their partitions; databases stay."""
    arns, names = _place(destination, account), f"{database_prefix(destination)}*"
    why = "`reset` drops the tables that lakeload has made; take it away when that is done"
    return Statement("DropTables", ("glue:DeleteTable",), _tables(arns, names), why)


def optimizing(destination: DestinationSpec, account: str | None = None) -> Statement:
    """Return what `maintain --register-glue-optimizers` calls.

    https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-table-optimizers.html
    """
    arns, names = _place(destination, account), f"{database_prefix(destination)}*"
    why = "`maintain --register-glue-optimizers` lets Glue compact, expire and clean up by itself"
    return Statement("Optimizers", _calls(_OPTIMIZER_CALLS), _tables(arns, names), why)


def registers_partitions(destination: DestinationSpec) -> bool:
    """Whether partitions are registered in Glue."""
    parquet = destination.parquet
    return (
        parquet.update_glue_catalog
        and parquet.partition_strategy != "NONE"
        and not parquet.partition_projection
    )


def _place(destination: DestinationSpec, account: str | None) -> Place:
    """Return where the catalog is: signed requests may go to another region than the bucket's."""
    found = place(destination, catalog_owner(destination) or account)
    signed = destination.iceberg.catalog.sigv4
    if not speaks_rest(destination) or signed is None or signed.region is None:
        return found
    return replace(found, region=signed.region)


def _catalog(arns: Place) -> Statement:
    return Statement(
        "Catalog",
        ("glue:GetCatalog",),
        (arns.arn("glue", "catalog"),),
        "clients of Iceberg look at the catalog itself",
    )


def _lends(destination: DestinationSpec) -> bool:
    return destination.iceberg.catalog.access_delegation == "VENDED_CREDENTIALS"


def _lent_keys() -> Statement:
    """Return what Lake Formation asks of those whom it lends keys; it takes no resource.

    https://docs.aws.amazon.com/lake-formation/latest/dg/access-control-underlying-data.html
    """
    why = "Lake Formation lends keys for a table's files, where it governs them"
    return Statement("LendKeys", ("lakeformation:GetDataAccess",), ("*",), why)


def _probe_removal(destination: DestinationSpec, arns: Place) -> tuple[Statement, ...]:
    """Return what lets the connection test prove CreateDatabase: it makes what it can remove."""
    names = schema_name(
        glue_prefix=database_prefix(destination),
        destination_prefix=f"{PROBE_DATABASE}x",
        source_schema=None,
        lower=True,
    ).removesuffix("x")
    tables = _tables(arns, f"{names}*")
    functions = arns.arn("glue", f"userDefinedFunction/{names}*/*")
    return (
        Statement(
            "RemoveProbeTable",
            ("glue:DeleteTable",),
            tables,
            "`test-connection` removes the table it makes; no other can be deleted",
        ),
        Statement(
            "RemoveProbeDatabase",
            ("glue:DeleteDatabase",),
            (*tables, functions),
            "`test-connection` removes the database it makes; Glue checks all that may be in one",
        ),
    )


def _tables(arns: Place, names: str) -> tuple[str, ...]:
    return (
        arns.arn("glue", "catalog"),
        arns.arn("glue", f"database/{names}"),
        arns.arn("glue", f"table/{names}/*"),
    )


def _calls(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"glue:{name}" for name in names)
