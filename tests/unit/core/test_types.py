"""The type table and its page say the same, and Parquet files agree."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arro3.io import write_parquet
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids

from lakeload_jobs.core.types import TYPE_RULES, TypeRule, type_rule

PAGE = Path(__file__).parents[3] / "docs" / "types.md"
WRITTEN = {
    "AS_IS": "as it is",
    "TEXT": "text",
    "TIME_TEXT": "text `HH:mm:ss.SSSSSS`",
    "JSON": "JSON text",
    "NESTED": "natively, or JSON text",
    "UNSUPPORTED": "unsupported",
}
ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date32": pa.date32(),
    "timestamp[us, UTC]": pa.timestamp("us", "UTC"),
    "timestamp[us]": pa.timestamp("us"),
}


def _row(rule: TypeRule) -> str:
    cells = (rule.spark, WRITTEN[rule.written], rule.arrow, rule.parquet, rule.glue)
    return f"| {' | '.join((*cells, rule.iceberg, rule.sources))} |"


def test_the_page_shows_the_table_as_it_is() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if line.startswith("| ") and not line.startswith("| Spark")]
    assert shown == [_row(rule) for rule in TYPE_RULES]


def test_each_type_has_one_rule() -> None:
    names = [rule.spark for rule in TYPE_RULES]
    assert len(set(names)) == len(names)
    assert all(type_rule(name) is rule for name, rule in zip(names, TYPE_RULES, strict=True))
    assert type_rule("something") is None


@pytest.mark.parametrize(
    "rule", [rule for rule in TYPE_RULES if rule.arrow in ARROW], ids=lambda rule: rule.spark
)
def test_a_parquet_file_has_the_type_that_the_table_says(rule: TypeRule) -> None:
    sink = io.BytesIO()
    write_parquet(pa.table({"c": pa.array([None], ARROW[rule.arrow])}), sink)
    column = pq.ParquetFile(sink).schema.column(0)
    physical, _, logical = rule.parquet.partition(" ")
    assert column.physical_type == physical
    assert _logical(str(column.logical_type)) == logical.strip("()")


def _logical(shown: str) -> str:
    """Bring pyarrow's words for a logical type to those of the Parquet specification."""
    words = {
        "None": "",
        "String": "STRING",
        "Date": "DATE",
        "Int(bitWidth=8, isSigned=true)": "INT(8, true",
        "Int(bitWidth=16, isSigned=true)": "INT(16, true",
    }
    if shown.startswith("Timestamp"):
        flag = "true" if "isAdjustedToUTC=true" in shown else "false"
        assert "timeUnit=microseconds" in shown
        return f"TIMESTAMP(MICROS, isAdjustedToUTC={flag}"
    return words[shown]


@pytest.mark.parametrize(
    "rule", [rule for rule in TYPE_RULES if rule.arrow in ARROW], ids=lambda rule: rule.spark
)
def test_iceberg_has_the_type_that_its_python_library_makes_of_arrows(rule: TypeRule) -> None:
    schema = _pyarrow_to_schema_without_ids(pa.schema({"c": ARROW[rule.arrow]}))
    assert str(schema.find_type("c")) == rule.iceberg


@pytest.mark.parametrize(
    ("precision", "physical"), [(9, "INT32"), (18, "INT64"), (38, "FIXED_LEN_BYTE_ARRAY")]
)
def test_decimals_are_stored_by_their_precision(precision: int, physical: str) -> None:
    sink = io.BytesIO()
    kind = pa.decimal128(precision, 2)
    write_parquet(pa.table({"c": pa.array([None], kind)}), sink)
    file = pq.ParquetFile(sink)
    assert file.schema.column(0).physical_type == physical
    assert file.schema_arrow.field("c").type == kind
    rule = type_rule("decimal")
    assert rule is not None
    assert physical in rule.parquet
