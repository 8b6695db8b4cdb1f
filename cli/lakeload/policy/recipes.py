"""Grants, statements and queries for a destination and, where one is given, a pipeline."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, count
from typing import Any, Literal

from lakeload.config.yaml_tree import own_yaml
from lakeload.policy import secret_variables
from lakeload.policy.iam import PolicyOptions, catalog_owner, trust_policy, uses_glue
from lakeload.policy.model import other_store, place
from lakeload.policy.policy_set import needs_principal
from lakeload.policy.principals import Principal
from lakeload.policy.templates import Snippet, snippets, template, words
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import (
    TRACKING_COLUMNS,
    TRACKING_TYPES,
    DestinationSpec,
    Nested,
    TableSpec,
)
from lakeload_jobs.contract.traits import catalog_of, catalog_traits, needs_aws_identity, vends
from lakeload_jobs.core.aws_partitions import domain
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import unique_names
from lakeload_jobs.core.types import timestamp_unit
from lakeload_jobs.formats.iceberg.rules.catalogs import (
    nessie_api_uri,
    rest_warehouse,
    warehouse_location,
)
from lakeload_jobs.formats.parquet.glue.tables import NoGlueType, glue_type, projection_parameters

Engine = Literal["lake-formation", "athena", "spark", "duckdb", "pyiceberg", "snowflake", "trino"]
Form = Literal["cli", "terraform", "json"]

SPARK_PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
)
"""For Spark 4.1; those that loads use (`machine/jars.toml`)."""

_READERS: tuple[Engine, ...] = ("athena", "spark", "duckdb", "pyiceberg", "snowflake", "trino")
_FEW_TABLES = 5
"""So many tables have all their queries; of more, one of each kind has them."""
_SNOWFLAKE_APIS = {"glue": "AWS_GLUE", "execute-api": "AWS_API_GATEWAY"}
"""What Snowflake calls the services it signs requests for."""


@dataclass(frozen=True)
class RecipeRequest:
    """What a recipe is for. `tables` are those of a pipeline; without one there are none."""

    now: datetime
    """The end of example ranges."""
    tables: tuple[TableSpec, ...] = ()
    tracking: Sequence[str] = TRACKING_COLUMNS
    nested: Nested = "NATIVE"
    principals: tuple[str, ...] = ()
    """Lake Formation: the ARNs of those who get the grants; by default who loads."""
    read_only: bool = False
    reset: bool = False
    form: Form = "cli"


def recipes(
    destination: DestinationSpec, engine: Engine, request: RecipeRequest
) -> tuple[Snippet, ...]:
    """Return what `lakeload policy --for ENGINE` shows, in the order to run it.

    Raises `InvalidInput` where the engine cannot read this destination, or needs a pipeline.
    """
    facts = _facts(destination, request)
    if reason := _unreadable(engine, facts):
        message, _, hint = reason.partition(" → ")
        raise InvalidInput(message, hint=hint)
    return snippets(engine.replace("-", "_"), facts)


def readers(destination: DestinationSpec, request: RecipeRequest) -> tuple[Engine, ...]:
    """Return the engines that can read this destination, the one most at hand first.

    Athena reads AWS alone: elsewhere it is not at hand, though an emulator may stand for it.
    """
    facts = _facts(destination, request)
    elsewhere = ("athena",) if facts["other_store"] else ()
    return tuple(
        engine for engine in _READERS if engine not in elsewhere and not _unreadable(engine, facts)
    )


def _unreadable(engine: Engine, facts: dict[str, Any]) -> str:
    """Return why nothing can be written for an engine, and what to do; '' where it can."""
    return " ".join(template("unreadable.jinja").render(facts, engine=engine).split())


def _facts(destination: DestinationSpec, request: RecipeRequest) -> dict[str, Any]:
    """Return what templates are written from: settings, what follows from them, and filters."""
    iceberg, region = destination.iceberg, destination.region
    catalog, where = iceberg.catalog, place(destination)
    traits = catalog_traits(catalog)
    then = request.now.astimezone(UTC) - timedelta(days=1)
    variables = secret_variables.catalog_variables(catalog, region)
    headers = secret_variables.headers(catalog, region)
    return {
        "SNOWFLAKE_APIS": _SNOWFLAKE_APIS,
        "SPARK_PACKAGES": SPARK_PACKAGES,
        "destination": destination,
        "iceberg": iceberg,
        "catalog": catalog,
        "branch": iceberg.branch,
        "region": region,
        "tables": request.tables,
        "queried": _queried(request.tables),
        "tracking": request.tracking,
        "now": request.now,
        "then": f"{then:%Y-%m-%d %H:%M:%S}",
        "then_milliseconds": int(then.timestamp() * 1000),
        "traits": traits,
        "in_catalog": catalog_of(destination) is not None,
        "native": traits.spark_only,
        "glue": traits.in_glue,
        "vends": vends(catalog),
        "needs_aws": needs_aws_identity(catalog),
        "path_style": destination.addressing_style != "VIRTUAL",
        "other_store": other_store(destination),
        "warehouse": warehouse_location(destination),
        "rest_warehouse": rest_warehouse(destination),
        "nessie_uri": nessie_api_uri(catalog.uri or ""),
        "glue_account": catalog.glue_id or where.account.replace("*", "<ACCOUNT_ID>"),
        "glue_host": f"glue.{where.region}.{domain(where.region)}",
        "signing_region": (catalog.sigv4.region if catalog.sigv4 else None) or region,
        "client": secret_variables.credential(catalog, region),
        "bearer": secret_variables.token(catalog, region),
        "headers": headers,
        "variables": variables,
        "variable_names": ", ".join(f"`{one.name}`" for one in variables),
        "data_path": lambda table: (
            TableLocation(destination.prefix, table.schema, table.table).data_path
        ),
        "declared_columns": partial(
            declared_columns, tracking=request.tracking, nested=request.nested
        ),
        "folded": folded,
        "projection_parameters": projection_parameters,
        "trust_command": partial(_trust_command, destination),
        "uses_glue": uses_glue(destination),
        **_grants(destination, request),
    }


def _queried(tables: Sequence[TableSpec]) -> tuple[str, ...]:
    """Return the tables whose queries are written: of many, the first of each kind."""
    if len(tables) <= _FEW_TABLES:
        return tuple(table.source for table in tables)
    kinds: dict[tuple[object, ...], str] = {}
    for table in tables:
        keyed, marked = bool(table.primary_key), bool(table.deleted_when or table.max_deleted)
        kinds.setdefault((table.mode, table.deletes, keyed, marked), table.source)
    return tuple(kinds.values())


@dataclass(frozen=True)
class Grant:
    """One GrantPermissions request of Lake Formation (grants.yml.jinja)."""

    principal: str
    label: str
    """Its name in Terraform, unlike any other grant's."""
    kind: Literal["location", "catalog", "database", "tables"]
    target: str
    """The database's name, if it is about one."""
    resource: dict[str, Any]
    """What it is on, in the words of the API."""
    permissions: list[str]
    why: str


def _grants(destination: DestinationSpec, request: RecipeRequest) -> dict[str, Any]:
    """Return what the grants are written from.

    Those who load are by default the destination's role. Without databases they may create them,
    and have every right on what they create. The databases of a pipeline are taken to exist, and
    creating others is not granted.
    """
    # Of everything the destination writes, without a final slash.
    location = place(destination).s3(destination.bucket, destination.prefix)
    facts = {
        "location": location,
        "databases": list(dict.fromkeys(one.schema for one in request.tables if one.schema)),
        "read_only": request.read_only,
        "reset": request.reset,
    }
    rows = own_yaml(template("grants.yml.jinja").render(facts)) or []
    role = None if request.read_only else destination.credentials.role_arn
    granted: dict[str, Grant] = {}
    for principal in request.principals or (role or "<ROLE_ARN>",):
        for row in rows:
            label = _label(principal, row, granted)
            granted[label] = Grant(principal, label, **row)
    entries = [
        {
            "Id": str(number),
            "Principal": {"DataLakePrincipalIdentifier": grant.principal},
            "Resource": grant.resource,
            "Permissions": grant.permissions,
        }
        for number, grant in enumerate(granted.values(), 1)
    ]
    owner = catalog_owner(destination) or place(destination).account
    resource = {"UseServiceLinkedRole": True, "HybridAccessEnabled": True}
    register = {"RegisterResource": {"ResourceArn": location, **resource}}
    batch = {"CatalogId": owner} if owner != "*" else {}
    requests = {"BatchGrantPermissions": {**batch, "Entries": entries}}
    return {
        **facts,
        "form": request.form,
        "grants": list(granted.values()),
        "requests": requests if request.read_only else register | requests,
    }


def _label(principal: str, row: dict[str, str], taken: Container[str]) -> str:
    """Return a name for Terraform, of who gets the grant and what it is on."""
    target = f"_{words(row['target'])}" if row["target"] else ""
    label = f"{words(principal.rpartition('/')[2])}_{row['kind']}{target}"
    label = f"_{label}" if label[0].isdigit() else label
    names = chain([label], (f"{label}_{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def _trust_command(destination: DestinationSpec, *principals: tuple[str, str]) -> str:
    """Return the command that writes the trust policy for ARNs and the variables that hold their
    external ids; of a destination without a role, the policy itself."""
    if needs_principal(destination, PolicyOptions()):
        options = [f"--principal '<{arn}>,external-id=env:{name}'" for arn, name in principals]
        return " \\\n  ".join(["lakeload policy DESTINATION --only trust", *options])
    trusted = [Principal(f"<{arn}>", f"<{name}>") for arn, name in principals]
    return json.dumps(trust_policy(trusted).as_json(), indent=2)


@dataclass(frozen=True)
class DeclaredColumns:
    """The columns of `columns.types` and the tracking columns."""

    types: dict[str, str]
    complete: bool
    """False where the source may have more."""


def folded(table: TableSpec) -> TableSpec:
    """Return the table with names as Athena folds them; one without a schema is in `default`."""
    return replace(table, schema=(table.schema or "default").lower(), table=table.table.lower())


def declared_columns(table: TableSpec, tracking: Sequence[str], nested: Nested) -> DeclaredColumns:
    """Return the columns with their types in Athena's DDL."""
    spec = table.columns
    declared = {
        source: kind
        for source, kind in (spec.types or {}).items()
        if (not spec.include or source in spec.include) and source not in spec.exclude
    }
    names = unique_names(
        [(spec.rename or {}).get(source, source) for source in declared], lower=True
    )
    types = {}
    for name, kind in zip(names, declared.values(), strict=True):
        try:
            types[name] = _type(kind, nested)
        except NoGlueType:
            continue
    complete = bool(spec.include) and len(types) >= len(set(spec.include) - set(spec.exclude))
    return DeclaredColumns(types | {one: TRACKING_TYPES[one] for one in tracking}, complete)


def _type(kind: str, nested: Nested) -> str:
    """Return Glue's type of a declared one; nested values are text where `nested` is JSON."""
    if nested == "JSON" and kind.strip().lower().startswith(("struct", "array", "map")):
        return "string"
    given = timestamp_unit(kind)
    return glue_type(given[0] if given else kind)
