"""Data files that tasks write: the same metadata as Spark's, the same rows to every reader."""

from __future__ import annotations

import json
import math
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.load.tables import jvm, load
from lakeload_jobs.formats.iceberg.rules.file_io import FILE_IO_PREFIXES
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.iceberg.twin_tables import METRICS, extreme_rows
from tests.servers.rest_catalog import BUCKET

SPARKS = {"write.parquet.page-row-limit": "20000"}
"""Iceberg's default, which tasks do not know: with it Spark writes."""

STRING = "java.lang.String"


@pytest.mark.parametrize(
    "name",
    ["s3.S3FileIOProperties", "AwsProperties", "AwsClientProperties", "HttpClientProperties"],
)
def test_each_property_of_icebergs_file_io_is_one_that_decides(
    spark: SparkSession, name: str
) -> None:
    """A new release may have names that begin in another way."""
    java: Any = jvm(spark)
    constants = java.java.lang.Class.forName(f"org.apache.iceberg.aws.{name}").getFields()
    found = [str(one.get(None)) for one in constants if str(one.getType().getName()) == STRING]
    names = {one for one in found if "." in one and "/" not in one}
    others = ("glue.", "dynamodb.", "rest.", "iceberg.", "org.apache.", "credentials.uri")

    assert names
    assert {one for one in names if not one.startswith((*FILE_IO_PREFIXES, *others))} == set()


def described(loads: Loads, name: str) -> list[dict[str, Any]]:
    """Return what Iceberg keeps of each file of the current snapshot, without sizes and paths."""
    java: Any = load(loads.spark, loads.schema, name)
    iceberg = jvm(loads.spark).org.apache.iceberg
    found = []
    changes = iceberg.SnapshotChanges.builderFor(java).snapshot(java.currentSnapshot()).build()
    for file in changes.addedDataFiles():
        one = json.loads(str(iceberg.ContentFileParser.toJson(file, java.spec())))
        for part in ("value-counts", "null-value-counts", "nan-value-counts"):
            one[part] = _map(one.get(part))
        for part in ("lower-bounds", "upper-bounds"):
            one[part] = _map(one.get(part))
        one["column-sizes"] = sorted(one.pop("column-sizes")["keys"])
        del one["file-path"], one["file-size-in-bytes"]
        found.append(one)
    return found


def _map(entries: Any) -> dict[int, Any]:
    return dict(zip(entries["keys"], entries["values"], strict=True)) if entries else {}


@pytest.mark.parametrize("with_map", [False, True])
@pytest.mark.parametrize("properties", [{}, METRICS], ids=["defaults", "metrics"])
def test_metadata_of_a_file_is_that_of_sparks_own(
    loads: Loads, tmp_path: Path, properties: dict[str, str], with_map: bool
) -> None:
    rows = extreme_rows()
    if with_map:
        pairs = pa.array(
            [[("a", 1.5)], [], None, [("b", None)]], pa.map_(pa.string(), pa.float64())
        )
        rows = rows.append_column("pairs", pairs)
    path = tmp_path / "values.parquet"
    pq.write_table(rows, path)
    own = loads.table(str(path), name="own", primary_key=("id",), table_properties=properties)
    sparks = loads.table(
        str(path), name="sparks", primary_key=("id",), table_properties={**properties, **SPARKS}
    )

    by_tasks = loads.loaded(own, nested="NATIVE", job_id="job")
    by_spark = loads.loaded(sparks, nested="NATIVE", job_id="job")

    assert (by_tasks.writer, by_tasks.index) == ("direct", "dense")
    assert by_spark.writer == "spark"
    assert described(loads, "own") == described(loads, "sparks")
    assert _footer(loads, "own") == _footer(loads, "sparks")
    read, expected = (loads.read(name).scan().to_arrow() for name in ("own", "sparks"))
    assert repr(read.to_pylist()) == repr(expected.to_pylist())
    assert _by_duckdb(loads, "own", tmp_path) == _by_duckdb(loads, "sparks", tmp_path)


@pytest.mark.parametrize("filters", [(), ("id", "text", "money")], ids=["arro3", "pyarrow"])
def test_files_have_page_indexes_and_the_bloom_filters_of_the_table(
    loads: Loads, tmp_path: Path, filters: tuple[str, ...]
) -> None:
    path = tmp_path / "values.parquet"
    pq.write_table(extreme_rows(), path)
    enabled = {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in filters}
    table = loads.table(str(path), table_properties=enabled)
    assert loads.loaded(table, nested="NATIVE").writer == "direct"
    file = tmp_path / "loaded.parquet"
    file.write_bytes(_content(loads, "orders"))

    # Java's own reader, which neither of the two encoders is.
    java: Any = jvm(loads.spark)
    place = java.org.apache.parquet.io.LocalInputFile(java.java.io.File(str(file)).toPath())
    without = set()
    with closing(java.org.apache.parquet.hadoop.ParquetFileReader.open(place)) as reader:
        (block,) = reader.getFooter().getBlocks()
        for chunk in block.getColumns():
            assert reader.readOffsetIndex(chunk).getPageCount() == 1
            if reader.readColumnIndex(chunk) is None:
                without.add(str(chunk.getPath().toDotString()))
    # There are no bounds of nothing but NaN.
    assert without == {"nan"}

    values = {"id": ("4", "5"), "text": ("'東🎁'", "'東'"), "money": ("0.01", "0.02")}
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT path_in_schema FROM parquet_metadata(?) WHERE bloom_filter_length > 0",
            [str(file)],
        ).fetchall()
        assert {name for (name,) in found} == set(filters)
        for name in filters:
            excluded = [
                connection.execute(
                    f"SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, ?, {value})",
                    [str(file), name],
                ).fetchall()
                for value in values[name]
            ]
            assert excluded == [[(False,)], [(True,)]], name


def _content(loads: Loads, name: str) -> bytes:
    """Return the only data file of a table."""
    table = loads.read(name)
    (task,) = table.scan().plan_files()
    with table.io.new_input(task.file.file_path).open() as stream:
        return stream.read()


def _by_duckdb(loads: Loads, name: str, folder: Path) -> list[str]:
    """Return the rows of the only data file of a table and what DuckDB makes of its metadata."""
    file = folder / f"{name}.duckdb.parquet"
    file.write_bytes(_content(loads, name))
    place = f"'{file}'"
    statements = (
        f"SELECT * EXCLUDE (_supa_job_id, _supa_synced) FROM {place} ORDER BY id",
        f'SELECT count(*), min("double"), max("double"), min("text"), max("at") FROM {place}',
        f"SELECT id FROM {place} WHERE \"text\" > 'é' AND \"day\" < DATE '1970-01-02' ORDER BY id",
        f"SELECT path_in_schema, type, stats_null_count FROM parquet_metadata({place}) ORDER BY 1",
    )
    with duckdb.connect() as connection:
        return [repr(connection.sql(one).to_arrow_table().to_pylist()) for one in statements]


def _footer(loads: Loads, name: str) -> tuple[Any, ...]:
    """Return types and field ids of a file, and the ids of the schema of Iceberg that it carries.

    Not which columns are required: Spark writes that of the rows, tasks write that of the table.
    """
    found = pq.ParquetFile(pa.BufferReader(_content(loads, name)))
    metadata = found.metadata.metadata or {}
    lines = [line.strip() for line in str(found.schema).splitlines()]
    # The outermost group has a name of the encoder's own.
    ids = [line.partition(" ")[2] for line in lines if "field_id" in line][1:]
    fields = json.loads(metadata[b"iceberg.schema"])["fields"]
    return ids, [(field["id"], field["name"], field["type"]) for field in fields]


def test_a_later_load_may_lack_columns_and_have_narrower_ones(loads: Loads) -> None:
    wide: dict[str, pa.DataType] = {
        "Id": pa.int64(),
        "price": pa.decimal128(12, 2),
        "x": pa.float64(),
    }
    narrow: dict[str, pa.DataType] = {"id": pa.int32(), "price": pa.decimal128(9, 2)}
    first = loads.file([{"Id": 1, "price": Decimal("1.50"), "x": 0.5}], pa.schema(wide))
    second = loads.file([{"id": 2, "price": Decimal("2.50")}], pa.schema(narrow))

    loads.loaded(loads.table(first))
    result = loads.loaded(loads.table(second))

    assert result.writer == "direct"
    assert [tuple(row.values()) for row in loads.rows(order="Id")] == [
        (1, Decimal("1.50"), 0.5),
        (2, Decimal("2.50"), None),
    ]


@pytest.mark.parametrize(
    ("version", "mode", "partitions"),
    [
        (2, "merge-on-read", ()),
        (3, "merge-on-read", (PartitionField("bucket", "id", 3),)),
        (3, "copy-on-write", (PartitionField("bucket", "id", 3),)),
    ],
)
def test_files_of_both_writers_stay_one_table(
    loads: Loads, version: Literal[2, 3], mode: str, partitions: tuple[PartitionField, ...]
) -> None:
    iceberg = replace(loads.destination.iceberg, format_version=version)
    loads.destination = replace(loads.destination, iceberg=iceberg)
    properties = {
        "write.target-file-size-bytes": "1000",
        **{f"write.{change}.mode": mode for change in ("delete", "update", "merge")},
    }
    rows = [{"id": n, "name": f"n{n}"} for n in range(100)]
    own = loads.table(loads.file(rows[:60]), table_properties=properties, partition_by=partitions)
    assert loads.loaded(own).writer == "direct"
    name = f"lake.`{loads.schema}`.`orders`"
    loads.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.parquet.page-row-limit'='9999')")
    sparks = loads.loaded(loads.table(loads.file(rows[60:]), partition_by=partitions))
    assert sparks.writer == "spark"
    loads.spark.range(50, 70).createOrReplaceTempView("changed")

    loads.spark.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    loads.spark.sql(f"UPDATE {name} SET name = 'u' WHERE id % 10 = 4")
    loads.spark.sql(
        f"MERGE INTO {name} t USING changed s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'm'"
    )
    loads.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{loads.schema}.orders', "
        "options => map('rewrite-all', 'true'))"
    )

    def name_of(number: int) -> str:
        return "m" if 50 <= number < 70 else "u" if number % 10 == 4 else f"n{number}"

    expected = [(n, name_of(n)) for n in range(100) if n % 10 != 3]
    # pyiceberg reads no deletion vectors of version 3.
    found = loads.spark.table(name).select("id", "name").orderBy("id").collect()
    assert [tuple(row) for row in found] == expected
    if version == 3:
        ids = loads.spark.sql(f"SELECT count(DISTINCT _row_id), count(1) FROM {name}").collect()
        assert tuple(ids[0]) == (90, 90)
    if version == 2:
        assert [tuple(row.values()) for row in loads.rows()] == expected


def test_split_offsets_are_those_of_the_row_groups(loads: Loads, tmp_path: Path) -> None:
    """Spark cuts row groups elsewhere; all else that Iceberg keeps of the files is equal."""
    path = tmp_path / "values.parquet"
    pq.write_table(pa.concat_tables([extreme_rows()] * 700), path)
    properties = {"write.parquet.row-group-size-bytes": "1000"}
    groups, files = [], []
    for name, more in (("own", {}), ("sparks", SPARKS)):
        table = loads.table(str(path), name=name, table_properties={**properties, **more})
        assert loads.loaded(table, nested="NATIVE", job_id="job").writer == WRITERS[name]
        (file,) = described(loads, name)
        metadata = pq.ParquetFile(pa.BufferReader(_content(loads, name))).metadata
        starts = [
            min(start for start in (first.dictionary_page_offset, first.data_page_offset) if start)
            for first in (metadata.row_group(n).column(0) for n in range(metadata.num_row_groups))
        ]
        assert file.pop("split-offsets") == starts
        groups.append(len(starts))
        files.append(file)

    assert files[0] == files[1]
    assert groups[0] == 3
    assert groups[1] > 1


WRITERS = {"own": "direct", "sparks": "spark"}
PARTS = 20


def _prunedextreme_rows() -> pa.Table:
    """Rows of twenty partitions, each with values of its own or with special ones."""
    rows = []
    for part in range(PARTS):
        for number in range(3):
            n = part * 10 + number
            day = date(2026, 1, 1) + timedelta(days=n)
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=n, microseconds=n)
            # Truncated bounds begin alike.
            text = f"{'é' * 15}{part // 5}{n:03d}"
            rows.append(
                {
                    "id": n,
                    "part": part,
                    "small": None if part % 4 == 0 else -n,
                    "money": Decimal(n) / 100 - 1,
                    "wide": Decimal(n) * 10**20,
                    "float": math.nan if part < 5 else n / 2,
                    "double": [-0.0, 0.0][part % 2] if part < 4 else math.nan if number else n,
                    "nan": math.nan if part == 7 else None,
                    "day": day,
                    "at": at,
                    "local": at.replace(tzinfo=None),
                    "text": text if part < 18 else "\U0010ffff" * 20,
                    "bytes": bytes([part, 255]) * 12,
                    "flag": part > 10 if number else None,
                    "point": {"x": n / 1, "name": f"p{n:03d}"},
                }
            )
    kinds = extreme_rows().schema
    point = pa.struct([("x", pa.float64()), ("name", pa.string())])
    kinds = kinds.set(kinds.get_field_index("point"), pa.field("point", point))
    fields = [
        kinds.field(name) if name != "part" else pa.field(name, pa.int32()) for name in rows[0]
    ]
    return pa.Table.from_pylist(rows, pa.schema(fields))


PREDICATES = (
    *("id = 71", "id > 150", "id <= 12", "id IN (5, 40, 199)", "id BETWEEN 42 AND 61"),
    *("small IS NULL", "small IS NOT NULL AND small > -30", "small < -150"),
    *("money < -0.55", "money = 0.61", "wide >= 15000000000000000000000"),
    *("float = 40", "float > 90", "double = 0", "double < 0", "double >= 190", "nan > 1"),
    *("nan IS NULL", "nan IS NOT NULL"),
    *("day = DATE '2026-03-03'", "day > DATE '2026-07-01'"),
    *("at < TIMESTAMP '2026-01-02 03:00:00Z'", "local >= TIMESTAMP_NTZ '2026-01-08 10:00:00'"),
    f"text LIKE '{'é' * 15}2%'",
    f"text = '{'é' * 15}1071'",
    f"text > '{'é' * 15}3'",
    "text > '\U0010ffff'",
    *("bytes = X'0AFF0AFF'", "bytes > X'11'", "flag = true", "NOT flag"),
    *("point.x < 11.5", "point.name = 'p141'", "_supa_index > 50"),
)


def test_files_that_a_scan_reads_are_those_of_sparks_writer(loads: Loads, tmp_path: Path) -> None:
    path = tmp_path / "values.parquet"
    pq.write_table(_prunedextreme_rows(), path)
    for name, more in (("own", {}), ("sparks", SPARKS)):
        table = loads.table(
            str(path),
            name=name,
            partition_by=(PartitionField("identity", "part"),),
            table_properties=more,
        )
        result = loads.loaded(table, nested="NATIVE", job_id="job")
        assert (result.writer, len(result.files)) == (WRITERS[name], PARTS)

    def key(file: dict[str, Any]) -> Any:
        return file["partition"]

    assert sorted(described(loads, "own"), key=key) == sorted(described(loads, "sparks"), key=key)
    spark: Any = loads.spark
    filters = [(text, _expression(loads, text)) for text in (*PREDICATES, *NAN)]
    own, sparks = (
        {text: _planned(table, expression, jvm(spark)) for text, expression in filters}
        for table in (load(spark, loads.schema, name) for name in WRITERS)
    )
    assert own == sparks
    none = ("nan > 1", "bytes = X'0AFF0AFF'")
    assert [text for text, parts in own.items() if not parts] == list(none)
    assert [text for text, parts in own.items() if len(parts) == PARTS] == ["NOT flag"]


NAN = ("isNaN(float)", "notNaN(float)", "isNaN(nan)")


def _expression(loads: Loads, text: str) -> Any:
    """Return Iceberg's expression of a condition, as Spark hands it on."""
    spark: Any = loads.spark
    java = jvm(spark)
    if text in NAN:
        function, _, column = text.rstrip(")").partition("(")
        return getattr(java.org.apache.iceberg.expressions.Expressions, function)(column)
    converter = java.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = converter.collectResolvedSparkExpression(
        spark._jsparkSession, f"lake.{loads.schema}.own", text
    )
    return converter.convertToIcebergExpression(resolved)


def _planned(table: Any, expression: Any, java: Any) -> set[int]:
    """Return the partitions of the files that Iceberg's scan of a table reads."""
    integer, parts = java.java.lang.Class.forName("java.lang.Integer"), set()
    with closing(table.newScan().filter(expression).planFiles()) as tasks:
        found = tasks.iterator()
        while found.hasNext():
            parts.add(int(found.next().file().partition().get(0, integer)))
    return parts


@pytest.mark.parametrize("partitions", [(), (PartitionField("bucket", "id", 2),)])
def test_tasks_leave_out_rows(
    loads: Loads, partitions: tuple[PartitionField, ...], through_spark: set[str]
) -> None:
    files = [loads.file([{"id": n * 10 + k} for k in range(10)]) for n in range(4)]
    table = loads.table(*files, where="id in (3, 19, 20, 21)", partition_by=partitions)

    result = loads.loaded(table)

    assert (result.writer, through_spark) == ("direct", set())
    assert (result.rows, result.index) == (4, "dense")
    assert loads.rows(order="id") == [{"id": number} for number in (3, 19, 20, 21)]
    assert sorted(row["_supa_index"] for row in loads.tracking()) == [1, 2, 3, 4]


def test_overwrite_replaces_files_of_both_writers(loads: Loads) -> None:
    assert loads.loaded(loads.table(loads.file([{"id": 1}]))).writer == "direct"
    name, setting = f"lake.`{loads.schema}`.`orders`", "write.parquet.page-row-limit"
    loads.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{setting}'='9999')")
    assert loads.loaded(loads.table(loads.file([{"id": 2}]))).writer == "spark"
    loads.spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('{setting}')")

    table = loads.table(loads.file([{"id": 3}, {"id": 4}]), mode="OVERWRITE")
    result = loads.loaded(table)
    none = loads.loaded(loads.table(_no_rows(loads), mode="OVERWRITE"))

    assert (result.writer, result.rows, len(result.files)) == ("direct", 2, 1)
    snapshot = loads.read().snapshot_by_id(result.snapshot_id or 0)
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation.value == "overwrite"
    assert (snapshot.summary["added-records"], snapshot.summary["deleted-records"]) == ("2", "2")
    assert snapshot.summary["spark.app.id"] == loads.spark.sparkContext.applicationId
    assert (none.writer, none.rows, loads.rows()) == ("direct", 0, [])


def _no_rows(loads: Loads) -> str:
    return loads.file([], pa.schema([("id", pa.int64())]))


@pytest.mark.parametrize("partitions", [(), (PartitionField("bucket", "id", 2),)])
def test_tasks_write_to_the_bucket_that_the_catalog_chooses(
    loads: Loads, partitions: tuple[PartitionField, ...], through_spark: set[str]
) -> None:
    loads.destination = replace(loads.destination, bucket="of-the-destination")
    table = loads.table(loads.file([{"id": 1}, {"id": 2}]), partition_by=partitions)
    result = loads.loaded(table)
    assert (result.writer, result.rows, through_spark) == ("direct", 2, set())
    assert (result.location or "").startswith(f"s3://{BUCKET}/")
    assert loads.rows(order="id") == [{"id": 1}, {"id": 2}]
