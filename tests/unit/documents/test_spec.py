"""Documents → the job's contract."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lakeload.config.problems import InvalidDocuments
from lakeload.documents.load import load_destination, load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    TRACKING_COLUMNS,
    AppendAgain,
    ColumnsSpec,
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
    FilesInput,
    ParquetSpec,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.sources.files.selection import known_name
from tests.inputs import files_of
from tests.unit.documents.documents import DESTINATION, PIPELINE, TABLES, pipeline


def test_a_minimal_destination_has_the_defaults_of_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DESTINATION)

    spec = destination_spec(load_destination(path, {}))

    assert spec == DestinationSpec("my-data-lake", "us-east-1")


def test_every_setting_of_a_destination_reaches_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(
        f"""{DESTINATION}prefix: /landing/shop/
endpoint_url: https://s3.example.com/
endpoints: {{sts: "http://127.0.0.1:4566", glue: "http://127.0.0.1:4567"}}
addressing_style: VIRTUAL
single_writer: true
encryption: {{type: SSE_KMS, kms_key_id: alias/lake}}
target_file_size: 512MiB
parquet:
  partition_strategy: SYNC_ID
  file_name_pattern: "{{uuid}}"
  upload_parallelism: 1
credentials:
  role_arn: arn:aws:iam::123456789012:role/path/R
  session_duration: 900
  session_tags: {{team: lake}}
  profile: base
"""
    )
    spec = destination_spec(load_destination(path, {}))

    assert spec.prefix == "landing/shop"
    assert spec.endpoints == EndpointsSpec(
        s3="https://s3.example.com", sts="http://127.0.0.1:4566", glue="http://127.0.0.1:4567"
    )
    assert (spec.addressing_style, spec.single_writer) == ("VIRTUAL", True)
    assert spec.encryption == EncryptionSpec("SSE_KMS", "alias/lake")
    assert spec.target_file_size == 512 << 20
    assert spec.parquet == ParquetSpec("SYNC_ID", "{uuid}", 1)
    assert spec.credentials.session_duration == 900
    assert spec.credentials.session_tags == {"team": "lake"}
    assert spec.credentials.profile == "base"
    assert from_json(DestinationSpec, to_json(spec)) == spec


def test_every_setting_of_a_table_reaches_the_spec(tmp_path: Path) -> None:
    document = pipeline(
        tmp_path,
        f"""{PIPELINE.replace("CSV", "CSV, options: {header: true, SEP: ';'}")}
destination_prefix: web shop
tables:
  - table: Orders 2026
    path: [data/*.csv, /abs/x.csv, ../up.csv]
    options: {{sep: "|", maxColumns: 5}}
    primary_key: [id, line]
    columns:
      exclude: [secret]
      rename: {{a b: c}}
      types: {{id: bigint}}
    where: id > 0
    deleted_when: gone
""",
    )
    [spec] = table_specs(document)

    assert spec == TableSpec(
        source="Orders 2026",
        schema="web_shop",
        table="Orders_2026",
        input=FilesInput(
            "CSV",
            (f"{tmp_path}/data/*.csv", "/abs/x.csv", f"{tmp_path}/../up.csv"),
            {"header": "true", "sep": "|", "maxColumns": "5"},
            folder=str(tmp_path),
        ),
        fingerprint=spec.fingerprint,
        columns=ColumnsSpec((), ("secret",), {"a b": "c"}, {"id": "bigint"}),
        primary_key=("id", "line"),
        where="id > 0",
        deleted_when="gone",
        append_again=AppendAgain(
            "WARN", "set `incremental: true` in `source` and begin again with `lakeload reset`"
        ),
    )
    assert from_json(TableSpec, to_json(spec)) == spec


def test_the_folder_of_a_document_is_the_same_from_wherever_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "elsewhere").mkdir()
    pipeline(tmp_path / "conf", f"{PIPELINE}tables: [{{table: a, path: in/a.csv}}]\n")

    document = load_pipeline(tmp_path / "elsewhere" / ".." / "conf" / "pipeline.yaml", {})
    [spec] = table_specs(document)

    assert files_of(spec).folder == f"{tmp_path}/conf"
    assert known_name(f"{tmp_path}/conf/in/a.csv", files_of(spec).folder) == "in/a.csv"


def test_source_options_list_of_texts_is_kept_as_json(tmp_path: Path) -> None:
    options = 'CSV, options: {null_values: ["NA", "-"]}'
    document = pipeline(tmp_path, PIPELINE.replace("CSV", options) + TABLES)

    (files, *_) = [files_of(spec) for spec in table_specs(document)]

    assert files.options == {"null_values": '["NA", "-"]'}


@pytest.mark.parametrize("value", ["[NA, 2024-01-01]", "[NA, [x]]", "[NA, {a: b}]", "[NA, null]"])
def test_source_options_list_of_other_values_is_rejected(tmp_path: Path, value: str) -> None:
    options = f"CSV, options: {{null_values: {value}}}"

    with pytest.raises(InvalidDocuments):
        pipeline(tmp_path, PIPELINE.replace("CSV", options) + TABLES)


def test_options_of_the_source_belong_to_its_format(tmp_path: Path) -> None:
    tables = "tables: [{table: a, path: a.json, format: JSON}, {table: b, path: b, format: CSV}]\n"
    document = pipeline(tmp_path, PIPELINE.replace("CSV", "CSV, options: {header: true}") + tables)

    assert [files_of(spec).options for spec in table_specs(document)] == [{}, {"header": "true"}]


def test_relative_paths_do_not_depend_on_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    pipeline(tmp_path / "conf", PIPELINE + TABLES)
    monkeypatch.chdir(tmp_path)

    [spec] = table_specs(load_pipeline(Path("conf/pipeline.yaml"), {}))

    assert files_of(spec).paths == (f"{tmp_path}/conf/orders.csv",)


def test_a_folder_with_the_characters_of_a_pattern_is_taken_literally(tmp_path: Path) -> None:
    folder = tmp_path / "[old] *"
    folder.mkdir()

    [spec] = table_specs(pipeline(folder, PIPELINE + TABLES.replace("orders.csv", "'*.csv'")))

    assert files_of(spec).paths == (f"{tmp_path}/[[]old] [*]/*.csv",)


GLUE = "parquet: {update_glue_catalog: true}, bucket"
PROJECTION = "parquet: {update_glue_catalog: true, partition_projection: true}, bucket"
CHANGES_THE_LOAD = {
    "bucket": (PIPELINE.replace("my-data-lake", "other-lake"), TABLES),
    "prefix": (PIPELINE.replace("bucket", "prefix: p, bucket"), TABLES),
    "pipeline": (PIPELINE.replace("shop", "store"), TABLES),
    "nested": (PIPELINE + "nested: JSON\n", TABLES),
    "bad value": (PIPELINE + "on_bad_value: NULL\n", TABLES),
    "tracking": (PIPELINE + "tracking_columns: NONE\n", TABLES),
    "namespace": (PIPELINE + "namespace: n\n", TABLES),
    "path": (PIPELINE, TABLES.replace("orders.csv", "other.csv")),
    "condition": (PIPELINE, TABLES.replace("}", ", where: x = 1}")),
    "key": (PIPELINE, TABLES.replace("}", ", primary_key: [id]}")),
    "incremental": (PIPELINE.replace("CSV", "CSV, incremental: true"), TABLES),
    "Glue": (PIPELINE.replace("bucket", GLUE) + "namespace: n\n", TABLES),
    "projection": (PIPELINE.replace("bucket", PROJECTION) + "namespace: n\n", TABLES),
    "option": (PIPELINE.replace("CSV", "CSV, options: {header: true}"), TABLES),
}
CHANGES_HOW_IT_RUNS = {
    "concurrency": (PIPELINE + "concurrency: 9\n", TABLES),
    "handling": (PIPELINE + "table_handling: APPEND\n", TABLES),
    "spark": (PIPELINE + "spark: {driver_memory: 2g}\n", TABLES),
    "reader": (PIPELINE + "spark: {reader: JVM}\n", TABLES),
    "credentials": (PIPELINE.replace("bucket", "credentials: {profile: x}, bucket"), TABLES),
    "source credentials": (PIPELINE.replace("CSV", "CSV, credentials: {profile: x}"), TABLES),
    "unused prefix": (PIPELINE.replace("bucket", "glue_database_prefix: x, bucket"), TABLES),
    "Glue endpoint": (PIPELINE.replace("bucket", "endpoints: {glue: 'http://h'}, bucket"), TABLES),
    "size": (PIPELINE.replace("bucket", "target_file_size: 2GiB, bucket"), TABLES),
    "comment": ("# x\n" + PIPELINE, TABLES),
}


@pytest.mark.parametrize("change", CHANGES_THE_LOAD)
def test_fingerprint_of_another_load_differs(change: str, tmp_path: Path) -> None:
    assert _fingerprint(tmp_path, *CHANGES_THE_LOAD[change]) != _fingerprint(
        tmp_path, PIPELINE, TABLES
    )


@pytest.mark.parametrize("change", CHANGES_HOW_IT_RUNS)
def test_fingerprint_ignores_how_a_load_runs(change: str, tmp_path: Path) -> None:
    assert _fingerprint(tmp_path, *CHANGES_HOW_IT_RUNS[change]) == _fingerprint(
        tmp_path, PIPELINE, TABLES
    )


def test_fingerprint_ignores_the_location_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    assert _fingerprint(tmp_path, PIPELINE, TABLES) == _fingerprint(
        tmp_path / "a", PIPELINE, TABLES
    )


@pytest.mark.parametrize(
    ("run", "mark"),
    [
        ({}, "014b7295e01d7286e2b98e2029297a464b66bc3a8b6b1e697491196159ecfa3c"),
        ({"limit": 5}, "9e9c8732347713f56c2381399e305f86ef5d45aa915e0f35f0fd723102d811e1"),
        ({"reload": True}, "bc61c48192873420d8c89dd4cf3c98765fbd5516c07089671876e3b75e50a19f"),
    ],
)
def test_fingerprints_in_the_logs_of_parquet_tables_stay_valid(
    run: dict[str, Any], mark: str, tmp_path: Path
) -> None:
    """The same job id is a no-op only with an equal fingerprint, whatever the version."""
    [spec] = table_specs(pipeline(tmp_path, PIPELINE + TABLES), RunOptions(**run))

    assert spec.fingerprint == mark


def test_a_limited_load_is_another_load(tmp_path: Path) -> None:
    document = pipeline(tmp_path, PIPELINE + TABLES)

    marks = {
        table_specs(document, RunOptions(limit=limit))[0].fingerprint for limit in (None, 5, 6)
    }

    assert len(marks) == 3


def test_loading_everything_again_is_another_load(tmp_path: Path) -> None:
    document = pipeline(tmp_path, PIPELINE + TABLES)

    assert table_specs(document) != table_specs(document, RunOptions(reload=True))


def test_glue_makes_names_lower_case_and_puts_its_prefix_first(tmp_path: Path) -> None:
    settings = f"glue_database_prefix: Supa Flow, {PROJECTION}"
    tables = """destination_prefix: Shop
tables:
  - {table: Orders, path: a}
  - {table: orders, path: b}
  - {table: x, name: RETURNS, namespace: Back, path: c}
"""
    document = pipeline(tmp_path, PIPELINE.replace("bucket", settings) + tables)

    assert [spec.target for spec in table_specs(document)] == [
        "supa_flow_shop.orders",
        "supa_flow_shop.orders_1",
        "supa_flow_back.returns",
    ]
    spec = destination_spec(document.destination)
    assert spec.glue_database_prefix == "Supa Flow"
    assert (spec.parquet.update_glue_catalog, spec.parquet.partition_projection) == (True, True)


def test_target_name_without_glue_has_no_prefix(tmp_path: Path) -> None:
    head = PIPELINE.replace("bucket", "glue_database_prefix: x, bucket") + "namespace: Shop\n"

    document = pipeline(tmp_path, head + TABLES)

    [spec] = table_specs(document)
    assert spec.schema == "Shop"
    assert destination_spec(document.destination).glue_database_prefix == ""


def test_a_source_has_credentials_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "d.yaml").write_text(DESTINATION)
    text = f"""version: 1
name: shop
destination: ../d.yaml
source:
  type: FILES
  format: AVRO
  incremental: true
  credentials:
    role_arn: arn:aws:iam::123456789012:role/Reader
    external_id: {{file: id.txt}}
{TABLES.replace("orders.csv", "[s3://raw-data/a b/*.avro, x.avro]")}"""

    [spec] = table_specs(pipeline(tmp_path / "conf", text))

    assert spec.input == FilesInput(
        "AVRO",
        ("s3://raw-data/a b/*.avro", f"{tmp_path}/conf/x.avro"),
        {},
        incremental=True,
        credentials=CredentialsSpec(
            role_arn="arn:aws:iam::123456789012:role/Reader",
            external_id=SecretReference("file", f"{tmp_path}/conf/id.txt"),
        ),
        folder=f"{tmp_path}/conf",
    )
    assert from_json(TableSpec, to_json(spec)) == spec


@pytest.mark.parametrize(
    ("written", "columns"),
    [
        ("ALL", TRACKING_COLUMNS),
        ("NONE", ()),
        ("[]", ()),
        ("[_supa_job_id, _supa_synced]", ("_supa_synced", "_supa_job_id")),
    ],
)
def test_tracking_columns_come_in_their_own_order(
    written: str, columns: tuple[str, ...], tmp_path: Path
) -> None:
    document = pipeline(tmp_path, f"{PIPELINE}tracking_columns: {written}\n{TABLES}")

    assert document.model.tracking_columns == columns


def test_null_needs_no_quotes_where_it_is_a_choice(tmp_path: Path) -> None:
    assert (
        pipeline(tmp_path, f"{PIPELINE}on_bad_value: NULL\n{TABLES}").model.on_bad_value == "NULL"
    )


def test_destination_of_a_pipeline_is_read(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(DESTINATION)
    text = PIPELINE.replace("{version: 1, bucket: my-data-lake, region: us-east-1}", "d.yaml")
    document = pipeline(tmp_path, text + TABLES)

    assert document.destination.path == tmp_path / "d.yaml"
    assert load_destination(tmp_path / "pipeline.yaml", {}) == document.destination


def test_destination_in_place_of_a_pipeline_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DESTINATION)

    with pytest.raises(InvalidDocuments) as caught:
        load_pipeline(path, {})

    assert caught.value.problems[0].message == (
        "this is a destination, and a pipeline is needed here"
    )
    assert str(path) in caught.value.message


def test_documents_cannot_be_changed(tmp_path: Path) -> None:
    model = pipeline(tmp_path, PIPELINE + TABLES).model

    with pytest.raises(ValueError, match="frozen"):
        model.name = "other"


def test_interpolation_uses_the_passed_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP", "from-the-process")
    text = PIPELINE.replace("shop", "${SHOP}") + TABLES

    assert pipeline(tmp_path, text, SHOP="given").model.name == "given"
    assert os.environ["SHOP"] == "from-the-process"


def _fingerprint(folder: Path, head: str, tables: str) -> str:
    return table_specs(pipeline(folder, head + tables))[0].fingerprint
