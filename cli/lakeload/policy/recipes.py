"""Grants, statements and queries for a destination and, where one is given, a pipeline."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

from lakeload.policy import secret_variables
from lakeload.policy.iam import PolicyOptions, trust_policy, uses_glue
from lakeload.policy.lake_formation import grants, location_arn, requests
from lakeload.policy.model import other_store, place
from lakeload.policy.policy_set import needs_principal
from lakeload.policy.principals import Principal
from lakeload.policy.templates import Snippet, snippets
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import (
    TRACKING_COLUMNS,
    TRACKING_TYPES,
    CatalogSpec,
    DestinationSpec,
    Nested,
    TableSpec,
)
from lakeload_jobs.contract.traits import (
    catalog_of,
    catalog_traits,
    needs_aws_identity,
    vends,
)
from lakeload_jobs.core.aws_partitions import domain
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import unique_names
from lakeload_jobs.formats.iceberg.rules.catalogs import (
    nessie_api_uri,
    rest_warehouse,
    warehouse_location,
)
from lakeload_jobs.formats.parquet.glue.tables import (
    NoGlueType,
    glue_type,
    projection_parameters,
)

Engine = Literal["lake-formation", "athena", "spark", "duckdb", "pyiceberg", "snowflake", "trino"]
Form = Literal["cli", "terraform", "json"]

SPARK_PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
)
"""For Spark 4.1; those that loads use (`machine/jars.toml`)."""

_READERS: tuple[Engine, ...] = ("athena", "spark", "duckdb", "pyiceberg", "snowflake", "trino")
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
    _check(destination, engine, request)
    facts = _lake_formation if engine == "lake-formation" else _facts
    return snippets(engine.replace("-", "_"), facts(destination, request))


def readers(destination: DestinationSpec, request: RecipeRequest) -> tuple[Engine, ...]:
    """Return the engines that can read this destination, the one most at hand first."""
    engines: list[Engine] = []
    for engine in _READERS:
        with contextlib.suppress(InvalidInput):
            _check(destination, engine, request)
            engines.append(engine)
    return tuple(engines)


def _check(destination: DestinationSpec, engine: Engine, request: RecipeRequest) -> None:
    """Raise `InvalidInput` for what cannot be written."""
    catalog = catalog_of(destination)
    if engine == "lake-formation":
        _check_grants(destination, request)
    elif engine not in ("athena", "duckdb") and catalog is None:
        raise InvalidInput(
            f"writing what `{engine}` needs: the destination's `table_format` is `PARQUET`, and "
            "that is written for Iceberg tables alone",
            hint="`--for athena` and `--for duckdb` write queries for Parquet files",
        )
    elif not request.tables and (engine == "athena" or (engine == "duckdb" and catalog is None)):
        raise InvalidInput(
            f"writing queries for `{engine}`: queries are about tables, and a destination does not "
            "say which there are",
            hint="give the pipeline document instead of the destination's",
        )
    elif engine == "athena" and catalog and not uses_glue(destination):
        raise InvalidInput(
            f"writing queries for Athena: it reads Iceberg tables from AWS Glue, and the catalog "
            f"of this destination is `{catalog.type}`",
            hint="`--for` trino, spark, duckdb, pyiceberg and snowflake read other catalogs",
        )
    elif engine == "snowflake" and catalog:
        _check_snowflake(destination, catalog)


def _check_grants(destination: DestinationSpec, request: RecipeRequest) -> None:
    if not uses_glue(destination):
        raise InvalidInput(
            "writing Lake Formation grants: it guards tables of AWS Glue, and no table of this "
            "destination is in Glue",
            hint="`parquet: {update_glue_catalog: true}`, or Iceberg with the catalog `GLUE`, puts "
            "them there",
        )
    # Lake Formation knows no pattern of names.
    if request.read_only and not _databases(request):
        raise InvalidInput(
            "writing Lake Formation grants for query users: they are given for each database, and "
            "a destination alone does not say which there are",
            hint="give the pipeline document instead of the destination's",
        )


def _check_snowflake(destination: DestinationSpec, catalog: CatalogSpec) -> None:
    start = "writing statements for Snowflake: "
    traits = catalog_traits(catalog)
    if traits.spark_only:
        raise InvalidInput(
            f"{start}it speaks Iceberg's REST protocol, and this catalog is used through Nessie's "
            "own",
            hint="where the server offers its tables over REST too, give a copy of the destination "
            "with `api: REST`; loads go on through `api: NATIVE`",
        )
    if catalog.sigv4 is not None and catalog.sigv4.signing_name not in _SNOWFLAKE_APIS:
        raise InvalidInput(
            f"{start}it signs requests for `glue` and `execute-api`, and this catalog's "
            f"`signing_name` is `{catalog.sigv4.signing_name}`",
            hint="reach the tables through Glue's Iceberg endpoint, with `signing_name: glue`",
        )
    client = catalog.client_id is not None and catalog.client_secret is not None
    login = client or catalog.credential or catalog.token or catalog.sigv4
    if not traits.in_glue and not login:
        raise InvalidInput(
            f"{start}the catalog `{catalog.uri}` is used without a login, and Snowflake connects "
            "with OAuth, a token or SigV4 only",
            hint="set `credential`, `token` or `sigv4` in `iceberg.catalog`",
        )
    if "." in destination.bucket and other_store(destination) is None:
        raise InvalidInput(
            f"{start}the bucket `{destination.bucket}` has a dot in its name, and Snowflake reads "
            "no such bucket of S3",
            hint="keep tables that Snowflake is to read in a bucket without dots",
        )


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
    }


def _lake_formation(destination: DestinationSpec, request: RecipeRequest) -> dict[str, Any]:
    """Return what the grants are written from. The databases of a pipeline are taken to exist."""
    granted = grants(
        destination,
        _databases(request),
        request.principals,
        read_only=request.read_only,
        reset=request.reset,
    )
    return {
        "destination": destination,
        "region": destination.region,
        "form": request.form,
        "read_only": request.read_only,
        "location": location_arn(destination),
        "grants": granted,
        "requests": requests(destination, granted, register=not request.read_only),
    }


def _databases(request: RecipeRequest) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table.schema for table in request.tables if table.schema))


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
    return glue_type(kind)
