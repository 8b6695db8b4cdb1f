"""Columns of text of which most values are numbers: the value that made them text is named."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.sources.files.text.batches import TextBatch
from lakeload_jobs.sources.files.text.inference import ColumnEvidence, ColumnValues
from lakeload_jobs.sources.files.text.mostly_numbers import NumberCounts, number_warnings
from lakeload_jobs.sources.files.text.splits import Scan, Scanned
from lakeload_jobs.sources.files.text.table import TextTable
from lakeload_jobs.sources.files.text.values import TextFormats
from lakeload_jobs.sources.part_sizes import Parallelism
from lakeload_jobs.sources.paths.local_listing import file_state
from tests.text_tables import csv_table, json_table


def here(scan: Scan, parts: Sequence[Any]) -> list[Scanned]:
    return [scan(part) for part in parts]


def csv_warnings(
    paths: Sequence[Path], options: dict[str, str] | None = None, **changes: Any
) -> tuple[str, ...]:
    files = tuple(file_state(str(path)) for path in paths)
    table = csv_table(files, {"header": "true", **(options or {})}, **changes)
    return table.split(here, Parallelism(4, 1 << 20)).warnings


def written(folder: Path, values: Sequence[str], name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text("id,n\n" + "".join(f"1,{text}\n" for text in values), encoding="utf-8")
    return path


NUMBERS = tuple(f"{number}.5" for number in range(20))
IDS = tuple(str((1 << 60) + number) for number in range(20))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            (*NUMBERS, "x", *NUMBERS, "y"),
            "`x` in `{path}`, line 22, is no `double`; "
            "with `columns.types: {{n: double}}` it is a bad value",
        ),
        (
            (*NUMBERS, "0.1234567890123456789", "1"),
            "`0.1234567890123456789` in `{path}`, line 22, has more digits than a `double`; "
            "`columns.types: {{n: double}}` rounds it",
        ),
        (
            ("x", *IDS),
            "`x` in `{path}`, line 2, is no `bigint`; "
            "with `columns.types: {{n: bigint}}` it is a bad value",
        ),
        (
            (*IDS, "9" * 20, "-"),
            "`-` in `{path}`, line 23, is no `decimal(38,0)`; "
            'with `columns.types: {{n: "decimal(38,0)"}}` it is a bad value',
        ),
        (
            (*NUMBERS, "1e400"),
            "`1e400` in `{path}`, line 22, is no `double`; "
            "with `columns.types: {{n: double}}` it is a bad value",
        ),
    ],
)
def test_value_that_makes_numbers_text_is_named(
    values: Sequence[str], said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, values)

    assert csv_warnings([path]) == (
        f"column `n` is text: most of its values are numbers, and {said.format(path=path)}",
    )


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("id,n\n" + "1,0.5\n" * 20 + "2,0.1234567890123456789\n", 0.12345678901234568),
        ("id,n\n" + "1,1\n" * 20 + "2,x\n", None),
        ("id,n\n" + "1,12345678901234567890\n" * 20 + "2,x\n", None),
        ("\n".join(['{"n": 1}'] * 20 + ['{"n": "7"}']), 7),
        ("\n".join(['{"n": 1}'] * 20 + ['{"n": "x"}']), None),
    ],
)
def test_setting_of_the_warning_does_what_it_says(content: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(content, encoding="utf-8")

    def opened(**changes: Any) -> TextTable:
        files = (file_state(str(path)),)
        if content.startswith("id"):
            return csv_table(files, {"header": "true"}, **changes).split(here)
        return json_table(files, {}, lines=True, **changes).split(here)

    (warning,) = opened().warnings
    setting = yaml.safe_load(warning.split("`columns.types: ")[1].split("`")[0])
    table = opened(columns=ColumnsSpec(types=setting), on_bad_value="NULL")

    rows = [row for part in table.splits.parts for row in _rows(table, part)]
    assert table.warnings == ()
    assert rows[-1]["n"] == value
    assert (warning.endswith("it is a bad value")) == (value is None)


def _rows(table: TextTable, part: Any) -> list[Any]:
    return [row for batch in table.splits.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "values",
    [
        NUMBERS,
        ("x", "y", "1", "2"),
        ("007", "08", "1"),
        (*NUMBERS, "2024-02-29", *["2024-02-29"] * 9),
        ("", ""),
    ],
)
def test_other_columns_are_not_named(values: Sequence[str], tmp_path: Path) -> None:
    assert csv_warnings([written(tmp_path, values)]) == ()


def test_null_texts_are_no_reason(tmp_path: Path) -> None:
    path = written(tmp_path, (*NUMBERS, "NA", *NUMBERS, "0.1234567890123456789"))

    (warning,) = csv_warnings([path], {"null_values": "NA"})

    assert f"`0.1234567890123456789` in `{path}`, line 43," in warning
    assert csv_warnings([written(tmp_path, (*NUMBERS, "NA"))], {"null_values": "NA"}) == ()


def test_columns_of_a_known_type_are_not_named(tmp_path: Path) -> None:
    path = written(tmp_path, (*NUMBERS, "x"))

    assert csv_warnings([path], recorded={"n": "string"}) == ()
    assert csv_warnings([path], columns=ColumnsSpec(types={"n": "string"})) == ()
    assert csv_warnings([path], columns=ColumnsSpec(exclude=("n",))) == ()
    assert csv_warnings([path], {"infer": "STRINGS"}) == ()


def test_lines_are_those_of_the_file_in_the_file_that_has_the_value(tmp_path: Path) -> None:
    first = written(tmp_path, NUMBERS, "a.csv")
    large = written(tmp_path, (*NUMBERS * 60_000, "x", *NUMBERS * 10), "b.csv")

    (warning,) = csv_warnings([first, large])

    assert f"`x` in `{large}`, line 1,200,002," in warning


def test_setting_has_quotes_where_yaml_needs_them(tmp_path: Path) -> None:
    path = written(tmp_path, (*NUMBERS, "x"))
    path.write_text(path.read_text("utf-8").replace("id,n", "id,a b: c"), encoding="utf-8")

    (warning,) = csv_warnings([path])

    assert '`columns.types: {"a b: c": double}`' in warning


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ('"7"', "is text; with `columns.types: {n: bigint}` it is a number"),
        ('"x"', "is no `bigint`; with `columns.types: {n: bigint}` it is a bad value"),
        ("{}", "is no `bigint`; with `columns.types: {n: bigint}` it is a bad value"),
        (
            "0.1234567890123456789",
            "has more digits than a `double`; `columns.types: {n: double}` rounds it",
        ),
    ],
)
@pytest.mark.parametrize("lines", [True, False])
def test_value_of_json_that_makes_numbers_text_is_named(
    lines: bool, other: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    records = [f'{{"n": {number}}}' for number in (*range(20), other, 8)]
    text = "\n".join(records) if lines else "[" + ",\n".join(records) + "]"
    path.write_text(text, encoding="utf-8")

    table = json_table((file_state(str(path)),), {}, lines=lines)

    assert table.split(here).warnings == (
        "column `n` is text: most of its values are numbers, and "
        f"`{other}` in `{path}`, line 21, {said}",
    )


def _lines(first: int, rows: Sequence[int]) -> list[int]:
    return [first + row for row in rows]


def test_line_that_makes_many_columns_text_is_one_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    names = [f"c{number}" for number in range(7)]
    rows = [names, *[["1"] * 7] * 20, ["1", "?", *["1"] * 5], ["2020", "x", *["total"] * 5]]
    path.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")

    first, second = csv_warnings([path])

    assert "column `c1` is text" in first
    assert f"`?` in `{path}`, line 22," in first
    assert second == (
        "column `c2` is text: most of its values are numbers, and "
        f"`total` in `{path}`, line 23, is no `bigint`; with `columns.types: {{c2: bigint}}` it is "
        "a bad value; line 23 does the same to `c3`, `c4`, `c5` and 1 more"
    )


def test_small_batch_of_text_does_not_hide_the_numbers_after_it() -> None:
    counts, evidence = NumberCounts("a.csv", ColumnValues(TextFormats())), ColumnEvidence()
    for start, values in ((2, ["x"]), (3, ["1"] * 100), (103, ["y"]), (104, ["2"] * 100)):
        rows = pa.record_batch({"n": pa.array(values)})
        batch = TextBatch(rows, (), partial(_lines, start), lambda _: [])
        evidence.add(rows.column("n"))
        counts.add(batch, "n", evidence)

    (warning,) = number_warnings(["n"], [counts.columns], TextFormats())

    assert "`x` in `a.csv`, line 2, is no `bigint`" in warning
