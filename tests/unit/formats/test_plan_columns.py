"""Columns in the plan of Parquet tables: found without Spark, and refused as a load would."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from rich.console import Console

from lakeload.formats.parquet import plan as parquet_plan
from lakeload.formats.parquet.inspect import ParquetState
from lakeload.formats.plan import TablePlan, with_samples, with_side_tables
from lakeload.launch.run_folder import RunFolder
from lakeload.sources.files import columns as files_columns
from lakeload.ui import plan as plan_ui
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    FileFormatName,
    FilesInput,
    JobSpec,
    ParquetSpec,
    RejectLimit,
    TableSpec,
)
from lakeload_jobs.formats.parquet.log.records import Column
from lakeload_jobs.formats.parquet.log.table_log import OpenedLog
from lakeload_jobs.sources.paths.local_listing import file_state
from tests.unit.formats.test_plan import planned
from tests.unit.launch.specs import job_spec, table

NO_AWS: Any = None


def plan_of(
    path: Path,
    file_format: FileFormatName = "CSV",
    options: dict[str, str] | None = None,
    before: dict[str, str] | None = None,
    **settings: Any,
) -> TablePlan:
    """Return the plan of `orders`, which reads `path`, into a table with the columns `before`."""
    given = FilesInput(file_format, (str(path),), options or {})
    spec_table = replace(table("orders"), input=given)
    own = {name: value for name, value in settings.items() if hasattr(spec_table, name)}
    spec_table = replace(spec_table, **own)
    spec = job(path, spec_table)
    spec = replace(spec, **{name: value for name, value in settings.items() if name not in own})
    columns = tuple(Column(name, kind) for name, kind in (before or {}).items())
    column_map = {name: name for name in before or {} if not name.startswith("_supa")}
    opened = OpenedLog(1, None, first_run=not before, column_map=column_map, columns=columns)
    (plan,) = parquet_plan._with_columns(
        [planned((path,), file_format, options)],
        [ParquetState(spec_table, opened)],
        spec,
        NO_AWS,
        lambda done, total: None,
    )
    return plan


def job(folder: Path, *tables: TableSpec) -> JobSpec:
    return replace(job_spec(RunFolder(folder)), tables=tables)


def csv(folder: Path, text: str) -> Path:
    path = folder / "orders.csv"
    path.write_text(text, encoding="utf-8")
    return path


HEADER = {"header": "true"}


def test_a_new_table_of_csv_files_shows_columns_and_types(tmp_path: Path) -> None:
    plan = plan_of(csv(tmp_path, "id,Größe,at\n1,1.5,2024-02-29\n"), options=HEADER)

    assert plan.action == "LOAD"
    assert plan.schema is not None
    assert list(plan.schema.columns.items())[:3] == [
        ("id", "bigint"),
        ("Grosse", "double"),
        ("at", "date"),
    ]
    assert plan.schema.columns["_supa_id"] == "string"
    assert plan.schema.creates


def test_a_new_table_of_parquet_files_shows_columns_and_types(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "s": [{"a": 1}]}), path)

    found = plan_of(path, "PARQUET").schema
    as_json = plan_of(path, "PARQUET", nested="JSON").schema

    assert found is not None
    assert as_json is not None
    assert (found.columns["id"], found.columns["s"]) == ("int", "struct<a:bigint>")
    assert as_json.columns["s"] == "string"


def test_avro_files_show_columns_and_types(tmp_path: Path) -> None:
    kind = {"type": "long", "logicalType": "time-micros"}
    fields = [{"name": "id", "type": "int"}, {"name": "at", "type": kind}]
    path = tmp_path / "a.avro"
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [])

    found = plan_of(path, "AVRO").schema
    known = plan_of(path, "AVRO", before={"id": "bigint", "at": "bigint"}).schema

    assert found is not None
    assert known is not None
    assert list(found.columns.items())[:2] == [("id", "int"), ("at", "string")]
    assert list(known.columns.items())[:2] == [("id", "bigint"), ("at", "bigint")]
    assert plan_of(path, "AVRO", {"avroSchema": "{}"}).schema is None


@pytest.mark.parametrize(
    ("folders", "kind"),
    [
        (("n=1", "n=-20", "n=__HIVE_DEFAULT_PARTITION__"), "int"),
        (("n=1", "n=99999999999"), "bigint"),
        (("n=2024-02-29",), "date"),
        (("n=eu", "n=1"), "string"),
        (("n=a%20b",), "string"),
        (("n=1.5",), None),
        (("n=NaN",), None),
        (("n=2023-02-29",), None),
        (("n=1", "n=2024-02-29"), None),
    ],
)
def test_columns_of_folders_have_the_types_that_spark_gives_them(
    tmp_path: Path, folders: tuple[str, ...], kind: str | None
) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"id": [1]}), tmp_path / folder / "a.parquet")

    found = plan_of(tmp_path, "PARQUET").schema

    assert (found and list(found.columns.items())[:2]) == (kind and [("id", "bigint"), ("n", kind)])


def test_columns_that_change_are_named(tmp_path: Path) -> None:
    before = {"id": "bigint", "old": "string", "_supa_id": "string"}

    found = plan_of(csv(tmp_path, "id,new\n1,x\n"), options=HEADER, before=before).schema

    assert found is not None
    assert found.error is None
    assert "adds `new` as `string`" in found.changes
    assert "keeps `old`, which is null in new rows" in found.changes


def test_the_type_of_the_table_is_kept_as_a_load_keeps_it(tmp_path: Path) -> None:
    before = {"id": "int", "price": "double"}

    found = plan_of(csv(tmp_path, "id,price\n007,7\n"), options=HEADER, before=before).schema

    assert found is not None
    assert (found.columns["id"], found.columns["price"]) == ("int", "double")


@pytest.mark.parametrize("file_format", ["NDJSON", "PARQUET"])
def test_new_fields_of_structs_are_named(tmp_path: Path, file_format: Any) -> None:
    before = {"id": "bigint", "at": "struct<geo:struct<lat:double>,zip_code:bigint>"}
    value: dict[str, Any] = {"id": 1, "at": {"Zip Code": 7, "New One": [{"x": True}]}}
    path = tmp_path / "a"
    if file_format == "NDJSON":
        path.write_text(json.dumps(value) + "\n", encoding="utf-8")
    else:
        fields = [("Zip Code", pa.int32()), ("New One", pa.list_(pa.struct([("x", pa.bool_())])))]
        kinds: Any = pa.schema([("id", pa.int64()), ("at", pa.struct(fields))])
        pq.write_table(pa.Table.from_pylist([value], kinds), path)

    glue: dict[str, Any] = {
        "destination": replace(job(path).destination, parquet=ParquetSpec(update_glue_catalog=True))
    }

    found = plan_of(path, file_format, before=before, **glue).schema
    refused = plan_of(path, file_format, before=before, schema_changes="FAIL", **glue).schema

    assert found is not None
    assert found.error is None
    assert "adds the field `at.new_one`" in found.changes
    assert [change for change in found.changes if "zip" in change] == []
    assert refused is not None
    assert refused.error is not None
    assert "`at.new_one`" in refused.error.message


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("id,n\n99999999999,1\n", {}, "`id` was `int` and is `bigint`"),
        ("id,n\n1\n", {}, "line 2: it has 1 value, and 2 are expected"),
        ("id,n\n1,x\n", {"primary_key": ("key",)}, "names the column `key`"),
        ("id,n\n1,x\n", {"columns": ColumnsSpec(types={"n": "date"})}, "column `n`"),
        ("id,n\n1,x\n", {"schema_changes": "FAIL"}, "columns that the table does not: `n`"),
    ],
)
def test_plan_rejects_what_a_load_rejects(
    text: str, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    before = {"id": "int"}

    plan = plan_of(csv(tmp_path, text), options=HEADER, before=before, **settings)

    assert plan.action in ("BLOCKED", "FAIL")
    assert plan.schema is not None
    assert plan.schema.error is not None
    assert message in plan.schema.error.message


def test_parquet_files_whose_types_do_not_unite_are_refused(tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", "x")):
        pq.write_table(pa.table({"id": [value]}), tmp_path / f"{name}.parquet")

    plan = plan_of(tmp_path, "PARQUET")

    assert plan.action == "FAIL"


def test_a_large_input_is_read_in_part_and_the_plan_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_columns, "MAX_SCANNED", 1 << 16)
    lines = "".join(f"{number},{'x' * 90}\n" for number in range(20_000))

    plan = plan_of(csv(tmp_path, f"id,t\n{lines}"), options=HEADER)

    assert plan.schema is not None
    assert plan.schema.rows_read is not None
    assert plan.schema.rows_read < 20_000
    assert "columns, from the first" in shown(plan)


def test_orc_files_show_columns_and_types(tmp_path: Path) -> None:
    kinds: dict[str, Any] = {
        "id": pa.array([1], pa.int8()),
        "d": pa.array([None], pa.decimal128(9, 2)),
        "at": pa.array([None], pa.timestamp("us")),
        "instant": pa.array([None], pa.timestamp("us", "UTC")),
        "s": pa.array([{"x": ["a"]}]),
    }
    path = tmp_path / "a.orc"
    orc.write_table(pa.table(kinds), str(path))

    one = plan_of(path, "ORC").schema
    declared = plan_of(path, "ORC", columns=ColumnsSpec(types={"ID": "int"})).schema
    known = plan_of(path, "ORC", before={"at": "timestamp"}).schema

    assert one is not None
    assert list(one.columns.items())[:5] == [
        ("id", "tinyint"),
        ("d", "decimal(9,2)"),
        ("at", "timestamp_ntz"),
        ("instant", "timestamp"),
        ("s", "struct<x:array<string>>"),
    ]
    assert declared is not None
    assert declared.columns["id"] == "int"
    assert known is not None
    assert known.columns["at"] == "timestamp"


def test_orc_files_of_several_schemas_are_united_in_the_plan(tmp_path: Path) -> None:
    orc.write_table(pa.table({"id": pa.array([1], pa.int8())}), str(tmp_path / "a.orc"))
    orc.write_table(pa.table({"id": [1], "new": [1.5]}), str(tmp_path / "b.orc"))
    orc.write_table(pa.table({"id": [2], "s": [{"a": 1}]}), str(tmp_path / "c.orc"))

    found = plan_of(tmp_path, "ORC").schema

    assert found is not None
    assert list(found.columns.items())[:3] == [
        ("id", "bigint"),
        ("new", "double"),
        ("s", "struct<a:bigint>"),
    ]


def test_a_file_that_is_no_orc_is_refused_by_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    path.write_bytes(b"id\n1\n")

    found = plan_of(path, "ORC").schema

    assert found is not None
    assert found.error is not None
    assert "it is not an ORC file" in found.error.message


def test_plan_names_the_value_that_makes_numbers_text(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n}.5\n" for n in range(20))
    path = csv(tmp_path, f"id,n\n{rows}20,NA\n21,0.12345678901234567890\n")

    plan = plan_of(path, options={**HEADER, "null_values": "NA"})

    assert plan.schema is not None
    assert plan.schema.columns["n"] == "string"
    said = (
        "column `n` is text: most of its values are numbers, and `0.12345678901234567890` in "
        f"`{path}`, line 23, has more digits than a `double`; `columns.types: {{n: double}}` "
        "rounds it"
    )
    assert said in plan.schema.warnings


def test_a_large_json_object_shows_no_columns(tmp_path: Path) -> None:
    """Its types take as long as the load."""
    path = tmp_path / "a.json"
    path.write_text('{"a": {' + ",".join(f'"k{n}": {n}' for n in range(20_000)) + "}}")
    small = tmp_path / "b.json"
    small.write_text('{"a": {"k": 1}}')

    assert plan_of(path, "JSON").schema is None
    found = plan_of(small, "JSON").schema
    assert found is not None
    assert found.columns["a"] == "struct<k:bigint>"


def shown(plan: TablePlan) -> str:
    out, err = (Console(file=io.StringIO(), width=80, markup=False) for _ in "ab")
    plan_ui.show_text([plan], out, err)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_a_sample_shows_three_rows_of_the_source(tmp_path: Path) -> None:
    path = csv(tmp_path, "id,name\n1,anna\n2,\n3,carl\n4,dora\n")
    given = FilesInput("CSV", (str(path),), HEADER)
    tables = [replace(table("orders"), input=given)]

    (plan,) = with_samples(
        [planned((path,), options=HEADER)], tables, job(path).destination, NO_AWS
    )

    assert plan.sample == (
        {"id": "1", "name": "anna"},
        {"id": "2", "name": None},
        {"id": "3", "name": "carl"},
    )
    assert "name    anna   null   carl" in shown(plan)


def test_a_sample_has_the_columns_of_folders_as_a_load_has(tmp_path: Path) -> None:
    folder = tmp_path / "name=z%3A" / "n=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir(parents=True)
    csv(folder, "id,name\n1,anna\n")
    given = FilesInput("CSV", (str(tmp_path),), HEADER)

    (plan,) = with_samples(
        [planned((tmp_path,), options=HEADER)],
        [replace(table("orders"), input=given)],
        job(tmp_path).destination,
        NO_AWS,
    )

    assert plan.sample == ({"id": "1", "name": "z:", "n": None},)


@pytest.mark.parametrize("on_bad_value", ["NULL", "QUARANTINE"])
def test_plan_bad_value_handling_adds_no_column(tmp_path: Path, on_bad_value: str) -> None:
    path = csv(tmp_path, "id,n\n1,2\n")
    columns = ColumnsSpec(types={"n": "int"})

    found = plan_of(path, options=HEADER, columns=columns, on_bad_value=on_bad_value).schema

    assert found is not None
    assert found.error is None
    assert [name for name in found.columns if not name.startswith("_supa")] == ["id", "n"]


def test_plan_more_broken_records_than_allowed_is_rejected(tmp_path: Path) -> None:
    path = csv(tmp_path, "id,n\n1,2\n3\n")
    given: dict[str, Any] = {"options": HEADER, "on_bad_value": "QUARANTINE"}

    refused = plan_of(path, **given).schema
    allowed = plan_of(path, **given, max_rejected=RejectLimit(rows=1)).schema

    assert refused is not None
    assert refused.error is not None
    assert "`max_rejected` is 0.1 %" in refused.error.message
    assert allowed is not None
    assert allowed.error is None


def test_plan_file_that_a_load_would_reject_is_a_warning(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), good)
    bad.write_bytes(good.read_bytes()[:-9])
    with pytest.MonkeyPatch.context() as patch:
        states = tuple(file_state(str(path)) for path in (good, bad))
        patch.setattr(files_columns, "list_files", lambda *_: states)
        failed = plan_of(good, "PARQUET").schema
        plan = plan_of(good, "PARQUET", on_bad_value="QUARANTINE")

    assert failed is not None
    assert failed.error is not None
    assert plan.schema is not None
    assert plan.schema.error is None
    assert plan.schema.warnings[-1].startswith(f"`{bad}` was set aside as a whole: ")


def test_the_plan_names_the_side_table_of_a_table_that_sets_records_aside() -> None:
    plans = [planned(), replace(planned(), table="users", target="shop.users")]
    own = replace(table("orders"), on_bad_value="QUARANTINE", max_rejected=RejectLimit(rows=5))
    spec = job(Path("/runs"), own, table("users"))

    def found(spec: JobSpec) -> list[tuple[str | None, str | None]]:
        return [(one.side_table, one.max_rejected) for one in with_side_tables(plans, spec)]

    assert found(spec) == [("shop.orders_rejected", "5"), (None, None)]
    assert found(replace(spec, on_bad_value="QUARANTINE"))[1] == ("shop.users_rejected", "0.1 %")
