"""A text of CSV or JSON has the value that it has in Spark's readers, or one of both refuses it."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.files.text.table import TextFiles
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.corpus.oracle import said
from tests.integration.sources.files.spark.recorded import SparkOracle
from tests.integration.sources.files.spark.spark_rows import check_sentence
from tests.text_tables import csv_table, json_table
from tests.unit.sources.files.text.texts import TEXTS

RECORDED = 1000
RANDOM = int(os.environ.get("LAKELOAD_TEST_TEXTS", RECORDED))
"""How many random texts are read besides those of `TEXTS`."""
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
DECIMALS = ("decimal(6,2)", "decimal(38,10)", "decimal(38,0)")
TIMES = ("date", "timestamp", "timestamp_ntz")
TYPES = (*NUMBERS, *DECIMALS, *TIMES, "boolean", "string", "binary")
LITERALS = (
    *("1", "-5", "0", "127", "128", "-129", "2147483648", "9223372036854775808", "1.0", "1.50"),
    *("-0.0", "1e5", "1E-5", "1e400", "1e-400", "5e-324", "9007199254740993", "9" * 38, "9" * 39),
    *("0.1234567890123456789", "9999.99", "9999.995", "123456789.123456789", "-0", "true", "false"),
    *("null", "{}", "[]", '{"a": 1.10}', "[1, null]"),
)
NESTED = {
    "struct<a:int,b:struct<c:string,d:double>>": (
        *('{"a": 1, "b": {"c": "x", "d": 1.5}}', '{"b": {}}', "{}", '{"a": null, "z": 1}', "null"),
        *('{"a": 2147483648, "b": {"c": 1.10}}', '{"b": {"c": {"k": [1, 2]}, "d": 1}}', "[]", "1"),
    ),
    "array<bigint>": ("[]", "[1, null, -1]", "null", "{}", "[9223372036854775807]"),
    "array<array<string>>": ('[["a"], [], null, ["", "é\\u00e9\\n"]]', "[[]]", "[null]"),
    "map<string,double>": ('{"a": 1.5, "b": null}', "{}", "null", '{"": 1e5, "é": -0.0}'),
    "map<string,array<date>>": ('{"a": ["2024-02-29", null], "b": []}', "{}"),
}


@dataclass(frozen=True)
class Reason:
    """Why one of both refuses a value: the text and type that it is about, and a sentence of the
    page of the formats. `refused_by` refuses it; None: both have a value, and it is another one."""

    refused_by: str | None
    types: Sequence[str]
    text: str
    sentence: str
    page: str = "text-values.md"


JSON_PAGE = "json-files.md"
STRING = r'"(?s:.*)"'
EXACT = "A value is read as exactly what is written, or it is a bad value"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"
_BLANKS = r"[\s\x00-\x1f]*"
_DATE = r'"\d{4}-\d\d-\d\d'
_TIME = r'([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6}0*)?)?( ?(Z|UTC|[+-]\d\d(:?\d\d)?))?)?"'
REASONS = {
    "beyond the type": Reason(
        "lakeload",
        ("float", "double"),
        f'"?{_NUMBER}"?',
        "What is too large or too small for it is bad.",
    ),
    "other words": Reason(
        "lakeload", ("float", "double"), '"[+-]?(infinity|inf|nan)"', "No others are numbers."
    ),
    "words in any case": Reason(
        "Spark", ("float", "double"), '"(nan|[+-]?inf)"', "`negative_infinity`, without case."
    ),
    "what surrounds a number": Reason(
        "lakeload", ("float", "double"), rf'"{_BLANKS}{_NUMBER}[df]?{_BLANKS}"', EXACT
    ),
    "hexadecimal numbers": Reason("lakeload", ("float", "double"), '"[+-]?0x.*"', EXACT),
    "rounded decimals": Reason(
        "lakeload",
        DECIMALS,
        f'"?{_NUMBER}"?',
        "Decimals are never rounded: digits that do not fit are bad unless they are zeros.",
    ),
    "zeros whose exponent Java cannot hold": Reason(
        "Spark", DECIMALS, r'"[+-]?[0.]+e[+-]?\d{10,}"', EXACT
    ),
    "marks": Reason(
        "lakeload", DECIMALS, r'"(?=.*,)[+-]?[\d,.]+[\d,.e+-]*"', "Thousands marks stand before"
    ),
    "digits of other scripts": Reason(
        "lakeload",
        (*NUMBERS, *DECIMALS, *TIMES),
        r'"(?=.*[^\x00-\x7f])[\w.,+:-]*"',
        "Digits are `0` to `9`.",
    ),
    "dates and times that are not whole": Reason(
        "lakeload", TIMES, rf"(?!{_DATE}{_TIME}){STRING}", "**Timestamps** are ISO 8601:"
    ),
    "dates with a time": Reason("lakeload", ("date",), rf"{_DATE}.+", EXACT),
    "years before 1 and after 9999": Reason(
        "lakeload", TIMES, '"(0000-|9999-12-31).*"', "The years are 1 to 9999", "file-formats.md"
    ),
    "numbers as timestamps": Reason(
        "lakeload",
        ("timestamp",),
        r"-?\d+",
        "A number is no timestamp unless the type has a unit",
        JSON_PAGE,
    ),
    "zones": Reason(
        "Spark",
        ("timestamp",),
        r'".*\d\d:\d\d.*( ?(UTC|[+-]\d{2}(:?\d{2})?|Z))"',
        "A zone is `Z`, `UTC`, `+02`, `+0200` or `+02:00`, with or without a blank before it.",
    ),
    "whole numbers that Spark wraps": Reason(
        "lakeload", ("tinyint", "smallint"), r"-?\d+", "nothing is cut or completed to fit"
    ),
    "strings in columns of other types": Reason(
        "Spark",
        (*NUMBERS, "boolean"),
        STRING,
        "**Strings** in a column of another type stand for what they hold",
        JSON_PAGE,
    ),
    "Base64 that is cut off": Reason("lakeload", ("binary",), STRING, EXACT),
    "the sign of zero": Reason(
        None, ("float", "double"), "-0", "Spark reads `-0` as 0.0", JSON_PAGE
    ),
}


_HUGE = re.compile(r"\de\+?0*[1-9]\d{4,9}", re.IGNORECASE)
"""Numbers of which Spark computes all digits for a decimal, which takes minutes."""


def _random_texts(count: int) -> list[str]:
    """Return texts that are almost values: those of `TEXTS` with changes, and random values."""
    drawn = random.Random(11)  # noqa: S311 - the same each time
    signs = "0123456789+-.eE:TZ ,_xd٣é"
    found: list[str] = []
    while len(found) < count:
        kind = drawn.randrange(6)
        if kind == 0:
            moment = datetime(1, 1, 1, tzinfo=UTC) + timedelta(
                microseconds=drawn.randrange(3 * 10**17)
            )
            own = moment if drawn.random() < 0.3 else moment.replace(tzinfo=None)
            text = own.isoformat(drawn.choice(" T"), drawn.choice(["auto", "seconds", "minutes"]))
        elif kind == 1:
            text = str(drawn.getrandbits(drawn.randint(1, 140)) - 2 ** drawn.randint(0, 64))
        elif kind == 2:
            text = repr(drawn.uniform(-1, 1) * 10.0 ** drawn.randint(-50, 308))
        elif kind == 3:
            fraction = str(drawn.getrandbits(40)).rjust(drawn.randint(1, 14), "0")
            text = f"{drawn.getrandbits(drawn.randint(1, 70))}.{fraction}"
        else:
            text = drawn.choice(TEXTS)
        if kind == 4 or drawn.random() < 0.2:
            at = drawn.randint(0, len(text))
            text = text[:at] + drawn.choice(signs) + text[at + drawn.randint(0, 1) :]
        if not _HUGE.search(text):
            found.append(text)
    return found


ALL_TEXTS = [*TEXTS, "0x1p3", "-Infinity", ".1,5", "0.e12345678901", *_random_texts(RANDOM)]


def _here(scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
    return [scan(part) for part in parts]


def _by_lakeload(files: TextFiles, names: Sequence[str]) -> list[list[Any]]:
    table = files.split(_here)
    batches = [batch for part in table.splits.parts for batch in table.splits.read(part)]
    return _values(pa.Table.from_batches(batches), names)


def _values(table: pa.Table, names: Sequence[str]) -> list[list[Any]]:
    """Return columns, those of dates and times as numbers: Spark's go beyond those of Python."""
    columns = []
    for name in names:
        column = table[name]
        kind = column.type
        if pt.is_temporal(kind):
            column = column.cast(pa.int32() if pt.is_date(kind) else pa.int64())
        columns.append([said(value) for value in column.to_pylist()])
    return columns


def _differences(
    types: Sequence[str], texts: Sequence[str], spark: Sequence[Any], lakeload: Sequence[Any]
) -> Iterator[tuple[str | None, str, str, Any, Any]]:
    """Yield type, text and both values where the readers differ, with the reason."""
    for kind, theirs, ours in zip(types, spark, lakeload, strict=True):
        for text, one, other in zip(texts, theirs, ours, strict=True):
            if one == other:
                continue
            refused_by = "Spark" if one is None else "lakeload" if other is None else None
            reasons = (
                name
                for name, reason in REASONS.items()
                if refused_by == reason.refused_by
                and kind in reason.types
                and re.fullmatch(reason.text, text, re.IGNORECASE)
            )
            yield next(reasons, None), kind, text, one, other


def _check(found: Iterator[tuple[str | None, str, str, Any, Any]]) -> Counter[str]:
    reasons: Counter[str] = Counter()
    unknown = []
    for reason, *difference in found:
        if reason is None:
            unknown.append(difference)
        else:
            reasons[reason] += 1
    assert not unknown, "\n".join(map(str, unknown))
    for reason in reasons:
        check_sentence(REASONS[reason].page, REASONS[reason].sentence)
    return reasons


def test_texts_of_csv_have_the_values_that_spark_reads(oracle: SparkOracle, tmp_path: Path) -> None:
    names = [f"v{place}" for place in range(len(TYPES))]
    made = io.StringIO(newline="")
    writer = csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["id", *names])
    writer.writerows([number, *[text] * len(names)] for number, text in enumerate(ALL_TEXTS))
    path = tmp_path / "a.csv"
    path.write_text(made.getvalue(), encoding="utf-8", newline="")
    types = dict(zip(names, TYPES, strict=True))
    columns = ColumnsSpec(types={"id": "int", **types})
    files = csv_table(tuple(local_files([str(path)])), {"header": "true"}, columns, "NULL")

    lakeload = _by_lakeload(files, names)
    options = {"header": "true", "multiLine": "true", "escape": '"', "timeZone": "UTC"}

    def ask(spark: SparkSession) -> list[list[Any]]:
        reader = spark.read.options(**options, positiveInf="Inf", negativeInf="-Inf")
        frame = reader.schema(_ddl({"id": "int", **types})).csv(str(path))
        return _values(frame.toArrow(), names)

    question = [ALL_TEXTS, types, options]
    theirs = oracle.answer("csv_values", question, ask, kept=RANDOM == RECORDED)

    quoted = [f'"{text}"' for text in ALL_TEXTS]
    reasons = _check(_differences(TYPES, quoted, theirs, lakeload))
    assert set(REASONS) - set(reasons) == {
        "numbers as timestamps",
        "whole numbers that Spark wraps",
        "strings in columns of other types",
        "Base64 that is cut off",
        "the sign of zero",
    }


def _ddl(types: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


def test_values_of_json_have_the_values_that_spark_reads(
    oracle: SparkOracle, tmp_path: Path
) -> None:
    values = [*(json.dumps(text, ensure_ascii=False) for text in ALL_TEXTS), *LITERALS]
    names = [f"v{place}" for place in range(len(TYPES))]
    types = dict(zip(names, TYPES, strict=True))
    # Spark gives up a whole record for some values, and so each has its own.
    lines = [f'{{"{name}": {value}}}' for name in names for value in values]

    lakeload, theirs = _read_json(oracle, "json_values", tmp_path, lines, types)

    shown = [*(f'"{text}"' for text in ALL_TEXTS), *LITERALS]
    own = [slice(place * len(values), (place + 1) * len(values)) for place in range(len(names))]
    by_lakeload = [column[rows] for column, rows in zip(lakeload, own, strict=True)]
    by_spark = [column[rows] for column, rows in zip(theirs, own, strict=True)]
    _check(_differences(TYPES, shown, by_spark, by_lakeload))


def test_nested_values_of_json_have_the_values_that_spark_reads(
    oracle: SparkOracle, tmp_path: Path
) -> None:
    types = {f"v{place}": kind for place, kind in enumerate(NESTED)}
    lines = []
    for number in range(max(map(len, NESTED.values()))):
        own = zip(types, NESTED.values(), strict=True)
        row = [f'"{name}": {values[number]}' for name, values in own if number < len(values)]
        lines.append(f"{{{', '.join(row)}}}")

    lakeload, theirs = _read_json(oracle, "json_nested_values", tmp_path, lines, types)

    assert lakeload == theirs


def _read_json(
    oracle: SparkOracle, name: str, folder: Path, lines: Sequence[str], types: dict[str, str]
) -> tuple[list[list[Any]], list[list[Any]]]:
    path = folder / "a.ndjson"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = json_table(
        tuple(local_files([str(path)])), {}, ColumnsSpec(types=types), "NULL", lines=True
    )

    def ask(spark: SparkSession) -> list[list[Any]]:
        frame = spark.read.option("timeZone", "UTC").schema(_ddl(types)).json(str(path))
        return _values(frame.toArrow(), [*types])

    theirs = oracle.answer(name, [lines, types], ask, kept=RANDOM == RECORDED)
    return _by_lakeload(files, [*types]), theirs
