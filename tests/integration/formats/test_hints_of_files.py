"""Hints about files, followed literally: the changed pipeline loads their rows."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.sources.databases.bookmark import CursorState
from lakeload_jobs.sources.files import selection
from tests.corpus.variant import encode, plain_type, with_note
from tests.hints import follow, follows
from tests.integration.formats.followed import Case, Settings, Shop, follow_all, follow_one
from tests.integration.formats.test_followed_hints import parquet
from tests.integration.jobs.conftest import Job

CSV = {"format": "CSV", "options": {"header": True}}
JSON = {"format": "JSON"}
NDJSON = {"format": "NDJSON"}


def _zip(**members: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return packed.getvalue()


def _unpack(table: Settings, folder: Path) -> None:
    path = folder / table["path"]
    with zipfile.ZipFile(path) as archive:
        archive.extractall(path.with_suffix(".d"))
    table["path"] = f"{path.with_suffix('.d')}/*"


def _unpack_once(table: Settings, folder: Path) -> None:
    path = Path(table["path"])
    path.with_suffix(".gz").write_bytes(gzip.decompress(path.read_bytes()))
    table["path"] = str(path.with_suffix(".gz"))


def _nanoseconds() -> pa.Table:
    return pa.table({"id": [1], "a": pa.array([1], pa.timestamp("ns"))})


def _avro(values: Sequence[Any], kind: Any = "long", **notes: str) -> bytes:
    """Return a file of the columns `id` and `v`."""
    types = {"id": "long", "v": kind}
    fields = [{"name": name, "type": own} for name, own in types.items()]
    sink = io.BytesIO()
    rows = [{"id": place, "v": value} for place, value in enumerate(values)]
    schema = {"type": "record", "name": "r", "fields": fields}
    fastavro.writer(sink, schema, rows, metadata=notes)
    return sink.getvalue()


def _orc(**columns: Any) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _exclude(*names: str) -> Any:
    def change(table: Settings, folder: Path) -> None:
        table["columns"] = {"exclude": list(names)}

    return change


def _only(name: str) -> Any:
    """Name one file of the folder."""

    def change(table: Settings, folder: Path) -> None:
        table["path"] = f"{table['path'].removesuffix('/*')}/{name}"

    return change


def _options(**options: Any) -> Any:
    def change(table: Settings, folder: Path) -> None:
        table["options"] = {**table.get("options", {}), **options}

    return change


def _cast(kind: str, column: str = "a") -> Any:
    def change(table: Settings, folder: Path) -> None:
        table["columns"] = {"types": {column: kind}}

    return change


TEXT = {
    "text in another encoding": Case(
        "set the reader option `encoding`", b"id,a\n1,caf\xe9\n", table=CSV,
        values={"encoding": "windows-1252"},
    ),
    "a header in another encoding": Case(
        "set the reader option `encoding`", b"id,caf\xe9\n1,2\n", table=CSV,
        values={"encoding": "windows-1252"},
    ),
    "wide text without a mark": Case(
        "set the reader option `encoding: ", "id,a\n1,x\n".encode("utf-16-le"), table=CSV
    ),
    "a separator line of Excel": Case(
        "set the reader options `separator: \";\"` and `skip_rows: 1`", "sep=;\nid;a\n1;x\n",
        table=CSV,
    ),
    "records that end with both": Case(
        "set the reader option `line_break: '\\r\\n'`", b"id,a\r\n1,x\r\n",
        table={**CSV, "options": {"header": True, "backslash_escapes": True}},
    ),
    "a header with an open quote": Case(
        "set the reader options `quote` and `separator`, or `header: false`",
        'id,"a"x\n1,y\n', table=CSV, by_hand=_options(quote=""),
    ),
    "a record with an open quote": Case(
        "set the reader option `quote: ''`", 'id,a\n1,"x\n', table=CSV
    ),
    "a record with too many values": Case(
        "set `on_bad_value: QUARANTINE`", "id,a\n1,x\n2,y,z\n", table={**CSV, "max_rejected": 1}
    ),
    "files of another separator": Case(
        "set the reader option `separator: ';'`", "id;a\n2;y\n", "id,a\n1,x\n", table=CSV
    ),
    "files of another separator, with too few values": Case(
        "set the reader options `separator` and `quote`", "id;a;b\n1,5;x;y\n",
        table=CSV, by_hand=_options(separator=";"),
    ),
    "files without the header": Case(
        "`header: false`", "2,y\n", "1,x\n", table={"format": "CSV"}, then=CSV, rows=1,
    ),
    "files that lack the header": Case(
        "`header: false` and `columns: {rename: {_c0: id, _c1: a}}`", "2,y\n", "id,a\n1,x\n",
        table=CSV, values={},
    ),
    "a value of another type": Case(
        "`columns.types`", "id,a\n1,x\n", table={**CSV, "columns": {"types": {"a": "int"}}},
        by_hand=_cast("string"),
    ),
    "a value that becomes null": Case(
        "set `on_bad_value: 'NULL'`", "id,a\n1,x\n",
        table={**CSV, "columns": {"types": {"a": "int"}}},
    ),
    "a value of another type than the table": Case(
        "set `on_type_conflict: NEW_COLUMN`", "id,a\n2,x\n", "id,a\n1,7\n",
        table={**CSV, "on_type_conflict": "FAIL"},
    ),
    "records that are set aside, too many": Case(
        "raise `max_rejected`", "id,a\n1,x\n2,y,z\n",
        table={**CSV, "on_bad_value": "QUARANTINE", "max_rejected": 0}, values={"max_rejected": 5},
    ),
    "two files in one zip file": Case(
        "use the files or their folder as `path`", _zip(a="id\n1\n", b="id\n2\n"), table=CSV,
        by_hand=_unpack, rows=2,
    ),
    "a file that is packed twice": Case(
        "use what is then there as `path`", gzip.compress(gzip.compress(b"id\n1\n")), table=CSV,
        by_hand=_unpack_once,
    ),
    "records of nothing": Case(
        "check `format`, and whether all records are empty", "{}\n", table=NDJSON,
        by_hand=lambda table, folder: Path(table["path"]).write_text('{"id": 1}'),
    ),
    "a file of another table": Case(
        "load the file into a table of its own", '{"nr": 2}\n', '{"id": 1}\n', table=NDJSON,
        by_hand=lambda table, folder: table.update(table=f"{table['table']}, beside", name="own"),
    ),
    "a folder of another type": Case(
        "give the column another type with `columns.types`", {"n=x/a.csv": "id\n1\n"},
        table={**CSV, "columns": {"types": {"n": "int"}}}, by_hand=_cast("string", "n"),
    ),
    "a file beside folders": Case(
        "`recursiveFileLookup: true`", {"n=1/a.csv": "id\n1\n", "b.csv": "id\n2\n"}, table=CSV,
        rows=2,
    ),
    "another folder than the one with folders": Case(
        "load it as a separate table", {"a/n=1/a.csv": "id\n1\n", "b.csv": "id\n2\n"}, table=CSV,
        path="/*", by_hand=_only("a"), beside="b.csv",
    ),
}  # fmt: skip


TYPED = {
    "a value of another type in Parquet": Case(
        "set `on_bad_value: 'NULL'`", [{"id": 1, "a": "x"}],
        table={"columns": {"types": {"a": "int"}}},
    ),
    "a whole number that is no double": Case(
        "set `on_bad_value: 'NULL'`",
        {"a": [{"id": 1, "v": 2**53 + 1}], "b": [{"id": 2, "v": 0.5}]}, rows=2,
    ),
    "digits that are lost": Case(
        "on_loss: TRUNCATE", _nanoseconds(), table={"columns": {"types": {"a": "timestamp"}}},
        by_hand=_options(on_loss="TRUNCATE"),
    ),
    "a key that is left out": Case(
        "remove it from `exclude`", [{"id": 1, "a": 1}], table={"primary_key": ["id"]},
        then={"columns": {"exclude": ["ID"]}},
        by_hand=lambda table, folder: table.pop("columns"),
    ),
    "a filter of a column that is not there": Case(
        "did you mean `amount`?", [{"id": 1, "amount": 2}], then={"bloom_filters": ["amuont"]},
        by_hand=lambda table, folder: table.update(bloom_filters=["amount"]),
    ),
    "a filter of a boolean": Case(
        "remove it from `bloom_filters`", [{"id": 1, "a": True}],
        then={"bloom_filters": ["id", "a"]},
        by_hand=lambda table, folder: table["bloom_filters"].remove("a"),
    ),
    "numbers as instants": Case(
        "set `timestamp(ms)`", [{"id": 1, "a": 5}],
        table={"columns": {"types": {"a": "timestamp"}}},
        by_hand=_cast("timestamp(ms)"),
    ),
    "another name of a column that is loaded": Case(
        "remove the `rename`", [{"id": 2}], [{"id": 1}], then={"columns": {"rename": {"id": "b"}}},
        by_hand=lambda table, folder: table.pop("columns"),
    ),
    "the same columns under other names": Case(
        "name them in `columns.rename`", [{"nr": 2}], [{"id": 1}],
        by_hand=lambda table, folder: table.update(columns={"rename": {"nr": "id"}}),
    ),
    "text as Parquet": Case(
        "check the file and `format`", "id\n1\n", by_hand=lambda table, folder: table.update(CSV)
    ),
    "text as ORC": Case(
        "check the file and `format`", "id\n1\n", table={"format": "ORC"},
        by_hand=lambda table, folder: table.update(CSV),
    ),
    "text as Avro": Case(
        "check the file and `format`", "id\n1\n", table={"format": "AVRO"},
        by_hand=lambda table, folder: table.update(CSV),
    ),
    "text as Avro that Spark reads": Case(
        "check the file and `format`", "id\n1\n",
        table={"format": "AVRO", "options": {"positionalFieldMatching": False}},
        by_hand=lambda table, folder: table.update(CSV),
    ),
    "two types in Avro that Spark reads": Case(
        "leave the column out with `columns.exclude`",
        {"a.avro": _avro([1]), "b.avro": _avro(["x"], "string")}, rows=2,
        table={"format": "AVRO", "options": {"positionalFieldMatching": False}},
        by_hand=_exclude("v"),
    ),
    "two types in two tables of Avro that Spark reads": Case(
        "load the files as two tables",
        {"a.avro": _avro([1]), "b.avro": _avro(["x"], "string")},
        table={"format": "AVRO", "options": {"positionalFieldMatching": False}},
        by_hand=_only("a.avro"), beside="b.avro",
    ),
    "two columns of one name": Case(
        "leave it out with `columns.exclude`",
        pa.Table.from_arrays([pa.array([1])] * 3, ["id", "a", "a"]), by_hand=_exclude("a"),
    ),
    "two types": Case(
        "leave the column out with `columns.exclude`",
        {"a": [{"id": 1, "v": 1}], "b": [{"id": 2, "v": "x"}]}, by_hand=_exclude("v"), rows=2,
    ),
    "two types in two tables": Case(
        "load the files as two tables",
        {"a": [{"id": 1, "v": 1}], "b": [{"id": 2, "v": "x"}]}, by_hand=_only("a"), beside="b",
    ),
    "a file of Parquet beside folders": Case(
        "`basePath`", {"n=1/a": [{"id": 1}], "b": [{"id": 2}]}, rows=2,
        by_hand=lambda table, folder: table.update(options={"basePath": table["path"]}),
    ),
    "a type that only Spark reads, beside one that it does not": Case(
        "leave the column out with `columns.exclude`",
        pa.table({"id": [1], "v": pa.array([1], pa.float16())}),
        table={"options": {"datetimeRebaseMode": "LEGACY"}}, by_hand=_exclude("v"),
    ),
    "days of the Julian calendar in Avro": Case(
        "set the reader option `datetimeRebaseMode: LEGACY`",
        _avro([-150_000], {"type": "int", "logicalType": "date"},
              **{"org.apache.spark.legacyDateTime": ""}),
        table={"format": "AVRO"},
    ),
    "a folder of which only Spark knows the type": Case(
        "set the reader option `recursiveFileLookup: true`", {"n=1.5/a.orc": _orc(id=[1])},
        table={"format": "ORC"},
    ),
    "files that Spark does not list": Case(
        "the reader options that choose files (`pathGlobFilter`",
        {"a?.parquet": [{"id": 1}]},
        table={"options": {"datetimeRebaseMode": "LEGACY", "pathGlobFilter": "a[?].parquet"}},
        by_hand=_options(pathGlobFilter="a*"),
    ),
}  # fmt: skip


@pytest.fixture
def shop(job: Job) -> Shop:
    """A pipeline into a lake of Parquet files."""
    return parquet(job)


def test_hints_about_text_files_are_followed_and_load(shop: Shop) -> None:
    follow_all(__file__, shop, TEXT)


def test_hints_about_columns_of_files_are_followed_and_load(shop: Shop) -> None:
    follow_all(__file__, shop, TYPED)


def test_hint_about_a_file_that_spark_cannot_read_is_followed_and_loads(shop: Shop) -> None:
    shop.settings["source"] = {"type": "SPARK", "format": "parquet"}
    path = str(shop.write("text.parquet", "id\n1\n"))
    table: Settings = {"table": "text", "path": path}
    follow_one(__file__, "a file that Spark cannot read", shop, "`format`", table, format="text")


def test_hints_about_files_that_have_changed_are_followed_and_load(shop: Shop) -> None:
    path = shop.write("orders.csv", "id\n1\n")
    orders: Settings = {"table": "orders", "path": str(path), **CSV}
    shop.settings["source"] = {
        "type": "FILES", "format": "CSV", "incremental": True, "on_changed_file": "FAIL",
    }  # fmt: skip
    assert shop.load([orders])["orders"].error is None
    path.write_text("id\n1\n2\n", encoding="utf-8")

    follow_one(__file__, "a file that has changed", shop, "set `on_changed_file: LOAD`", orders)


def test_hints_about_rejected_records_of_changed_files_are_followed_and_load(shop: Shop) -> None:
    files = {"type": "FILES", "format": "CSV", "incremental": True}
    shop.settings |= {"source": files, "on_bad_value": "QUARANTINE", "max_rejected": "100%"}
    typed: Settings = {**CSV, "columns": {"types": {"n": "int"}}}
    orders, stocks = (
        {"table": name, "path": f"{name}.csv", **typed} for name in ("orders", "stocks")
    )
    for table in (orders, stocks):
        shop.write(table["path"], "id,n\n1,5\n2,x\n")
        assert (result := shop.load([table])[table["table"]]).rejected == 1, result
    job = shop.job
    for table in (orders, stocks):
        shop.write(table["path"], "id,n\n1,5\n2,x\n3,7\n")

    begins = "set `on_changed_file: LOAD`"
    follow_one(__file__, "a file with rejects that has changed", shop, begins, orders)
    [refused] = shop.load([stocks]).values()
    assert refused.error is not None
    clause, _, _ = str(refused.error.hint).partition(";")
    assert clause.endswith(
        "run `lakeload sync --retry-rejected JOB` and set `on_changed_file: SKIP`"
    )
    changed = follow(shop.document([stocks]), clause, "tables[0].table")
    del changed["tables"]
    as_null = {**stocks, "on_bad_value": "NULL"}
    [retried] = shop.load([as_null], retry=job, **changed).values()
    [skipped] = shop.load([stocks], **changed).values()

    assert (retried.error, retried.rows) == (None, 1)
    assert (skipped.error, skipped.rows) == (None, 0)


def test_a_hint_about_the_format_of_rejected_records_is_followed_and_loads(shop: Shop) -> None:
    nanos = pa.table({"id": [1, 2], "a": pa.array([1, 1000], pa.timestamp("ns"))})
    path = str(shop.write("orders.parquet", nanos))
    orders: Settings = {"table": "orders", "path": path, "on_bad_value": "QUARANTINE"}
    orders["max_rejected"] = "100%"
    assert (result := shop.load([orders])["orders"]).rejected == 1, result
    job = shop.job

    [refused] = shop.load([{**orders, **CSV}], retry=job).values()
    assert refused.error is not None
    follows(__file__, "rejected records of another format", refused.error.hint or "")
    again = {**orders, "format": "PARQUET", "options": {"on_loss": "TRUNCATE"}}
    [loaded] = shop.load([again], retry=job).values()

    assert (loaded.error, loaded.rows) == (None, 1)


def test_hints_about_a_variant_of_rejected_records_are_followed_and_load(shop: Shop) -> None:
    at = pa.array([1, 1000], pa.timestamp("ns"))
    values = pa.array([encode({"x": 1})] * 2, plain_type())
    table = with_note(pa.table({"id": [1, 2], "at": at, "v": values}), v="variant")
    path = str(shop.write("orders.parquet", table))
    asks: dict[str, Settings] = {
        "the VARIANT of a condition": {"where": "v IS NOT NULL"},
        "the VARIANT of a cast": {"columns": {"types": {"v": "string"}}},
    }
    aside: Settings = {"path": path, "on_bad_value": "QUARANTINE", "max_rejected": "100%"}
    tables = [{"table": name, **aside} for name in asks]
    results = shop.load(tables)
    assert all(result.rejected == 1 for result in results.values()), results
    job, cut = shop.job, {"options": {"on_loss": "TRUNCATE"}}

    refused = shop.load([{**one, **asks[one["table"]], **cut} for one in tables], retry=job)
    for name, own in refused.items():
        assert own.error is not None, own
        follows(__file__, name, own.error.hint or "")
    loaded = shop.load([{**one, **cut} for one in tables], retry=job)

    assert [(own.error, own.rows) for own in loaded.values()] == [(None, 1)] * 2


def test_a_hint_about_the_reader_is_followed_and_loads(shop: Shop) -> None:
    path = shop.write("orders.parquet", pa.table({"id": [1], "a": pa.array([1], pa.float16())}))
    shop.settings["spark"] = {"reader": "JVM"}
    orders: Settings = {"table": "orders", "path": str(path)}

    begins = "set `spark: {reader: AUTO}`"
    follow_one(__file__, "a type that Spark does not read", shop, begins, orders)


def test_a_hint_about_some_rows_is_followed_and_loads(shop: Shop) -> None:
    path = shop.write("orders.csv", "id\n1\n2\n")
    orders: Settings = {"table": "orders", "path": str(path), **CSV}
    shop.settings["source"] = {"type": "FILES", "format": "CSV", "incremental": True}
    with pytest.raises(InvalidInput) as refused:
        shop.load([orders], limit=1)
    hint = refused.value.hint or ""
    follows(__file__, "some rows of files that are loaded once", hint)
    values = {"name": "other", "namespace": "elsewhere"}
    changed = follow(shop.document([orders]), hint, "source.incremental", **values)
    del changed["tables"]
    changed["source"] = {"type": "FILES", "format": "CSV"}

    [some] = shop.load([orders], limit=1, **changed).values()
    [loaded] = shop.load([orders]).values()

    assert (some.error, some.rows) == (None, 1)
    assert (loaded.error, loaded.rows) == (None, 2)


def test_a_hint_about_the_state_of_another_source_is_followed_and_loads(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shop.write("orders.csv", "id\n1\n2\n")
    orders: Settings = {"table": "orders", "path": str(path), **CSV}
    shop.settings["source"] = {"type": "FILES", "format": "CSV", "incremental": True}
    state = CursorState("id", "INTEGER", "2")
    with monkeypatch.context() as patch:
        patch.setattr(selection, "state_json", lambda _: state.to_json())
        assert (result := shop.load([orders])["orders"]).error is None, result

    [refused] = shop.load([orders]).values()
    assert refused.error is not None
    hint = refused.error.hint or ""
    follows(__file__, "the state of a database", hint)
    shop.settings = follow(shop.document([]), hint, "tables", name="other")

    begins = "set `table_handling: APPEND`"
    follow_one(__file__, "then the rows of another pipeline", shop, begins, orders)
