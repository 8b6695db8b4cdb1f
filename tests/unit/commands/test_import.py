"""`lakeload import`: nothing of a configuration is dropped, and none of its secrets is written."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.documents.load import inspect_all
from tests.environments import many

CASES = Path(__file__).parents[2] / "cases" / "imports"
EXAMPLES = sorted(path.name for path in CASES.iterdir() if path.is_dir())
each_example = pytest.mark.parametrize("example", EXAMPLES)
SECRET = "SECRET-VALUE"
"""What every secret in the examples contains."""


def run(*arguments: str, text: str | None = None) -> Any:
    """Run `lakeload import`; `text` is its standard input."""
    return CliRunner().invoke(app, ["import", *arguments], input=text)


def inputs(example: str) -> list[str]:
    """Return the files of an example, those of the other product."""
    return sorted(
        str(path) for path in (CASES / example).glob("*") if not path.name.startswith("expected")
    )


def imported(folder: Path, *files: str) -> Any:
    """Import files into a folder and return the JSON answer."""
    done = run(*files, "--into", str(folder), "--output", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def written(folder: Path, name: str = "pipeline.yml") -> Any:
    """Return a document that was written."""
    return yaml.safe_load((folder / name).read_text(encoding="utf-8"))


def file(folder: Path, text: str) -> str:
    """Write a configuration and return its path."""
    path = folder / "theirs.yml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every value that is not empty."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    elif value not in (None, ""):
        yield path


@each_example
def test_import_of_an_example_writes_the_expected_documents(example: str, tmp_path: Path) -> None:
    into = tmp_path / "shop"
    imported(into, *inputs(example))
    expected = {
        path.name.removeprefix("expected-"): path.read_text(encoding="utf-8")
        for path in (CASES / example).glob("expected-*")
    }
    assert {name: (into / name).read_text(encoding="utf-8") for name in expected} == expected
    assert {path.name for path in into.glob("*.yml")} == set(expected)


@each_example
def test_import_of_an_example_passes_validation(example: str, tmp_path: Path) -> None:
    answer = imported(tmp_path / "shop", *inputs(example))
    found = inspect_all(sorted((tmp_path / "shop").glob("*.yml")), {})
    errors = [problem for one in found for problem in one.problems if problem.severity == "error"]
    assert errors == []
    assert answer["problems"] == []


@each_example
def test_every_setting_of_an_example_is_carried_over_or_listed(
    example: str, tmp_path: Path
) -> None:
    answer = imported(tmp_path, *inputs(example))
    named = " ".join(one["setting"] or "" for one in answer["settings"])
    listed = [one["setting"] for one in answer["not_carried_over"]]
    # A schema is one setting, and so are properties.
    whole = ("columns.types", "table_properties")
    listed += [one["setting"] for one in answer["settings"] if one["here"].endswith(whole)]
    for path in inputs(example):
        given = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        for leaf in leaves(given):
            # A list is one setting, and a collection may be named by a mapping.
            setting = re.sub(r"(\[\d+\])+$", "", leaf)
            assert setting in named or any(leaf.startswith(one) for one in listed), leaf


@each_example
def test_no_secret_of_an_example_is_written_or_shown(example: str, tmp_path: Path) -> None:
    texts = [Path(path).read_text(encoding="utf-8") for path in inputs(example)]
    assert SECRET in "".join(texts) or example == "airbyte-catalog"
    shown = run(*inputs(example), "--into", str(tmp_path / "text"))
    answered = run(*inputs(example), "--into", str(tmp_path / "json"), "--output", "json", "-vv")
    files = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 2
    for text in (shown.output, answered.output, *files):
        assert SECRET not in text


@each_example
def test_every_variable_of_an_example_is_in_the_dotenv(example: str, tmp_path: Path) -> None:
    answer = imported(tmp_path, *inputs(example))
    names = [variable["name"] for variable in answer["variables"]]
    text = "".join(path.read_text("utf-8") for path in tmp_path.glob("*.yml"))
    assert all(f"{{env: {name}}}" in text for name in names)
    assert text.count("{env: ") == len(names)
    if names:
        dotenv = (tmp_path / ".env").read_text(encoding="utf-8")
        assert all(f"# {name}=\n" in dotenv for name in names)
        assert answer["next"][0].startswith("set -a; . ")


BASE = "S3 Bucket Name: lake\nBucket Region: us-east-1\n"


def test_import_unknown_setting_is_listed_without_its_value(tmp_path: Path) -> None:
    answer = imported(tmp_path / "o", file(tmp_path, BASE + "Magic:\n  Deep: [hunter2]\n"))
    assert {"setting": "Magic.Deep", "reason": "lakeload has no setting for it"} in answer[
        "not_carried_over"
    ]
    assert "hunter2" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("label", "value", "here"),
    [
        ("Update AWS Glue Catalog", "Enabled", ("parquet", "update_glue_catalog", True)),
        ("syncSchemaWithAwsGlueCatalog", "true", ("parquet", "update_glue_catalog", True)),
        ("Partition Strategy*", "day", ("parquet", "partition_strategy", "DAY")),
        ("Upload Parallelism", "7", ("parquet", "upload_parallelism", 7)),
    ],
)
def test_labels_and_values_are_understood_in_any_spelling(
    label: str, value: str, here: tuple[str, str, Any], tmp_path: Path
) -> None:
    imported(tmp_path / "o", file(tmp_path, f'{BASE}"{label}": {value}\n'))
    assert written(tmp_path / "o", "destination.yml")[here[0]][here[1]] == here[2]


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("Upload Parallelism: lots", "its value is not one that this setting has here"),
        ("Custom S3 Endpoint: https://me:hunter2@s3.example.com", "user name or password"),
    ],
)
def test_a_value_that_cannot_be_carried_over_is_listed(
    label: str, reason: str, tmp_path: Path
) -> None:
    answer = imported(tmp_path / "o", file(tmp_path, f"{BASE}{label}\n"))
    [left] = [one for one in answer["not_carried_over"] if one["setting"] in label]
    assert reason in left["reason"]
    assert "hunter2" not in json.dumps(answer)
    assert "hunter2" not in (tmp_path / "o" / "destination.yml").read_text("utf-8")


def test_the_default_database_prefix_is_written_where_glue_is_used(tmp_path: Path) -> None:
    glue = f"{BASE}Table Format: Iceberg\nIceberg Catalog: GLUE\n"
    imported(tmp_path / "glue", file(tmp_path, glue))
    imported(tmp_path / "files", file(tmp_path, BASE))
    assert written(tmp_path / "glue", "destination.yml")["glue_database_prefix"] == "supaflow"
    assert "glue_database_prefix" not in written(tmp_path / "files", "destination.yml")


def test_import_text_like_a_variable_stays_text(tmp_path: Path) -> None:
    imported(tmp_path / "o", file(tmp_path, BASE + "S3 Path Prefix: raw/${STAGE}/x\n"))
    text = (tmp_path / "o" / "destination.yml").read_text(encoding="utf-8")
    assert 'prefix: "raw/$${STAGE}/x"' in text


STREAM = {"stream": {"name": "a"}, "sync_mode": "incremental", "destination_sync_mode": "append"}


@pytest.mark.parametrize(
    ("modes", "mode", "incremental"),
    [
        ("full_refresh append", "APPEND", False),
        ("full_refresh overwrite", "OVERWRITE", False),
        ("full_refresh overwrite_dedup", "UPSERT", False),
        ("incremental append", "APPEND", True),
        ("incremental append_dedup", "UPSERT", True),
        ("incremental_deduped_history", "UPSERT", True),
        ("full_refresh_overwrite_deduped", "UPSERT", False),
        ("FullRefreshOverwrite", "OVERWRITE", False),
        ("Incremental-Append+Deduped", "UPSERT", True),
    ],
)
def test_each_pair_of_sync_modes_becomes_a_mode(
    modes: str, mode: str, incremental: bool, tmp_path: Path
) -> None:
    settings = dict(zip(("sync_mode", "destinationSyncMode"), modes.split(), strict=False))
    stream = {"stream": {"name": "a"}, "primary_key": [["id"]], **settings}
    imported(tmp_path / "o", file(tmp_path, json.dumps({"streams": [stream]})))
    document = written(tmp_path / "o")
    assert document["tables"][0]["mode"] == mode
    assert document["source"]["incremental"] is incremental
    # What adds all rows again there does so here without a warning.
    allowed = "ALLOW" if (mode, incremental) == ("APPEND", False) else None
    assert document["tables"][0].get("on_append_again") == allowed


def test_a_mode_that_no_table_has_is_listed(tmp_path: Path) -> None:
    stream = {**STREAM, "destination_sync_mode": "soft_delete"}
    answer = imported(tmp_path / "o", file(tmp_path, json.dumps({"streams": [stream]})))
    assert "mode" not in written(tmp_path / "o")["tables"][0]
    assert any("write `mode`" in one["reason"] for one in answer["not_carried_over"])


def test_a_nested_key_and_a_cursor_of_appends_are_listed(tmp_path: Path) -> None:
    stream = {**STREAM, "primary_key": [["id", "no"]], "cursor_field": ["at"]}
    answer = imported(tmp_path / "o", file(tmp_path, json.dumps({"streams": [stream]})))
    [table] = written(tmp_path / "o")["tables"]
    assert table.keys() == {"table", "path", "mode"}
    listed = {one["setting"] for one in answer["not_carried_over"]}
    assert {"streams[0].primary_key", "streams[0].cursor_field"} <= listed


def test_streams_of_one_name_in_two_namespaces_keep_their_targets(tmp_path: Path) -> None:
    streams = [{**STREAM, "stream": {"name": "a", "namespace": n}} for n in ("x", "y")]
    imported(tmp_path / "o", file(tmp_path, json.dumps({"streams": streams})))
    one, other = written(tmp_path / "o")["tables"]
    assert (one["table"], one["namespace"]) == ("a", "x")
    assert (other["table"], other["name"], other["namespace"]) == ("y_a", "a", "y")


SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "number"},
        "a: b": {"type": "integer", "maximum": 9},
        "day": {"type": ["null", "string"], "format": "date"},
        "price": {"type": "number"},
    },
}


def test_declared_types_of_a_stream_become_types_of_columns(tmp_path: Path) -> None:
    stream = {
        "stream": {"name": "a", "jsonSchema": SCHEMA},
        "config": {"syncMode": "incremental", "destinationSyncMode": "append_dedup",
                   "primaryKey": [["id"]]},
    }  # fmt: skip
    answer = imported(tmp_path / "o", file(tmp_path, json.dumps({"streams": [stream]})))
    [table] = written(tmp_path / "o")["tables"]
    assert table["columns"] == {
        "types": {"id": "string", "a: b": "bigint", "day": "date", "price": "double"}
    }
    theirs = "streams[0].stream.jsonSchema"
    reasons = [one["reason"] for one in answer["not_carried_over"] if one["setting"] == theirs]
    assert reasons == ["lakeload checks types, and not `maximum`"]
    [here] = [one["here"] for one in answer["settings"] if one["setting"] == theirs]
    assert here == "pipeline.tables[0].columns.types"


@pytest.mark.parametrize(("mode", "deletes"), [("append_dedup", "DELETE"), ("append", None)])
def test_deleted_rows_of_a_database_log_are_removed(
    mode: str, deletes: str | None, tmp_path: Path
) -> None:
    schema = {"properties": {"id": {"type": "integer"}, "_ab_cdc_deleted_at": {"type": "string"}}}
    stream = {"stream": {"name": "a", "jsonSchema": schema}, "primaryKey": [["id"]],
              "syncMode": "incremental", "destinationSyncMode": mode}  # fmt: skip
    imported(tmp_path / "o", file(tmp_path, json.dumps({"streams": [stream]})))
    [table] = written(tmp_path / "o")["tables"]
    assert table.get("deletes") == deletes
    assert table.get("deleted_when") == (deletes and "_ab_cdc_deleted_at is not null")


def test_declared_types_of_a_collection_become_types_of_columns(tmp_path: Path) -> None:
    flow = {
        "collections": {
            "acme/orders": {
                "writeSchema": {"properties": {"id": {"type": "integer"}}},
                "readSchema": {
                    "allOf": [{"$ref": "flow://write-schema"}, {"$ref": "flow://inferred-schema"}],
                    "properties": {
                        "photo": {"type": "string", "contentEncoding": "base64"},
                        "total": {"$ref": "money.yaml"},
                    },
                },
                "key": ["/id"],
                "projections": {"other": "/id"},
            },
            "acme/visits": {"schema": "visits.schema.yaml", "key": ["/id"]},
            "acme/old": {"schema": {"type": "object"}, "key": ["/id"]},
        },
        "materializations": {"acme/lake": {"bindings": [
            {"source": "acme/orders", "resource": {"table": "orders"}},
            {"source": "acme/visits", "resource": {"table": "visits"}},
        ]}},
    }  # fmt: skip
    answer = imported(tmp_path / "o", file(tmp_path, json.dumps(flow)))
    orders, visits = written(tmp_path / "o")["tables"]
    assert orders["columns"] == {"types": {"photo": "binary", "id": "bigint"}}
    assert "columns" not in visits
    listed = {one["setting"]: one["reason"] for one in answer["not_carried_over"]}
    read = "collections.acme/orders.readSchema"
    assert listed[read].endswith("in another document, `flow://inferred-schema`")
    assert listed[f"{read}.properties.total"].endswith("in another document, `money.yaml`")
    assert "put the schema itself" in listed["collections.acme/visits.schema"]
    assert "no table" in listed["collections.acme/old.schema"]
    assert "collections.acme/orders.writeSchema" in listed
    assert "`columns.rename`" in listed["collections.acme/orders.projections"]


@pytest.mark.parametrize(("enabled", "columns"), [(True, {"include": ["a"]}), (False, None)])
def test_selected_fields_become_columns_that_are_loaded(
    enabled: bool, columns: Any, tmp_path: Path
) -> None:
    selection = {"fieldSelectionEnabled": enabled, "selectedFields": [{"fieldPath": ["a"]}]}
    imported(tmp_path / "o", file(tmp_path, json.dumps({"streams": [{**STREAM, **selection}]})))
    assert written(tmp_path / "o")["tables"][0].get("columns") == columns


def test_two_tables_of_one_collection_have_its_key_and_types(tmp_path: Path) -> None:
    schema = {"properties": {"id": {"type": "integer"}}}
    bindings = [{"source": "a/b", "resource": {"table": name}} for name in ("x", "y")]
    flow = {
        "collections": {"a/b": {"schema": schema, "key": ["/id"]}},
        "materializations": {"a/lake": {"bindings": bindings}},
    }
    answer = imported(tmp_path / "o", file(tmp_path, json.dumps(flow)))
    assert [problem["code"] for problem in answer["problems"]] == ["missing-file"]
    for table in written(tmp_path / "o")["tables"]:
        assert table["primary_key"] == ["id"]
        assert table["columns"] == {"types": {"id": "bigint"}}


NAMESPACED = {"namespaceFormat": "raw_${SOURCE_NAMESPACE}", "prefix": "air_"}


@pytest.mark.parametrize(
    ("settings", "namespaces", "names"),
    [
        ({"namespaceDefinition": "destination"}, (None, None), (None, None)),
        ({"namespaceDefinition": "source"}, ("public", None), (None, None)),
        ({**NAMESPACED, "namespaceDefinition": "customformat"},
         ("raw_public", "raw_"), ("air_a", "air_b")),
        ({"namespaceDefinition": "custom_format", "namespaceFormat": "${SOURCE_NAMESPACE}"},
         ("public", None), (None, None)),
        ({"namespaceDefinition": "custom_format", "namespaceFormat": "lake"},
         ("lake", "lake"), (None, None)),
        ({"prefix": "air_"}, ("public", None), ("air_a", "air_b")),
    ],
)  # fmt: skip
def test_a_connection_names_the_tables_of_its_streams(
    settings: dict[str, str],
    namespaces: tuple[str | None, ...],
    names: tuple[str | None, ...],
    tmp_path: Path,
) -> None:
    streams = [{**STREAM, "stream": {"name": "a", "namespace": "public"}},
               {**STREAM, "stream": {"name": "b"}}]  # fmt: skip
    connection = {**settings, "syncCatalog": {"streams": streams}}
    destination = tmp_path / "destination.json"
    catalog = {"catalog_type": "REST", "server_uri": "https://c.example.com", "namespace": "lake0"}
    destination.write_text(json.dumps({"s3_bucket_name": "lake", "catalog_type": catalog}))
    answer = imported(tmp_path / "o", file(tmp_path, json.dumps(connection)), str(destination))

    document = written(tmp_path / "o")
    assert document["namespace"] == "lake0"
    assert tuple(table.get("namespace") for table in document["tables"]) == namespaces
    assert tuple(table.get("name") for table in document["tables"]) == names
    assert [table["table"] for table in document["tables"]] == ["a", "b"]
    carried = " ".join(one["setting"] or "" for one in answer["settings"])
    assert all(name in carried for name in settings)


def test_names_of_a_connection_that_have_no_effect_are_listed(tmp_path: Path) -> None:
    text = json.dumps({**NAMESPACED, "namespaceDefinition": "destination", "streams": []})
    answer = imported(tmp_path / "o", file(tmp_path, text))
    listed = {one["setting"]: one["reason"] for one in answer["not_carried_over"]}
    assert "write `namespace` of the pipeline" in listed["namespaceDefinition"]
    assert "`customformat`" in listed["namespaceFormat"]
    assert "write `name` of each table" in listed["prefix"]


def test_tables_of_supaflow_load_what_is_new(tmp_path: Path) -> None:
    imported(tmp_path / "o", file(tmp_path, BASE))
    assert written(tmp_path / "o")["source"]["incremental"] is True


def test_settings_of_a_source_of_files_are_listed_by_name(tmp_path: Path) -> None:
    csv = {"filetype": "csv", "delimiter": ";", "escape_char": "\\", "skip_rows_before_header": 2}
    stream = {"name": "orders", "globs": ["**"], "format": csv}
    source = json.dumps({"sourceType": "s3", "streams": [stream]})

    answer = imported(tmp_path / "o", file(tmp_path, source))

    listed = {one["setting"]: one["reason"] for one in answer["not_carried_over"]}
    for setting in ("globs", *(f"format.{name}" for name in csv)):
        assert listed[f"streams[0].{setting}"] == "lakeload has no setting for it"


def test_a_catalog_alone_names_the_destination_that_is_missing(tmp_path: Path) -> None:
    answer = imported(tmp_path / "o", file(tmp_path, json.dumps({"streams": [STREAM]})))
    assert not (tmp_path / "o" / "destination.yml").exists()
    assert [problem["code"] for problem in answer["problems"]] == ["missing-file"]


def test_connection_test_that_is_proposed_includes_a_database(tmp_path: Path) -> None:
    answer = imported(tmp_path / "o", file(tmp_path, BASE))
    assert f"lakeload test-connection {tmp_path / 'o' / 'pipeline.yml'}" in answer["next"]


def test_standard_input_is_read(tmp_path: Path) -> None:
    done = run("-", "--into", str(tmp_path), text=BASE)
    assert done.exit_code == 0, done.output
    assert written(tmp_path, "destination.yml")["bucket"] == "lake"


def test_json_with_tabs_is_read(tmp_path: Path) -> None:
    imported(tmp_path / "o", file(tmp_path, '{\n\t"s3_bucket_name": "lake",\n\t"glue_id": 1\n}'))
    assert written(tmp_path / "o", "destination.yml")["bucket"] == "lake"


def test_a_file_that_exists_is_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text("mine\n", encoding="utf-8")
    source = file(tmp_path, BASE)
    refused = run(source, "--into", str(tmp_path))
    assert refused.exit_code == 2
    assert "nothing was written" in refused.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipeline.yml", "theirs.yml"]
    assert run(source, "--into", str(tmp_path), "--force").exit_code == 0
    assert (tmp_path / "pipeline.yml").read_text(encoding="utf-8") != "mine\n"


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = run(file(tmp_path, BASE), "--into", str(tmp_path / "o"), "--dry-run")
    assert done.exit_code == 0
    assert "would write" in done.stdout
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello: 1\n", "not a configuration of a product"),
        ("version: 1\nbucket: lake\nregion: us-east-1\n", "destination of lakeload already"),
        ("", "it has no keys"),
        ("- 1\n", "it has no keys"),
        ("Client Secret: *hunter2\nExternal ID: %hunter2\n", "neither YAML nor JSON"),
        (BASE + "External ID: a\nExternal ID: hunter2\n", "`External ID` is given twice"),
        ("materializations: {a: {}, b: {}}\n", "has 2 materializations"),
    ],
)
def test_a_document_that_cannot_be_imported_ends_with_exit_code_2(
    text: str, message: str, tmp_path: Path
) -> None:
    done = run(file(tmp_path, text), "--into", str(tmp_path / "o"))
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert "hunter2" not in done.output
    assert not (tmp_path / "o").exists()


def test_documents_of_two_products_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"streams": [STREAM]}), encoding="utf-8")
    done = run(file(tmp_path, BASE), str(other), "--into", str(tmp_path / "o"))
    assert done.exit_code == 2
    assert "one product at a time" in done.output


def _changed(value: Any, source: random.Random) -> Any:
    """Return a copy of a configuration with some values that do not belong there."""
    if source.random() < 0.06:
        return source.choice(
            (
                None,
                [],
                {},
                "x\ny",
                5,
                True,
                {"a": {"b": [1]}},
                [["a", "b"], "c"],
                "http://[x",
                "é/b",
            )
        )
    if isinstance(value, dict):
        return {name: _changed(item, source) for name, item in value.items()}
    if isinstance(value, list):
        return [_changed(item, source) for item in value]
    return value


@pytest.mark.parametrize("seed", range(many(8)))
@each_example
def test_a_configuration_with_wrong_values_is_imported_or_refused(
    example: str, seed: int, tmp_path: Path
) -> None:
    source = random.Random(seed)  # noqa: S311 - a test
    files = []
    for i, path in enumerate(inputs(example)):
        given = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        files.append(tmp_path / f"{i}.json")
        files[-1].write_text(json.dumps(_changed(given, source)), encoding="utf-8")
    done = run(*map(str, files), "--into", str(tmp_path / "o"), "--dry-run")
    assert done.exit_code in (0, 2), done.exception
    assert SECRET not in done.output


def test_a_catalog_whose_url_is_wrong_is_imported_with_a_warning(tmp_path: Path) -> None:
    catalog = {"catalog_type": "POLARIS", "server_uri": "http://[x", "client_id": "c"}
    given = {"s3_bucket_name": "lake", "s3_bucket_region": "us-east-1", "catalog_type": catalog}
    answer = imported(tmp_path / "o", file(tmp_path, json.dumps(given)))
    assert any("URL" in problem["message"] for problem in answer["problems"])


@pytest.mark.parametrize(
    ("location", "prefix"),
    [
        ("s3://lake/a/b/", "a/b"),
        ("s3://lake", None),
        ("s3://lake/", None),
        ("s3://lake-2/a", None),
    ],
)
def test_the_path_of_a_warehouse_is_the_prefix(
    tmp_path: Path, location: str, prefix: str | None
) -> None:
    given = json.loads((CASES / "airbyte-glue" / "destination.json").read_text("utf-8"))
    given |= {"s3_bucket_name": "lake", "warehouse_location": location}
    imported(tmp_path / "into", file(tmp_path, json.dumps(given)))
    assert written(tmp_path / "into", "destination.yml").get("prefix") == prefix
