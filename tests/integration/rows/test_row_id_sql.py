"""`_supa_id` as Spark computes it is, byte for byte, what `rows.row_id` computes."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.rows.row_id import encoded_rows, row_ids
from lakeload_jobs.rows.tracking_sql import encoding, row_id
from tests.hints import follow, follows

_VALUES = {
    "boolean": ["true", "false"],
    "tinyint": ["-128Y", "0Y", "127Y"],
    "smallint": ["-32768S", "7S"],
    "int": ["-2147483648", "1"],
    "bigint": ["9223372036854775807L", "-1L"],
    "float": ["cast(1.5 as float)", "cast('NaN' as float)", "cast('-0.0' as float)"],
    "double": ["0.1D", "-0.0D", "cast('Infinity' as double)", "cast('NaN' as double)", "1e300D"],
    "decimal(5,0)": ["10BD", "0BD", "-500BD"],
    "decimal(12,2)": ["1.50BD", "2.00BD", "-0.05BD", "0.00BD", "100.00BD", "-120.10BD"],
    "decimal(38,18)": ["12345678901234567890.123456789012345678BD", "0.000000000000000001BD"],
    "string": ["''", "'abc'", "'ü🙂~;'", "'a,b:c'"],
    "binary": ["X''", "X'00FF80'"],
    "date": ["date'1969-12-31'", "date'2026-11-21'", "date'0001-01-01'"],
    "timestamp": ["timestamp'2026-11-21 10:15:30.123456Z'", "timestamp'1900-01-01 00:00:00Z'"],
    "timestamp_ntz": ["timestamp_ntz'2026-11-21 10:15:30.123456'", "timestamp_ntz'1960-01-01'"],
    "array<double>": ["array(1D, null, -0.0D)", "array()"],
    "array<array<string>>": ["array(array('a', null), null, array())"],
    "struct<a:int,b:string>": [
        "named_struct('a', 1, 'b', 'x')",
        "named_struct('a', null, 'b', null)",
    ],
    "map<string,int>": ["map('b', 1, 'a', 2, 'ä', null)", "map()"],
    "array<struct<d:decimal(6,3),t:timestamp>>": [
        "array(named_struct('d', 1.250BD, 't', timestamp'2026-01-01 00:00:00Z'), null)"
    ],
}


def test_every_type_is_encoded_as_by_arrow(spark: SparkSession) -> None:
    for kind, values in _VALUES.items():
        texts = [f"select cast({value} as {kind}) as v" for value in [*values, "null"]]
        frame = spark.sql(" union all ".join(texts)).coalesce(1)
        field = frame.schema["v"].dataType

        table = frame.select("v", encoding(F.col("v"), field).cast("binary").alias("e")).toArrow()

        arrow = encoded_rows([table.column("v").combine_chunks()]).to_pylist()
        assert table.column("e").to_pylist() == arrow, kind


def test_the_id_of_several_columns_is_the_hash_of_their_encodings(spark: SparkSession) -> None:
    frame = spark.createDataFrame([Row(a="a", b="bc", c=1.5), Row(a="ab", b="c", c=None)])
    columns = [(F.col(field.name), field.dataType) for field in frame.schema.fields]

    table = frame.coalesce(1).select("a", "b", "c", row_id(columns).alias("id")).toArrow()

    expected = row_ids([table.column(name).combine_chunks() for name in ("a", "b", "c")])
    assert table.column("id").to_pylist() == expected.to_pylist()


def test_a_type_without_an_encoding_is_cast_as_the_hint_says(spark: SparkSession) -> None:
    frame = spark.sql("select interval '2' day as took, 1L as id")
    document = {"source": {"type": "FILES"}, "tables": [{"table": "t", "primary_key": ["took"]}]}

    def ids(changed: dict[str, Any]) -> int:
        [table] = changed["tables"]
        types = table.get("columns", {}).get("types", {})
        rows = frame.select(*(F.col(n).cast(types.get(n, t)).alias(n) for n, t in frame.dtypes))
        columns = [(F.col(name), rows.schema[name].dataType) for name in table["primary_key"]]
        return len(rows.select(row_id(columns)).collect())

    with pytest.raises(InvalidInput, match="has no row id") as raised:
        ids(document)
    hint = raised.value.hint or ""
    follows(__file__, "a key that Spark cannot encode", hint)
    ways: dict[str, dict[str, Any]] = {
        "choose another `primary_key`": {"primary_key": ["id"]},
        "cast the column with `columns.types`": {"columns.types": {"took": "string"}},
    }
    for clause, values in ways.items():
        assert clause in hint
        assert ids(follow(document, clause, "tables[0].table", **values)) == 1
