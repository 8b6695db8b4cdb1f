"""Parquet and ORC files of the corpus have the types and values that Spark reads in them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.integration.sources.files.spark.recorded import SparkOracle
from tests.integration.sources.files.spark.spark_rows import (
    Found,
    Intended,
    SparkFiles,
    answered,
    by_lakeload,
    check,
)
from tests.unit.sources.files.formats.orc import test_reader as test_orc
from tests.unit.sources.files.formats.parquet import test_reader as test_parquet

CORPUS = Path(__file__).parents[4] / "corpus"


def cases(file_format: str) -> dict[str, list[Path]]:
    """Return the files of each case."""
    text = (CORPUS / "expected" / f"{file_format}.jsonl").read_text(encoding="ascii")
    found = [json.loads(line) for line in text.splitlines()]
    folder = CORPUS / "files" / file_format
    return {case["name"]: [folder / name for name in case["files"]] for case in found}


def _as_variant(found: Found) -> Found:
    """Return JSON text as Spark writes a VARIANT: the fields of objects are sorted."""
    rows = [row | {"v": row["v"] and _sorted(row["v"])} for row in found.rows]
    return replace(found, types=found.types.replace("string", "variant"), rows=rows)


def _sorted(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)


def _as_instants(found: Found) -> Found:
    """Return local times as the same times in UTC, days as in `_as_julian`."""
    found = _as_julian(found)
    rows = [_replaced(row, _TIME, r"\g<0>+00:00") for row in found.rows]
    return replace(found, types=found.types.replace("timestamp_ntz", "timestamp"), rows=rows)


def _as_julian(found: Found) -> Found:
    """Return the days before 1582 that the corpus has as days of the Julian calendar."""
    rows = found.rows
    for pattern, julian in _JULIAN.items():
        rows = [_replaced(row, pattern, julian) for row in rows]
    return replace(found, rows=rows)


_JULIAN = {
    re.compile("0001-01-01(T.*)?"): r"0001-01-03\1",
    re.compile("1582-10-04(T.*)?"): r"1582-09-24\1",
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}")


def _replaced(value: Any, pattern: re.Pattern[str], text: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(one, pattern, text) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, pattern, text) for one in value]
    whole = isinstance(value, str) and pattern.fullmatch(value)
    return pattern.sub(text, value) if whole else value


PARQUET_PAGE = "parquet-files.md"
ORC_PAGE = "orc-files.md"
BELOW_MICROSECONDS = "A value that has digits below a microsecond is bad"
PARQUET = {
    "whole numbers and doubles in several files": Intended(
        "^FAILED_READ_FILE", "^struct<v:double>$", 1, "| bigint | double | double |", PARQUET_PAGE
    ),
    "types of which Spark has none": Intended(
        r"PARQUET_TYPE_(ILLEGAL|NOT_SUPPORTED): .*\((TIME|UUID|FLOAT16|INTERVAL)"
        "|^UNSUPPORTED_TIME_TYPE$|^DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION$",
        "^struct<",
        58,
        "**Types that Spark does not read** (nanoseconds, TIME, UUID, FLOAT16, INTERVAL, decimals "
        "of more than 38 digits,",
        "sources.md",
    ),
    "digits below a microsecond": Intended(
        "^struct<v:(timestamp|array<timestamp>)>$",
        "cannot be loaded: it has digits below a microsecond$",
        2,
        BELOW_MICROSECONDS,
        PARQUET_PAGE,
    ),
    "keys that are there twice": Intended(
        "^struct<v:map<",
        "the map has this key twice$",
        1,
        "**Maps** that have a key twice",
        PARQUET_PAGE,
    ),
    "VARIANT": Intended(
        "", "", 2, "The fields of an object have the order of the file", PARQUET_PAGE, _as_variant
    ),
}
ORC = {
    "days of a writer that counts no Julian ones": Intended(
        "", "", 10, "those of ORC's Java writer that name no calendar", ORC_PAGE, _as_julian
    ),
    "local times": Intended(
        "",
        "",
        67,
        "**`timestamp`** is a local time, without a zone: the clock of the writer, whatever zone "
        "its file names.",
        ORC_PAGE,
        _as_instants,
    ),
    "types of which Spark has none": Intended(
        "^PARSE_SYNTAX_ERROR$", "^struct<", 14, "Instants of ORC"
    ),
    "fractions of seconds before 1970": Intended(
        "nanos > 999999999",
        "^struct<",
        16,
        "fractions of seconds before 1970 in ORC that Arrow wrote",
    ),
    "digits below a microsecond": Intended(
        "^struct<", "it has digits below a microsecond$", 4, BELOW_MICROSECONDS, PARQUET_PAGE
    ),
    "keys that are there twice": Intended(
        "^struct<v:map<", "the map has this key twice$", 1, "text and maps** are as", ORC_PAGE
    ),
}
_ZONES = {"kolkata": "Asia/Kolkata", "los_angeles": "America/Los_Angeles"}


def test_parquet_files_are_read_as_spark_reads_them(oracle: SparkOracle) -> None:
    files = cases("parquet")
    lakeload = by_lakeload(test_parquet.read, files)
    alone = {name: paths[0] for name, paths in files.items() if len(paths) == 1}
    # The types of several files are those that lakeload finds, as Spark knows of one file only.
    types = {
        name: lakeload[name].types
        for name in sorted(files.keys() - alone)
        if not lakeload[name].error
    }

    def ask(spark: SparkSession) -> dict[str, Found]:
        reader = SparkFiles(spark, "parquet")
        found = reader.read(alone.values(), [alone[n] for n in alone if lakeload[n].error])
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
        try:
            several = {name: reader.together(files[name], types[name]) for name in types}
        finally:
            spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
        return {name: found[path] for name, path in alone.items()} | several

    by_spark = answered(oracle, "parquet", [_contents(files), types], ask)

    assert len(by_spark) == 283
    check({name: (one, lakeload[name]) for name, one in by_spark.items()}, PARQUET)


def _contents(files: dict[str, list[Path]]) -> dict[str, list[bytes]]:
    return {name: [path.read_bytes() for path in paths] for name, paths in files.items()}


def test_orc_files_are_read_as_spark_reads_them(oracle: SparkOracle) -> None:
    files = {name: path for name, (path,) in cases("orc").items()}
    lakeload = by_lakeload(test_orc.read, {name: [path] for name, path in files.items()})
    rare = re.compile("(timestamp_[un]s|last_second|list_of_structs)_pyarrow_.*|refused_.*")

    def ask(spark: SparkSession) -> dict[str, Found]:
        reader = SparkFiles(spark, "orc")
        by_spark: dict[str, Found] = {}
        for zone in ("utc", *_ZONES):
            # Spark's reader takes the clock of the writer for that of its own zone.
            own = {
                name: path
                for name, path in files.items()
                if zone == next((one for one in _ZONES if f"spark_{one}" in name), "utc")
            }
            oracle.set_zone(_ZONES.get(zone, "UTC"))
            found = reader.read(own.values(), [own[name] for name in own if rare.fullmatch(name)])
            by_spark |= {name: found[path] for name, path in own.items()}
        oracle.set_zone("UTC")
        return by_spark

    question = _contents({name: [path] for name, path in files.items()})
    by_spark = answered(oracle, "orc", question, ask)

    assert len(by_spark) == 266
    check({name: (one, lakeload[name]) for name, one in by_spark.items()}, ORC)
