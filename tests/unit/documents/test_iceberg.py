"""Destinations of Iceberg tables: what each catalog takes, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.config.problems import has_errors
from lakeload.documents.format_rules import destination_findings
from lakeload.documents.iceberg import Catalog
from lakeload.documents.load import inspect_all, load_destination, load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.launch.run_folder import create_run_folder
from lakeload.launch.spec import Attempt, build_job_spec
from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    DestinationSpec,
    IcebergSpec,
    ParquetSpec,
    PartitionField,
    RunOptions,
    SigV4Spec,
    TableSpec,
)
from tests.unit.commands.command import CONFIGS
from tests.unit.documents.documents import (
    DESTINATION,
    PIPELINE,
    TABLES,
    messages,
    pipeline,
    problems_of,
)
from tests.unit.launch.specs import ATTEMPT, SYNCED

ICEBERG = f"{DESTINATION}table_format: ICEBERG\n"
HEADERS = "{{type: REST, uri: https://h, headers: {{X-A: {}}}}}"
REST_HEADERS = f"{ICEBERG}iceberg:\n  catalog: {HEADERS}\n"
OPEN_CATALOG = """{type: SNOWFLAKE_OPEN_CATALOG, uri: https://h/polaris/api/catalog,
    catalog_name: lake, client_id: {env: ID}, client_secret: {file: s/secret}"""


def catalog(folder: Path, text: str) -> CatalogSpec:
    path = folder / "d.yaml"
    path.write_text(f"{ICEBERG}iceberg:\n  catalog: {text}\n")
    return destination_spec(load_destination(path, {})).iceberg.catalog


def test_an_iceberg_destination_without_more_is_glue_with_the_contracts_defaults(
    tmp_path: Path,
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(ICEBERG)

    spec = destination_spec(load_destination(path, {}))

    assert spec == DestinationSpec("my-data-lake", "us-east-1", table_format="ICEBERG")


def test_every_setting_of_the_block_reaches_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(
        f"""{ICEBERG}prefix: p
glue_database_prefix: supaflow
iceberg:
  catalog: {{glue_id: "123456789012"}}
  warehouse_location: s3://my-data-lake/p/tables/
  branch: audit
  format_version: 3
  table_properties: {{write.format.default: parquet, write.spark.fanout.enabled: true, gc: 2}}
"""
    )
    spec = destination_spec(load_destination(path, {}))

    assert spec.iceberg == IcebergSpec(
        CatalogSpec(glue_id="123456789012"),
        "s3://my-data-lake/p/tables",
        "audit",
        3,
        {"write.format.default": "parquet", "write.spark.fanout.enabled": "true", "gc": "2"},
    )
    assert spec.glue_database_prefix == "supaflow"
    assert from_json(DestinationSpec, to_json(spec)) == spec


def test_a_rest_catalog_reaches_the_spec(tmp_path: Path) -> None:
    found = catalog(
        tmp_path,
        """{type: REST, uri: https://h:8181/api/catalog/, warehouse: w, credential: "${ID_SECRET}",
    scope: s, oauth2_server_uri: https://login.example.com/token, access_delegation: NONE,
    headers: {X-Tenant: {env: TENANT}, X-Key: {file: k}, X-Short: "${SHORT}"}}""",
    )

    assert found == CatalogSpec(
        "REST",
        uri="https://h:8181/api/catalog",
        warehouse="w",
        credential=SecretReference("env", "ID_SECRET"),
        scope="s",
        oauth2_server_uri="https://login.example.com/token",
        access_delegation="NONE",
        headers={
            "X-Tenant": SecretReference("env", "TENANT"),
            "X-Key": SecretReference("file", str(tmp_path / "k")),
            "X-Short": SecretReference("env", "SHORT"),
        },
    )


def test_signed_requests_name_service_and_region(tmp_path: Path) -> None:
    head = "{type: REST, uri: https://h"

    assert catalog(tmp_path, f"{head}, sigv4: {{}}}}").sigv4 == SigV4Spec("glue", None)
    given = f"{head}, sigv4: {{signing_name: s3tables, region: eu-west-1}}}}"
    assert catalog(tmp_path, given).sigv4 == SigV4Spec("s3tables", "eu-west-1")


def test_a_nessie_catalog_reaches_the_spec(tmp_path: Path) -> None:
    found = catalog(
        tmp_path, "{type: NESSIE, uri: https://h/iceberg, ref: etl, api: NATIVE, token: {env: T}}"
    )

    assert found == CatalogSpec(
        "NESSIE",
        uri="https://h/iceberg",
        token=SecretReference("env", "T"),
        ref="etl",
        api="NATIVE",
    )


def test_open_catalog_becomes_warehouse_and_scope(tmp_path: Path) -> None:
    found = catalog(tmp_path, f"{OPEN_CATALOG}, catalog_region: us-east-1}}")

    assert found == CatalogSpec(
        "SNOWFLAKE_OPEN_CATALOG",
        uri="https://h/polaris/api/catalog",
        warehouse="lake",
        client_id=SecretReference("env", "ID"),
        client_secret=SecretReference("file", str(tmp_path / "s" / "secret")),
        scope="PRINCIPAL_ROLE:ALL",
        catalog_region="us-east-1",
    )
    role = catalog(tmp_path, f"{OPEN_CATALOG}, principal_role: loader}}")
    assert role.scope == "PRINCIPAL_ROLE:loader"


def test_every_setting_of_a_catalog_belongs_to_some_type() -> None:
    given = dict.fromkeys(Catalog.model_fields, "x")
    refused: set[object] = set()
    for kind in ("GLUE", "REST", "NESSIE", "SNOWFLAKE_OPEN_CATALOG"):
        data = {"table_format": "ICEBERG", "iceberg": {"catalog": {**given, "type": kind}}}
        found = [item for item in destination_findings(data) if item.code == "other-catalog"]
        refused |= {item.at[-1] for item in found}
        assert 0 < len(found) < len(given)

    # What no type refuses is accepted by all of them, and has no effect in most.
    assert refused == set(given) - {"type"}


def test_each_mistake_is_reported(tmp_path: Path) -> None:
    text = f"""{ICEBERG.replace("my-data-lake", "Not_A_Bucket")}iceberg:
  catalog: {{type: REST, uri: 5, glue_id: x}}
  format_version: 9
"""
    found = {problem.key for problem in problems_of(tmp_path, text)}

    assert found == {
        "bucket",
        "iceberg.catalog.uri",
        "iceberg.catalog.glue_id",
        "iceberg.format_version",
    }


@pytest.mark.parametrize(
    ("prefix", "location", "inside"),
    [
        ("", "s3://my-data-lake", True),
        ("", "s3://my-data-lake/any/where/", True),
        ("", "s3://my-data-lake-2/x", False),
        ("/a/b/", "s3://my-data-lake/a/b/", True),
        ("a/b", "s3://my-data-lake/a/b/c", True),
        ("a/b", "s3://my-data-lake/a/bc", False),
        ("a/b", "s3://my-data-lake/a", False),
        ("a/b", "s3://my-data-lake/a/b/../c", False),
        ("", "s3://my-data-lake/_lakeload", False),
    ],
)
def test_iceberg_location_must_be_inside_the_destination(
    prefix: str, location: str, inside: bool, tmp_path: Path
) -> None:
    text = f'{ICEBERG}prefix: "{prefix}"\niceberg: {{warehouse_location: "{location}"}}\n'

    found = problems_of(tmp_path, text)

    assert [problem.key for problem in found] == ([] if inside else ["iceberg.warehouse_location"])


def test_the_block_of_the_other_format_is_a_note(tmp_path: Path) -> None:
    [note] = problems_of(tmp_path, f"{DESTINATION}iceberg: {{catalog: {{type: REST}}}}\n")
    assert (note.severity, note.key, note.line) == ("note", "iceberg", 4)

    [note] = problems_of(tmp_path, f"{ICEBERG}parquet: {{update_glue_catalog: true}}\n")
    assert (note.severity, note.key, note.line) == ("note", "parquet", 5)


def test_the_block_of_the_other_format_has_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(f"{ICEBERG}parquet: {{update_glue_catalog: true, upload_parallelism: 9}}\n")
    assert destination_spec(load_destination(path, {})).parquet == ParquetSpec()

    path.write_text(f"{DESTINATION}iceberg: {{branch: audit}}\n")
    assert destination_spec(load_destination(path, {})).iceberg == IcebergSpec()


def test_fingerprint_includes_the_glue_prefix_with_glue(tmp_path: Path) -> None:
    head = PIPELINE.replace("region", "table_format: ICEBERG, glue_database_prefix: Supa, region")
    text = f"{head}namespace: Shop\n{TABLES}"

    [spec] = table_specs(pipeline(tmp_path, text))
    assert spec.schema == "supa_shop"

    nessie = f"iceberg: {{catalog: {NESSIE}}}, region"
    [spec] = table_specs(pipeline(tmp_path, text.replace("region", nessie)))
    assert spec.schema == "Shop"


def test_white_space_around_the_value_of_a_header_is_a_warning(tmp_path: Path) -> None:
    text = REST_HEADERS.format("{env: A}")

    [problem] = problems_of(tmp_path, text, A="padded ")

    assert (problem.severity, problem.key) == ("warning", "iceberg.catalog.headers.X-A")
    assert "padded" not in repr(problem)


def test_a_value_pasted_as_a_headers_variable_is_not_shown(tmp_path: Path) -> None:
    text = REST_HEADERS.format("{env: 'a b'}")

    [problem] = problems_of(tmp_path, text)

    assert problem.snippets[-1].text.endswith("headers: {X-A: {env: ****}}}")


def test_the_reference_of_a_header_is_not_filled_from_the_environment(tmp_path: Path) -> None:
    text = REST_HEADERS.format('"${A}"')

    assert problems_of(tmp_path, text) == []


def test_quoted_and_unquoted_versions_are_distinguished(tmp_path: Path) -> None:
    found = problems_of(tmp_path, f'{ICEBERG}iceberg: {{format_version: "3"}}\n')

    assert messages(found) == ["`format_version` must be a number, not text"]


def test_every_setting_of_an_iceberg_table_reaches_the_spec(tmp_path: Path) -> None:
    head = PIPELINE.replace("region", "table_format: ICEBERG, region")
    document = pipeline(
        tmp_path,
        f"""{head}namespace: web
tables:
  - table: orders
    path: a.csv
    mode: UPSERT
    primary_key: [id]
    cursor: updated at
    deleted_when: gone
    deletes: DELETE
    partition_by: [country, "bucket(16, id)", "day(`created at`)"]
    table_properties: {{write.parquet.compression-level: 5}}
  - {{table: rates, path: b.csv, mode: OVERWRITE}}
  - {{table: whole, path: c.csv, partition_by: []}}
""",
    )
    orders, rates, whole = table_specs(document)

    assert (orders.mode, orders.cursor, orders.deletes) == ("UPSERT", "updated at", "DELETE")
    assert orders.partition_by == (
        PartitionField("identity", "country"),
        PartitionField("bucket", "id", 16),
        PartitionField("day", "created at"),
    )
    assert (rates.partition_by, whole.partition_by) == (None, ())
    assert orders.table_properties == {"write.parquet.compression-level": "5"}
    assert (rates.mode, rates.deletes, rates.table_properties) == ("OVERWRITE", "MARK", None)
    assert from_json(TableSpec, to_json(orders)) == orders


def test_defaults_follow_the_format_of_the_tables(tmp_path: Path) -> None:
    document = pipeline(tmp_path, PIPELINE + TABLES)
    assert (document.nested, document.schema_changes) == ("NATIVE", "ADD_COLUMNS")

    iceberg = PIPELINE.replace("region", "table_format: ICEBERG, region") + "namespace: n\n"
    document = pipeline(tmp_path, iceberg + TABLES)
    assert (document.nested, document.schema_changes) == ("JSON", "EVOLVE")

    given = "nested: NATIVE\nschema_changes: FAIL\n"
    document = pipeline(tmp_path, iceberg + given + TABLES)
    assert (document.nested, document.schema_changes) == ("NATIVE", "FAIL")


def test_schema_changes_of_a_table_win_over_those_of_the_pipeline(tmp_path: Path) -> None:
    two = """\
tables:
  - {table: a, path: a, schema_changes: ADD_COLUMNS}
  - {table: b, path: b}
"""
    document = pipeline(tmp_path, PIPELINE + "schema_changes: FAIL\n" + two)
    a, b = table_specs(document)
    attempt = Attempt("monday", ATTEMPT, SYNCED)
    destination = destination_spec(document.destination)
    folder = create_run_folder(tmp_path, SYNCED, ATTEMPT)
    spec = build_job_spec(document, destination, (a, b), attempt, folder)
    assert [spec.schema_changes_of(table) for table in (a, b)] == ["ADD_COLUMNS", "FAIL"]

    of_files = PIPELINE + two.replace("ADD_COLUMNS", "EVOLVE")
    (problem,) = problems_of(tmp_path, of_files)
    assert "`schema_changes: EVOLVE` needs table_format ICEBERG" in problem.message


NESSIE = "{type: NESSIE, uri: https://h}"
OTHER_LOADS = {
    "a mode": ("path: a", "path: a, mode: OVERWRITE"),
    "a key": ("path: a", "path: a, primary_key: [id]"),
    "a partition": ("path: a", "path: a, partition_by: [id]"),
    "nested values": ("namespace", "nested: NATIVE\nnamespace"),
    "a branch": ("catalog:", "branch: audit, catalog:"),
    "a catalog": (NESSIE, "{type: REST, uri: https://h}"),
    "a server": ("https://h", "https://other"),
    "a branch of the catalog": ("uri: https://h", "uri: https://h, ref: etl"),
    "a location": ("catalog:", "warehouse_location: s3://my-data-lake/x, catalog:"),
}
THE_SAME_LOAD = {
    "properties": ("path: a", "path: a, table_properties: {gc.enabled: false}"),
    "a secret": ("uri: https://h", "uri: https://h, token: {env: T}"),
    "a format version": ("catalog:", "format_version: 3, catalog:"),
    "the block of the other format": ("iceberg:", "parquet: {partition_strategy: DAY}, iceberg:"),
    "schema changes": ("namespace", "schema_changes: FAIL\nnamespace"),
    "schema changes of a table": ("path: a", "path: a, schema_changes: FAIL"),
}


def _fingerprint(folder: Path, old: str = "", new: str = "") -> str:
    iceberg = f"table_format: ICEBERG, iceberg: {{catalog: {NESSIE}}}, region"
    text = PIPELINE.replace("region", iceberg) + "namespace: n\ntables: [{table: t, path: a}]\n"
    assert old in text
    return table_specs(pipeline(folder, text.replace(old, new)))[0].fingerprint


@pytest.mark.parametrize("change", OTHER_LOADS)
def test_fingerprint_of_another_iceberg_load_differs(change: str, tmp_path: Path) -> None:
    assert _fingerprint(tmp_path, *OTHER_LOADS[change]) != _fingerprint(tmp_path)


@pytest.mark.parametrize("change", THE_SAME_LOAD)
def test_fingerprint_ignores_iceberg_creation_settings(change: str, tmp_path: Path) -> None:
    assert _fingerprint(tmp_path, *THE_SAME_LOAD[change]) == _fingerprint(tmp_path)


def test_a_full_refresh_is_another_load(tmp_path: Path) -> None:
    document = load_pipeline(CONFIGS / "pipeline-iceberg.yaml", {})

    assert table_specs(document) != table_specs(document, RunOptions(full_refresh=True))


@pytest.mark.parametrize("inner", [True, False])
def test_nessie_rest_interface_is_rejected_for_loads(inner: bool, tmp_path: Path) -> None:
    catalog = f"iceberg: {{catalog: {NESSIE.replace('}', ', api: REST}')}}}"
    destination = tmp_path / "destination.yml"
    destination.write_text(f"{ICEBERG}{catalog}\n")
    path = tmp_path / "pipeline.yml"
    text = PIPELINE.replace("region", f"table_format: ICEBERG, {catalog}, region")
    if not inner:
        text = "version: 1\nname: shop\ndestination: destination.yml\n"
        text += "source: {type: FILES, format: CSV}\n"
    path.write_text(f"{text}namespace: n\n{TABLES}")

    [inspection, alone] = inspect_all([path, destination], {})

    assert not has_errors(alone.problems)
    [problem] = [one for one in inspection.problems if one.code == "cannot-load"]
    assert (problem.line, problem.key) == (3, "destination")
    assert "`api: NATIVE`" in (problem.hint or "")
