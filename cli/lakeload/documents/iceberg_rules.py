"""What holds between the settings of an Iceberg destination (F17-F27, F85).

The rules look at whatever parts of the document are valid, so that one mistake hides no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args
from urllib.parse import urlsplit

from lakeload.config.model import Finding
from lakeload.config.secret_names import shown
from lakeload.config.wording import quoted
from lakeload.documents.destination import Destination
from lakeload_jobs.contract.spec import CatalogType
from lakeload_jobs.core.aws_partitions import AWS_DOMAINS

At = tuple[str | int, ...]

_TYPES: tuple[CatalogType, ...] = get_args(CatalogType)
_OF_TYPE: dict[str, tuple[CatalogType, ...]] = {
    "glue_id": ("GLUE",),
    "uri": ("REST", "NESSIE", "SNOWFLAKE_OPEN_CATALOG"),
    "warehouse": ("REST",),
    "credential": ("REST",),
    "token": ("REST", "NESSIE"),
    "sigv4": ("REST",),
    "scope": ("REST",),
    "oauth2_server_uri": ("REST",),
    "access_delegation": ("REST",),
    "headers": ("REST",),
    "ref": ("NESSIE",),
    "api": ("NESSIE",),
    "catalog_name": ("SNOWFLAKE_OPEN_CATALOG",),
    "client_id": ("SNOWFLAKE_OPEN_CATALOG",),
    "client_secret": ("SNOWFLAKE_OPEN_CATALOG",),
    "principal_role": ("SNOWFLAKE_OPEN_CATALOG",),
    "catalog_region": ("SNOWFLAKE_OPEN_CATALOG",),
}
"""The catalogs that each setting of `iceberg.catalog` belongs to."""

_INSTEAD: dict[tuple[str, CatalogType], str] = {
    ("warehouse", "SNOWFLAKE_OPEN_CATALOG"): "`catalog_name`",
    ("credential", "SNOWFLAKE_OPEN_CATALOG"): "`client_id` and `client_secret`",
    ("scope", "SNOWFLAKE_OPEN_CATALOG"): "`principal_role`",
    ("catalog_name", "REST"): "`warehouse`",
    ("client_id", "REST"): "`credential`, with id and secret in one,",
    ("client_secret", "REST"): "`credential`, with id and secret in one,",
    ("principal_role", "REST"): "`scope`",
}
"""What a setting of one catalog is called in another."""

_LOCATED: tuple[CatalogType, ...] = ("GLUE", "NESSIE")
"""The catalogs that are told where tables lie; the others decide themselves (F41)."""

_REQUIRED: dict[CatalogType, dict[str, str]] = {
    "GLUE": {},
    "REST": {"uri": "https://catalog.example.com"},
    "NESSIE": {"uri": "https://nessie.example.com/iceberg"},
    "SNOWFLAKE_OPEN_CATALOG": {
        "uri": "https://ORG-ACCOUNT.snowflakecomputing.com/polaris/api/catalog",
        "catalog_name": "NAME",
        "client_id": "{env: LAKELOAD_CLIENT_ID}",
        "client_secret": "{env: LAKELOAD_CLIENT_SECRET}",
    },
}
_IDENTITIES = ("credential", "token", "sigv4")
_CATALOG: At = ("iceberg", "catalog")


def iceberg_findings(data: dict[str, Any]) -> list[Finding]:
    """Return what is wrong between the settings of a destination whose format is ICEBERG.

    Nothing for another format: a block that is not in use is noted, and no more (F85).
    """
    if data.get("table_format") != "ICEBERG":
        return []
    block = data.get("iceberg", {})
    catalog = block.get("catalog", {}) if isinstance(block, dict) else None
    if not isinstance(catalog, dict) or catalog.get("type", "GLUE") not in _TYPES:
        return []
    kind: CatalogType = catalog.get("type", "GLUE")
    return [
        *_of_another_type(catalog, kind),
        *_missing(catalog, kind),
        *_identity(catalog, kind),
        *_region(catalog, kind, data.get("region")),
        *_warehouse(block, kind, data),
    ]


def _of_another_type(catalog: dict[str, Any], kind: CatalogType) -> Iterator[Finding]:
    for name in catalog:
        owners = _OF_TYPE.get(name)
        if owners is None or kind in owners:
            continue
        if instead := _INSTEAD.get((name, kind)):
            hint = f"a {kind} catalog has {instead} for that"
        elif "type" in catalog:
            hint = "remove the line, or change `type`"
        else:
            hint = f"without `type` the catalog is GLUE; add {_one_of(owners)}"
        yield Finding(
            f"`{name}` is a setting of {_listed(owners)}, and the catalog is {kind}",
            hint,
            (*_CATALOG, name),
            "other-catalog",
        )


def _missing(catalog: dict[str, Any], kind: CatalogType) -> Iterator[Finding]:
    for name, example in _REQUIRED[kind].items():
        if name not in catalog:
            yield Finding(
                f"`{name}` is missing: a {kind} catalog needs it",
                f"add `{name}: {example}`",
                (*_CATALOG, name),
                "missing-key",
            )


def _identity(catalog: dict[str, Any], kind: CatalogType) -> Iterator[Finding]:
    if kind != "REST":
        return
    given = [name for name in _IDENTITIES if name in catalog]
    for other in given[1:]:
        message = f"`{given[0]}` and `{other}` are two identities"
        yield Finding(message, "keep one of them", (*_CATALOG, other), "two-identities")
    for name in ("scope", "oauth2_server_uri"):
        if name in catalog and not {"credential", "token"} & set(given):
            yield Finding(
                f"`{name}` has no effect without `credential`",
                "add `credential: {env: LAKELOAD_CREDENTIAL}`, or remove the line",
                (*_CATALOG, name),
            )


def _region(catalog: dict[str, Any], kind: CatalogType, region: Any) -> Iterator[Finding]:
    given = catalog.get("catalog_region")
    if kind != "SNOWFLAKE_OPEN_CATALOG" or not isinstance(given, str):
        return
    if isinstance(region, str) and given != region:
        yield Finding(
            f"the catalog runs in `{shown(given)}` and the bucket is in `{shown(region)}`: "
            "Open Catalog works with buckets of its own region only",
            "use a bucket there, or the catalog GLUE",
            (*_CATALOG, "catalog_region"),
            "cross-region",
        )


def _warehouse(block: dict[str, Any], kind: CatalogType, data: dict[str, Any]) -> Iterator[Finding]:
    given, at = block.get("warehouse_location"), ("iceberg", "warehouse_location")
    if given is None:
        return
    if kind not in _LOCATED:
        message = f"`warehouse_location` is a setting of {_listed(_LOCATED)}"
        hint = "remove the line: this catalog decides itself where tables lie"
        yield Finding(f"{message}, and the catalog is {kind}", hint, at, "other-catalog")
        return
    bucket, prefix = data.get("bucket"), data.get("prefix", "")
    if not all(isinstance(item, str) for item in (given, bucket, prefix)):
        return
    root = f"s3://{bucket}/{prefix.strip('/')}".rstrip("/")
    if given.startswith("s3://") and not f"{given.rstrip('/')}/".startswith(f"{root}/"):
        yield Finding(
            f"`{shown(given)}` lies outside of the destination, `{shown(root)}`",
            "choose a location inside, or leave it out: that is the default",
            at,
            "outside-destination",
        )


def iceberg_notes(model: Destination) -> list[Finding]:
    """Return what is no mistake, and yet may surprise; of blocks, the one not in use (F85)."""
    if model.table_format != "ICEBERG":
        return _ignored("iceberg", model)
    found = _ignored("parquet", model)
    catalog = model.iceberg.catalog
    host = urlsplit(catalog.uri or "")
    if model.glue_database_prefix and catalog.type != "GLUE":
        message = f"`glue_database_prefix` has no effect, because the catalog is {catalog.type}"
        found.append(Finding(message, "remove the line", ("glue_database_prefix",), "ignored"))
    name = host.hostname or ""
    at = (*_CATALOG, "uri")
    if catalog.type == "REST" and name.endswith(AWS_DOMAINS) and catalog.sigv4 is None:
        message = f"`{shown(name)}` is a service of AWS, and `sigv4` is not set"
        hint = "AWS's own catalogs take signed requests only: add `sigv4: {signing_name: …}`"
        found.append(Finding(message, hint, at, "unsigned"))
    if name.endswith(".snowflakecomputing.com") and not host.path.endswith("/polaris/api/catalog"):
        message = "Open Catalog answers under `/polaris/api/catalog`, which this URL lacks"
        hint = "write `https://ORG-ACCOUNT.snowflakecomputing.com/polaris/api/catalog`"
        found.append(Finding(message, hint, at, "catalog-path"))
    return found


def _ignored(block: str, model: Destination) -> list[Finding]:
    if block not in model.model_fields_set:
        return []
    message = f"`{block}` is ignored, because `table_format` is {model.table_format}"
    return [Finding(message, None, (block,), "ignored")]


def _listed(types: tuple[CatalogType, ...]) -> str:
    return f"{', '.join(types[:-1])} and {types[-1]}" if len(types) > 1 else types[0]


def _one_of(types: tuple[CatalogType, ...]) -> str:
    return quoted([f"type: {name}" for name in types]).replace(", ", " or ")
