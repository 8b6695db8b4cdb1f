"""CSV and JSON files of the corpus have the records that Spark's readers find in them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.files.text.table import TextFiles
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.corpus.oracle import said
from tests.integration.sources.files.spark.recorded import SparkOracle
from tests.integration.sources.files.spark.spark_rows import check_sentence
from tests.text_tables import csv_table, json_table

CORPUS = Path(__file__).parents[4] / "corpus"
CSV_PAGE = "csv-files.md"
OTHER_CSV = {
    "mixed_line_ends": "You can end a record with `\\n`, `\\r\\n` or `\\r`, and mix them.",
    "blank_lines_of_one_column": "**Blank lines** are skipped, except in a file of one column",
}
"""Files whose records are not those of Spark, and where the page says so."""
QUOTED_EMPTY_IS_TEXT = ("quoted_empty_text",)
_EMPTY = "\ufffd quoted and empty"
REASONS = "decisions/0021-own-readers-for-files.md"
SPARK_CSV = {"multiLine": "true", "emptyValue": _EMPTY, "maxCharsPerColumn": "-1"}
SPARK_NAMES = {
    "separator": "sep",
    "quote": "quote",
    "escape": "escape",
    "encoding": "encoding",
    "comment": "comment",
    "null_values": "nullValue",
    "trim_left": "ignoreLeadingWhiteSpace",
    "trim_right": "ignoreTrailingWhiteSpace",
}
"""Options of CSV files that Spark has too. The others are about values, or its own."""
JAVA_NAMES = {
    "cp437": "IBM437",
    "latin-1": "ISO-8859-1",
    "utf-16-be": "UTF-16BE",
    "utf-16-le": "UTF-16LE",
}
"""Encodings that Java calls otherwise than Python."""
_PACKED = (b"\x1f\x8b", b"BZ", b"PK", b"\xfd7", b"(\xb5")
ONLY_LAKELOAD = ("skip_rows", "trailing_separator")


@dataclass(frozen=True)
class Records:
    """A file of the corpus, and the rows that lakeload reads in it."""

    name: str
    path: Path
    options: Mapping[str, str]
    table: pa.Table

    @property
    def types(self) -> str:
        """The schema for Spark."""
        schema = from_arrow_schema(self.table.schema, prefer_timestamp_ntz=True)
        return ", ".join(
            f"`{one.name.replace('`', '``')}` {one.dataType.simpleString()}" for one in schema
        )


def _cases(*folders: str) -> Iterator[tuple[dict[str, Any], Path]]:
    for folder in folders:
        text = (CORPUS / "expected" / f"{folder}.jsonl").read_text(encoding="ascii")
        for line in text.splitlines():
            case = json.loads(line)
            if "refused" not in case and len(case["files"]) == 1:
                yield case, CORPUS / "files" / folder / case["files"][0]


def _here(scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
    return [scan(part) for part in parts]


def _read(files: TextFiles) -> pa.Table:
    table = files.split(_here)
    batches = [batch for part in table.splits.parts for batch in table.splits.read(part)]
    return pa.Table.from_batches(batches, table.schema)


def _rows(table: pa.Table) -> list[Any]:
    return [said(row) for row in table.to_pylist()]


def _question(files: Sequence[Records]) -> list[Any]:
    """Return all that Spark's answer depends on."""
    return [[file.name, file.path.read_bytes(), {**file.options}, file.types] for file in files]


def _by_spark(
    spark: SparkSession, file_format: str, files: Sequence[Records]
) -> dict[str, list[Any]]:
    """Return the rows of each file, those of the same options and columns in one job."""
    groups: dict[tuple[str, str], list[Records]] = defaultdict(list)
    for file in files:
        groups[json.dumps(file.options), file.types].append(file)
    found: dict[str, list[Any]] = {file.name: [] for file in files}
    for (_, types), some in groups.items():
        reader = spark.read.format(file_format).options(**some[0].options).schema(types)
        frame = reader.load([str(file.path) for file in some])
        frame = frame.select(F.col("_metadata.file_name").alias("_file"), "*")
        names = {file.path.name: file.name for file in some}
        for row in _rows(frame.toArrow()):
            found[names[row.pop("_file")]].append(row)
    return found


def test_csv_records_of_the_corpus_are_those_of_spark(
    oracle: SparkOracle,
) -> None:
    files = []
    for case, path in _cases("csv_structure", "csv_values", "csv_written"):
        own = case["options"]
        if set(ONLY_LAKELOAD) & set(own) or own.get("null_values", "").startswith("["):
            continue
        if path.suffix not in (".csv", ".tsv", ".txt") or path.read_bytes()[:2] in _PACKED:
            continue
        # The header as well is compared, as a record.
        shared = {name: own[name] for name in own if name in SPARK_NAMES}
        ours = {"quoted_empty": "NULL", **own, "header": "false", "infer": "STRINGS"}
        ours = {name: ours[name] for name in (*shared, "quoted_empty", "header", "infer")}
        table = _read(csv_table(tuple(local_files([str(path)])), ours))
        if table.num_columns:
            theirs = {SPARK_NAMES[name]: shared[name].replace("\\t", "\t") for name in shared}
            if (encoding := theirs.get("encoding")) in JAVA_NAMES:
                theirs["encoding"] = JAVA_NAMES[encoding]
            theirs.setdefault("escape", theirs.get("quote", '"'))
            if path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff"):
                theirs["encoding"] = "UTF-16"  # lakeload knows it by its mark
            files.append(Records(case["name"], path, {**SPARK_CSV, **theirs}, table))

    def by_spark(spark: SparkSession) -> dict[str, list[Any]]:
        spark.conf.set("spark.sql.legacy.javaCharsets", "true")
        try:
            return _by_spark(spark, "csv", files)
        finally:
            spark.conf.unset("spark.sql.legacy.javaCharsets")

    found = oracle.answer("csv_records", _question(files), by_spark)
    as_text = {file.name for file in files if file.name in QUOTED_EMPTY_IS_TEXT}
    found = {
        name: [_one_line_break(_quoted_empty(row, name in as_text)) for row in rows]
        for name, rows in found.items()
    }
    # Spark makes line breaks within quotes the one that ends the first record.
    ours = {file.name: [_one_line_break(row) for row in _rows(file.table)] for file in files}
    different = {name for name, rows in ours.items() if rows != found[name]}
    for sentence in (*OTHER_CSV.values(), "**Null** is an empty value, quoted or not."):
        check_sentence(CSV_PAGE, sentence)
    assert len(files) == 412
    assert {name: (found[name], ours[name]) for name in different - OTHER_CSV.keys()} == {}
    assert different == OTHER_CSV.keys()


def test_json_records_of_the_corpus_are_those_of_spark(
    oracle: SparkOracle,
) -> None:
    files = []
    for case, path in _cases("json_by_hand", "json_written"):
        lines = case["format"] == "NDJSON"
        if any(case["records"]):
            table = _read(json_table(tuple(local_files([str(path)])), {}, lines=lines))
            files.append(Records(case["name"], path, {"multiLine": str(not lines)}, table))

    found = oracle.answer(
        "json_records", _question(files), lambda spark: _by_spark(spark, "json", files)
    )

    different = _different(files, found)
    for name in ("lines_minus_zero", "stream_minus_zero"):
        assert different.pop(name)[0][0] == {"v": "0.0"}
    check_sentence("json-files.md", "the number `-0` keeps its sign: Spark reads `-0` as 0.0")
    first = {file.name for file in files if _rows(file.table)[:1] == found[file.name]}
    assert len(files) == 176
    assert {name: both for name, both in different.items() if name not in first} == {}
    # Files that are neither lines nor a list, of which Spark reads the first object.
    check_sentence(REASONS, "In JSON the rest of a file after its first value is dropped")
    assert len(different) == 46


def _quoted_empty(row: dict[str, Any], is_text: bool) -> dict[str, Any]:
    """Return a row of Spark with what lakeload has for quoted empty values: null, or a text."""
    empty = "" if is_text else None
    return {key: empty if value == _EMPTY else value for key, value in row.items()}


def _one_line_break(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value and value.replace("\r\n", "\n") for key, value in row.items()}


def _different(
    files: Sequence[Records], found: Mapping[str, list[Any]]
) -> dict[str, tuple[list[Any], list[Any]]]:
    """Return the rows of the files that Spark reads in another way, and those of lakeload."""
    ours = {file.name: _rows(file.table) for file in files}
    return {name: (found[name], rows) for name, rows in ours.items() if found[name] != rows}
