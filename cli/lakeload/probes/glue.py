"""Checks of AWS Glue, permission by permission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from lakeload.policy.iam.glue import database_prefix
from lakeload.policy.iam.model import place
from lakeload.probes.causes import grant_hint, likely_causes
from lakeload.probes.probe_tables import ProbeTables
from lakeload.probes.runner import Level, Probe
from lakeload.probes.s3 import with_hint
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import format_of

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


@dataclass(frozen=True)
class _Question:
    """A probe but for the ARNs and the causes, which follow from the destination."""

    name: str
    proves: str
    operation: str
    run: Callable[[], str]
    scope: Scope
    needs: tuple[str, ...] = ("glue",)
    level: Level = Level.REQUIRED
    lost: str = ""
    """What a role without the permission does without; '' when a load needs it."""
    of_partitions: bool = False
    """Whether only registered partitions need it."""
    iceberg: bool = False
    """Whether only Iceberg tables need it."""


def glue_probes(destination: DestinationSpec, tables: ProbeTables) -> list[Probe]:
    """Return the probes of Glue, for tables of the destination's format; those that write do so in
    a database of the test's own.

    Deleting is asked first, about nothing. A role that may not delete gets no database made, and
    the other questions are then asked about nothing as well.
    """
    writing = (*_deleting(tables), *_making(destination, tables), *_changing(tables))
    asked = [*((q, False) for q in _reading(tables)), *((q, True) for q in writing)]
    iceberg = format_of(destination).has_catalog
    return [
        _probe(question, destination, tables, writes=writes)
        for question, writes in asked
        # Iceberg keeps its partitions in metadata of its own.
        if not (question.of_partitions if iceberg else question.iceberg)
    ]


def _reading(tables: ProbeTables) -> list[_Question]:
    return [
        _Question(
            "glue",
            "Glue answers in the configured region",
            "GetDatabase",
            tables.reach,
            "database",
            ("credentials", "assume-role"),
        ),
        _Question(
            "glue-catalog",
            "the account's catalog can be read",
            "GetCatalog",
            tables.get_catalog,
            "catalog",
            level=Level.USEFUL,
            lost="loads do without it; engines that read Iceberg tables through Glue ask for the "
            "catalog itself, and the older published policies lack it",
            iceberg=True,
        ),
        _Question(
            "glue-get-database",
            "a schema's database can be looked up",
            "GetDatabase",
            tables.get_database,
            "database",
        ),
        _Question(
            "glue-get-table",
            "a table and its columns can be looked up",
            "GetTable",
            tables.get_table,
            "table",
        ),
        _Question(
            "glue-get-partition",
            "a partition can be looked up",
            "GetPartition",
            tables.get_partition,
            "table",
            of_partitions=True,
        ),
    ]


def _deleting(tables: ProbeTables) -> list[_Question]:
    return [
        _Question(
            "glue-delete-table",
            "the table of this test can be deleted",
            "DeleteTable",
            tables.delete_no_table,
            "table",
            level=Level.USEFUL,
            lost="loads do without it; `reset` cannot drop tables, and this test makes nothing "
            "that it could not remove, so `glue:CreateDatabase` stays unproven",
        ),
        _Question(
            "glue-delete-database",
            "the database of this test can be deleted",
            "DeleteDatabase",
            tables.delete_no_database,
            "database",
            level=Level.USEFUL,
            lost="loads and `reset` do without it; this test makes nothing that it could not "
            "remove, so `glue:CreateDatabase` stays unproven",
        ),
    ]


def _making(destination: DestinationSpec, tables: ProbeTables) -> list[_Question]:
    # Iceberg looks at the database, and its metadata file has to be removed again.
    iceberg = format_of(destination).has_catalog
    besides = ("glue-get-database", "delete") if iceberg else ()
    return [
        _Question(
            "glue-create-database",
            "a new schema gets its database",
            "CreateDatabase",
            tables.create_database,
            "database",
            ("glue", "glue-delete-table", "glue-delete-database"),
            lost="allow it; or make the database of each schema before its first load, and use "
            "--skip glue-create-database",
        ),
        _Question(
            "glue-create-table",
            "a new table is made in Glue",
            "CreateTable",
            tables.create_table,
            "table",
            ("glue", *besides),
        ),
    ]


def _changing(tables: ProbeTables) -> list[_Question]:
    return [
        _Question(
            "glue-update-table",
            tables.update_proves,
            "UpdateTable",
            tables.update_table,
            "table",
            ("glue-get-table",),
        ),
        _Question(
            "glue-add-partitions",
            "partitions can be registered, many in one call",
            "BatchCreatePartition",
            tables.add_partitions,
            "table",
            of_partitions=True,
        ),
    ]


def _probe(
    question: _Question, destination: DestinationSpec, tables: ProbeTables, *, writes: bool
) -> Probe:
    about = (question.operation, question.scope, destination)
    denied = denied_causes(question.name, *about, tables.database)
    return Probe(
        name=question.name,
        proves=question.proves,
        level=question.level,
        action=f"glue:{question.operation}",
        resource=resources(*about),
        run=partial(_run, question),
        explain=partial(likely_causes, denied=denied),
        needs=question.needs,
        writes=writes,
        beside_the_point=_without_partitions(destination) if question.of_partitions else "",
    )


def _run(question: _Question) -> str:
    """Ask. What a denial costs is more telling here than what a load would say of it."""
    try:
        return question.run()
    except AwsError as error:
        needless = question.level is Level.USEFUL and error.hint is None
        if not error.denied and not needless:
            raise
        allow = f"allow `glue:{question.operation}` on all of these resources"
        raise with_hint(error, grant_hint(error) or question.lost or allow) from error


def _without_partitions(destination: DestinationSpec) -> str:
    if destination.parquet.partition_strategy == "NONE":
        return "`partition_strategy: NONE` makes no partitions"
    if destination.parquet.partition_projection:
        return "`partition_projection: true` registers no partitions"
    return ""
