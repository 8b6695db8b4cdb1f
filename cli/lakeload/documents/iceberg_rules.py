"""Rules between the settings of Iceberg destinations and tables, and their specs.

The rules look at whatever parts of the document are valid, so that one mistake hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from lakeload.config.document import Location, quoted
from lakeload.config.model import Finding, spec_of
from lakeload.config.secret_names import shown
from lakeload.documents.destination import Destination
from lakeload.documents.iceberg import Catalog, Iceberg
from lakeload.documents.pipeline import Numbered, Table, cursor_findings
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CatalogType,
    DestinationSpec,
    IcebergSpec,
    PartitionField,
    SigV4Spec,
    TableSpec,
)
from lakeload_jobs.contract.traits import CATALOGS
from lakeload_jobs.core.aws_partitions import AWS_DOMAINS
from lakeload_jobs.formats.iceberg.rules.partitions import duplicate_field, parse_partition_field

BLOCK = "iceberg"
_IDENTITIES = ("credential", "token", "sigv4")


@dataclass(frozen=True)
class CatalogSettings:
    """What the settings of one type of catalog are, and what holds between them."""

    names: tuple[str, ...]
    """Its own settings in `iceberg.catalog`, beside those that all have."""
    required: Mapping[str, str] = field(default_factory=dict)
    """Those that it needs, each with an example."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """What it has in place of a setting of another type."""
    findings: Callable[[Mapping[str, Any], Any], Iterable[Finding]] = lambda catalog, region: ()
    """What is wrong between them, given the destination's region."""


_CATALOG: Location = ("iceberg", "catalog")


def destination_findings(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong between the settings of a destination."""
    block = data.get("iceberg", {})
    catalog = block.get("catalog", {}) if isinstance(block, dict) else None
    if not isinstance(catalog, dict):
        return
    kind = catalog.get("type", Catalog.model_fields["type"].default)
    if kind not in get_args(CatalogType):
        return
    yield from _of_another_type(catalog, kind)
    yield from _missing(catalog, kind)
    yield from CATALOG_SETTINGS[kind].findings(catalog, data.get("region"))
    yield from _warehouse(block, kind, data)


def _of_another_type(catalog: Mapping[str, Any], kind: CatalogType) -> Iterator[Finding]:
    for name in catalog:
        owners = _owners(name)
        if not owners or kind in owners:
            continue
        if instead := CATALOG_SETTINGS[kind].instead.get(name):
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


def _missing(catalog: Mapping[str, Any], kind: CatalogType) -> Iterator[Finding]:
    for name, example in CATALOG_SETTINGS[kind].required.items():
        if name not in catalog:
            yield Finding(
                f"`{name}` is missing: a {kind} catalog needs it",
                f"add `{name}: {example}`",
                (*_CATALOG, name),
                "missing-key",
            )


def _identity(catalog: Mapping[str, Any], region: Any) -> Iterator[Finding]:
    given = [name for name in _IDENTITIES if name in catalog]
    for other in given[1:]:
        message = f"`{given[0]}` and `{other}` are two identities"
        yield Finding(message, "remove one of them", (*_CATALOG, other), "two-identities")
    for name in ("scope", "oauth2_server_uri"):
        if name in catalog and not {"credential", "token"} & set(given):
            yield Finding(
                f"`{name}` has no effect without `credential`",
                "add `credential: {env: LAKELOAD_CREDENTIAL}`, or remove the line",
                (*_CATALOG, name),
            )


def _region(catalog: Mapping[str, Any], region: Any) -> Iterator[Finding]:
    given = catalog.get("catalog_region")
    if isinstance(given, str) and isinstance(region, str) and given != region:
        yield Finding(
            f"the catalog runs in `{shown(given)}` and the bucket is in `{shown(region)}`: "
            "Open Catalog works with buckets of its own region only",
            "use a bucket there, or the catalog GLUE",
            (*_CATALOG, "catalog_region"),
            "cross-region",
        )


def _warehouse(
    block: Mapping[str, Any], kind: CatalogType, data: Mapping[str, Any]
) -> Iterator[Finding]:
    given, at = block.get("warehouse_location"), ("iceberg", "warehouse_location")
    if given is None:
        return
    if not CATALOGS[kind].located:
        located = tuple(name for name, traits in CATALOGS.items() if traits.located)
        message = f"`warehouse_location` is a setting of {_listed(located)}"
        hint = "remove the line: this catalog chooses the locations of tables"
        yield Finding(f"{message}, and the catalog is {kind}", hint, at, "other-catalog")
        return
    bucket, prefix = data.get("bucket"), data.get("prefix", "")
    if not all(isinstance(item, str) for item in (given, bucket, prefix)):
        return
    root = f"s3://{bucket}/{prefix.strip('/')}".rstrip("/")
    if given.startswith("s3://") and not f"{given.rstrip('/')}/".startswith(f"{root}/"):
        yield Finding(
            f"`{shown(given)}` is outside of the destination, `{shown(root)}`",
            "choose a location inside of it, or remove the line to use the default",
            at,
            "outside-destination",
        )


def destination_notes(model: Destination) -> Iterator[Finding]:
    """Yield what is no mistake, and yet may surprise."""
    catalog = model.iceberg.catalog
    if model.glue_database_prefix and not uses_glue(model):
        message = f"`glue_database_prefix` has no effect, because the catalog is {catalog.type}"
        yield Finding(message, "remove the line", ("glue_database_prefix",), "ignored")
    host = urlsplit(catalog.uri or "")
    name = host.hostname or ""
    at = (*_CATALOG, "uri")
    could_sign = "sigv4" in CATALOG_SETTINGS[catalog.type].names and catalog.sigv4 is None
    if could_sign and name.endswith(AWS_DOMAINS):
        message = f"`{shown(name)}` is a service of AWS, and `sigv4` is not set"
        hint = "catalogs of AWS accept only signed requests: add `sigv4: {signing_name: …}`"
        yield Finding(message, hint, at, "unsigned")
    if name.endswith(".snowflakecomputing.com") and not host.path.endswith("/polaris/api/catalog"):
        message = "this is not the URL of Open Catalog, which ends with `/polaris/api/catalog`"
        hint = "write `https://ORG-ACCOUNT.snowflakecomputing.com/polaris/api/catalog`"
        yield Finding(message, hint, at, "catalog-path")


def pipeline_findings(tables: Numbered, data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong between the tables' modes and their settings."""
    yield from mode_findings(tables, data)


def pipeline_notes(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is no mistake in a pipeline, and yet may surprise."""
    yield from mode_notes(data)


def with_settings(spec: DestinationSpec, model: Destination, folder: Path) -> DestinationSpec:
    """Return the contract's form with the settings of `iceberg`."""
    return replace(spec, iceberg=iceberg_spec(model.iceberg, folder))


def uses_glue(model: Destination) -> bool:
    """Tell whether tables are registered in AWS Glue."""
    return CATALOGS[model.iceberg.catalog.type].in_glue


def _owners(name: str) -> tuple[CatalogType, ...]:
    return tuple(kind for kind, settings in CATALOG_SETTINGS.items() if name in settings.names)


def _listed(types: tuple[CatalogType, ...]) -> str:
    return f"{', '.join(types[:-1])} and {types[-1]}" if len(types) > 1 else types[0]


def _one_of(types: tuple[CatalogType, ...]) -> str:
    return quoted([f"type: {name}" for name in types]).replace(", ", " or ")


CATALOG_SETTINGS: Mapping[CatalogType, CatalogSettings] = {
    "GLUE": CatalogSettings(("glue_id",)),
    "REST": CatalogSettings(
        (
            *("uri", "warehouse", "credential", "token", "sigv4", "scope", "oauth2_server_uri"),
            *("access_delegation", "headers"),
        ),
        required={"uri": "https://catalog.example.com"},
        instead={
            "catalog_name": "`warehouse`",
            "client_id": "`credential`, with id and secret in one,",
            "client_secret": "`credential`, with id and secret in one,",
            "principal_role": "`scope`",
        },
        findings=_identity,
    ),
    "NESSIE": CatalogSettings(
        ("uri", "token", "ref", "api"),
        required={"uri": "https://nessie.example.com/iceberg"},
    ),
    "SNOWFLAKE_OPEN_CATALOG": CatalogSettings(
        ("uri", "catalog_name", "client_id", "client_secret", "principal_role", "catalog_region"),
        required={
            "uri": "https://ORG-ACCOUNT.snowflakecomputing.com/polaris/api/catalog",
            "catalog_name": "NAME",
            "client_id": "{env: LAKELOAD_CLIENT_ID}",
            "client_secret": "{env: LAKELOAD_CLIENT_SECRET}",
        },
        instead={
            "warehouse": "`catalog_name`",
            "credential": "`client_id` and `client_secret`",
            "scope": "`principal_role`",
        },
        findings=_region,
    ),
}


def destination_identity(spec: DestinationSpec) -> Mapping[str, Any]:
    """Name the catalog and the place in it; how a table is made does not change its rows."""
    iceberg = spec.iceberg
    catalog = iceberg.catalog
    return {
        "table_format": "ICEBERG",
        "catalog": {
            "type": catalog.type,
            "glue_id": catalog.glue_id,
            "uri": catalog.uri,
            "warehouse": catalog.warehouse,
            "ref": catalog.ref,
        },
        "warehouse_location": iceberg.warehouse_location,
        "branch": iceberg.branch,
    }


def table_identity(table: TableSpec) -> Mapping[str, Any]:
    """Return what becomes of its rows, and how the table is laid out."""
    return {
        "mode": table.mode,
        "cursor": table.cursor,
        "deletes": table.deletes,
        # Not given or empty: the same rows land in the same table.
        "partition_by": [_partition(field) for field in table.partition_by or ()],
    }


def _partition(field: PartitionField) -> Mapping[str, Any]:
    return {"transform": field.transform, "column": field.column, "width": field.width}


def iceberg_spec(model: Iceberg, folder: Path) -> IcebergSpec:
    """Return the contract's form, each catalog's settings under one set of names; paths of secret
    files are relative to `folder`."""
    catalog, signed = model.catalog, model.catalog.sigv4
    own: dict[str, Any] = {"sigv4": spec_of(SigV4Spec, signed, folder) if signed else None}
    if CATALOGS[catalog.type].polaris:
        own["warehouse"] = catalog.catalog_name
        own["scope"] = f"PRINCIPAL_ROLE:{catalog.principal_role}"
    spec = spec_of(CatalogSpec, catalog, folder, **own)
    return spec_of(IcebergSpec, model, folder, catalog=spec)


def mode_findings(tables: Numbered, data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong between the modes of Iceberg tables and their settings.

    `data` is the pipeline's document as it was read.
    """
    for i, table in tables:
        yield from _table(table, ("tables", i), data)
    yield from _tracking(tables, data)


def _table(table: Table, at: Location, data: Mapping[str, Any]) -> Iterator[Finding]:
    if table.mode == "UPSERT":
        yield from _upsert(table, at)
    else:
        yield from _without_upsert(table, at, data)
    if table.mode != "APPEND" and "on_append_again" in table.model_fields_set:
        yield Finding(
            f"`on_append_again` has no effect with `mode: {table.mode}`",
            "remove the line: no row is appended twice",
            (*at, "on_append_again"),
        )
    if table.mode == "OVERWRITE" and _is_incremental(data):
        yield Finding(
            "`mode: OVERWRITE` would keep the rows of new files only, because the source is "
            "`incremental`",
            "`mode: UPSERT` adds and changes rows; or write `incremental: false`",
            (*at, "mode"),
        )
    yield from _partitions(table, at)


def _upsert(table: Table, at: Location) -> Iterator[Finding]:
    unknown = not table.finds_key or "primary_key" in table.model_fields_set
    if not table.primary_key and unknown:
        yield Finding(
            "`mode: UPSERT` needs `primary_key`: files do not define which columns identify a row",
            "add `primary_key: [id]` with the names of those columns",
            (*at, "mode"),
            "missing-key",
        )
    detects = table.delete_limit is not None
    if "deletes" in table.model_fields_set and table.deleted_when is None and not detects:
        yield Finding(
            "`deletes` has no effect without `deleted_when`",
            "add `deleted_when`, a condition that deleted rows meet, or remove the line",
            (*at, "deletes"),
        )
    for i, name in enumerate(table.primary_key):
        if not table.columns.loads(name):
            yield _not_loaded(name, "identifies the rows", (*at, "primary_key", i))
    cursor = table.cursor if table.cursor_is_column else None
    if cursor is not None and not table.columns.loads(cursor):
        yield _not_loaded(cursor, "orders versions of a row", (*at, "cursor"))


def _without_upsert(table: Table, at: Location, data: Mapping[str, Any]) -> Iterator[Finding]:
    yield from cursor_findings(table, data, at, "`mode: UPSERT` orders versions of a row by it")
    for name in {"deletes", "on_same_key"} & table.model_fields_set:
        yield Finding(
            f"`{name}` has no effect with `mode: {table.mode}`",
            "write `mode: UPSERT`, or remove the line",
            (*at, name),
        )


def _partitions(table: Table, at: Location) -> Iterator[Finding]:
    """Refuse a column that is not loaded, and the fields that Iceberg takes for redundant."""
    fields = [parse_partition_field(text) for text in table.partition_by]
    for i, part in enumerate(fields):
        here = (*at, "partition_by", i)
        if not table.columns.loads(part.column):
            yield _not_loaded(part.column, "lays out the table", here)
        if (problem := duplicate_field(fields[: i + 1])) and not duplicate_field(fields[:i]):
            yield Finding(shown(problem, 200), "remove one of them", here)


def _not_loaded(name: str, what: str, at: Location) -> Finding:
    message = f"`{shown(name)}` {what}, and `columns` leaves it out"
    return Finding(message, "load it", at)


def _tracking(tables: Numbered, data: Mapping[str, Any]) -> Iterator[Finding]:
    given = data.get("tracking_columns", "ALL")
    if given == "ALL" or not (given == "NONE" or isinstance(given, tuple)):
        return
    for _, table in tables:
        marks = table.mode == "UPSERT" and table.deleted_when and table.deletes == "MARK"
        if marks and "_supa_deleted" not in given:
            yield Finding(
                "`_supa_deleted` is missing, and it marks the deleted rows of "
                f"`{shown(table.table)}`",
                "add it to the list, or write `deletes: DELETE`",
                ("tracking_columns",),
                "tracking-column",
            )
            return


def mode_notes(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is no mistake, and yet may surprise (docs/design-notes.md)."""
    given = data.get("tracking_columns", "ALL")
    listed = isinstance(given, tuple) and "_supa_job_id" not in given
    if listed or given == "NONE":
        yield Finding(
            "without `_supa_job_id` a table remembers only its latest 1,000 jobs",
            "a job with an older id would be loaded again",
            ("tracking_columns",),
            "tracking-column",
        )


def _is_incremental(data: Mapping[str, Any]) -> bool:
    source = data.get("source")
    return isinstance(source, dict) and source.get("incremental") is True
