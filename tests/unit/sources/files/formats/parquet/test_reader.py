"""Parquet files by their footers: columns and values are those of docs/parquet-files.md."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, PLACE_HELPER
from lakeload_jobs.sources.files.formats.parquet.reader import (
    ParquetReader,
    ParquetSettings,
    read_footers,
)
from lakeload_jobs.sources.files.typed.columns import Column, settled, type_name, unite
from lakeload_jobs.sources.files.typed.rows import OnLoss
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from tests.unit.sources.files.typed.typed_files import (
    file_states,
    flip_bit,
    read_rows,
    replace_bytes,
    write_encrypted,
)

DOCS = Path(__file__).parents[6] / "docs"
PAGE = DOCS / "parquet-files.md"
PLAIN = ParquetSettings()


def footers(paths: Sequence[Path], settings: ParquetSettings = PLAIN) -> Any:
    return read_footers(file_states(paths), FileBytes(), settings)


def columns_of(
    *paths: Path, without: Collection[str] = (), settings: ParquetSettings = PLAIN
) -> tuple[Column, ...]:
    found = footers(paths, settings)
    names = {column.name for footer in found for column in footer.columns}
    united = unite(found, names - set(without))
    return tuple(replace(column, kind=settled(column.kind)) for column in united)


def read(
    *paths: Path, without: Collection[str] = (), on_loss: OnLoss = "FAIL", **options: Any
) -> pa.Table:
    """Return the rows of files as they are handed on."""
    schemas = footers(paths)
    names = {column.name for schema in schemas for column in schema.columns} - set(without)
    reader = ParquetReader(FileBytes(), exact=on_loss == "FAIL")
    return read_rows(schemas, reader, names=names, on_loss=on_loss, **options)


def write(path: Path, table: pa.Table | dict[str, Any], **options: Any) -> Path:
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path, **options)
    return path


LOCAL = datetime(2024, 2, 29, 1, 2, 3, 4)
INSTANT = LOCAL.replace(tzinfo=UTC)
NANOS = 1_709_168_523_000_004_000
UUID = uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")

EXAMPLES: dict[str, Any] = {
    "BOOLEAN": pa.array([True]),
    "INT(8)": pa.array([-7], pa.int8()),
    "INT(16)": pa.array([-7], pa.int16()),
    "INT32, INT(32)": pa.array([-7], pa.int32()),
    "INT64, INT(64)": pa.array([-7], pa.int64()),
    "INT(8, unsigned)": pa.array([255], pa.uint8()),
    "INT(16, unsigned)": pa.array([65_535], pa.uint16()),
    "INT(32, unsigned)": pa.array([4_294_967_295], pa.uint32()),
    "INT(64, unsigned)": pa.array([18_446_744_073_709_551_615], pa.uint64()),
    "FLOAT16": pa.array([1.5], pa.float16()),
    "FLOAT": pa.array([1.5], pa.float32()),
    "DOUBLE": pa.array([1.5]),
    "DECIMAL(5,2)": pa.array([Decimal("1.20")], pa.decimal128(5, 2)),
    "DECIMAL(50,3)": pa.array([Decimal("1" * 40 + ".125")], pa.decimal256(50, 3)),
    "STRING, ENUM": pa.array(["a"]),
    "JSON": pa.array(['{"a": 1.10}'], pa.json_()),
    "UUID": pa.array([UUID.bytes], pa.uuid()),
    "BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY": pa.array([b"a"], pa.binary(1)),
    "DATE": pa.array([date(2024, 2, 29)]),
    "TIME(MILLIS)": pa.array([time(1, 2, 3, 4000)], pa.time32("ms")),
    "TIME(MICROS)": pa.array([time(1, 2, 3, 4)], pa.time64("us")),
    "TIME(NANOS)": pa.array([3_723_000_004_000], pa.time64("ns")),
    "TIMESTAMP(MILLIS, UTC)": pa.array(
        [INSTANT.replace(microsecond=4000)], pa.timestamp("ms", "UTC")
    ),
    "TIMESTAMP(MICROS, UTC)": pa.array([INSTANT], pa.timestamp("us", "Europe/Berlin")),
    "TIMESTAMP(NANOS, UTC)": pa.array([NANOS], pa.timestamp("ns", "UTC")),
    "TIMESTAMP(MICROS, local)": pa.array([LOCAL], pa.timestamp("us")),
    "TIMESTAMP(NANOS, local)": pa.array([NANOS], pa.timestamp("ns")),
    "NULL": pa.nulls(1),
    "dictionary of Arrow": pa.array(["a"]).dictionary_encode(),
    "duration of Arrow": pa.array([1_500], pa.duration("ms")),
    "group": pa.array([{"t": time(1, 2, 3)}], pa.struct([("t", pa.time64("us"))])),
    "LIST": pa.array([[1, None]], pa.list_(pa.int32())),
    "MAP": pa.array([[(1, "x")]], pa.map_(pa.int32(), pa.string())),
}


def shown(value: Any) -> str:
    """Return a value as the page shows it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return str(value) if isinstance(value, str | Decimal | date) else json.dumps(value)


def rows_of_the_page() -> list[tuple[str, str, str]]:
    text = PAGE.read_text(encoding="utf-8").split("## Types of Parquet")[1]
    lines = text.split("\n## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [(row[0], row[1], row[2].strip("`")) for row in rows[1:]]


def test_the_page_has_an_example_of_each_type() -> None:
    names = [name for name, _, _ in rows_of_the_page()]
    assert names == [*EXAMPLES, "INT96", "INTERVAL", "VARIANT"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_type_is_read_as_the_page_says(tmp_path: Path, name: str) -> None:
    (kind, value) = next((kind, value) for row, kind, value in rows_of_the_page() if row == name)
    content = EXAMPLES[name]
    path = write(tmp_path / "a.parquet", {"x": pa.concat_arrays([content, content[:0]])})

    (column,) = columns_of(path)
    found = read(path)["x"].to_pylist()

    assert (type_name(column.kind), shown(found[0])) == (kind, value)


def test_an_int96_and_an_interval_are_read_as_the_page_says(tmp_path: Path) -> None:
    said = {name: (kind, value) for name, kind, value in rows_of_the_page()}
    old = {"x": pa.array([LOCAL], pa.timestamp("us"))}
    write(tmp_path / "INT96", old, use_deprecated_int96_timestamps=True)
    duckdb.sql(
        "copy (select interval '1 month 2 days 3.004 seconds' x) "
        f"to '{tmp_path}/INTERVAL' (format parquet)"
    )
    for name in ("INT96", "INTERVAL"):
        (column,) = columns_of(tmp_path / name)
        (found,) = read(tmp_path / name)["x"].to_pylist()
        assert (type_name(column.kind), shown(found)) == said[name]


def test_random_values_are_what_pyarrow_and_duckdb_read(tmp_path: Path) -> None:
    chosen = random.Random(14)  # noqa: S311
    count = 3_000
    micros = [chosen.randrange(-(2**52), 2**52) for _ in range(count)]
    times = [chosen.randrange(86_400_000_000) for _ in range(count)]
    uuids = [uuid.UUID(int=chosen.getrandbits(128)) for _ in range(count)]
    gaps = [chosen.random() < 0.1 for _ in range(count)]

    def gappy(values: Sequence[Any]) -> list[Any]:
        return [None if gap else value for gap, value in zip(gaps, values, strict=True)]

    table = pa.table(
        {
            "ns": pa.array(gappy([n * 1000 for n in micros]), pa.timestamp("ns")),
            "t": pa.array(gappy([n * 1000 for n in times]), pa.time64("ns")),
            "u": pa.array(gappy([u.bytes for u in uuids]), pa.uuid()),
            "n": pa.array(gappy([chosen.getrandbits(64) for _ in range(count)]), pa.uint64()),
            "l": pa.array(
                gappy([[time(1, 2, 3, n % 10**6)] * (n % 4) for n in times]),
                pa.list_(pa.time64("us")),
            ),
        }
    )
    path = write(tmp_path / "a.parquet", table, row_group_size=700)

    found = read(path).to_pydict()

    epoch = datetime(1970, 1, 1)
    assert found["ns"] == gappy([epoch + timedelta(microseconds=n) for n in micros])
    texts = [(datetime(1, 1, 1) + timedelta(microseconds=n)).time() for n in times]
    assert found["t"] == gappy([text.isoformat("microseconds") for text in texts])
    assert found["u"] == gappy([str(u) for u in uuids])
    by_duckdb = duckdb.read_parquet(str(path)).project("n, u::varchar").fetchall()
    assert found["n"] == [row[0] for row in by_duckdb]
    assert found["u"] == [row[1] for row in by_duckdb]
    assert found["l"] == gappy(
        [[time(1, 2, 3, n % 10**6).isoformat("microseconds")] * (n % 4) for n in times]
    )


LOSSY = {
    "timestamp": (pa.array([0, None, 1_500], pa.timestamp("ns")), "1970-01-01 00:00:00.000001500"),
    "instant": (
        pa.array([0, None, -1], pa.timestamp("ns", "UTC")),
        "1969-12-31 23:59:59.999999999",
    ),
    "time": (pa.array([0, None, 1], pa.time64("ns")), "00:00:00.000000001"),
    "in a struct": (
        pa.array([{"a": 0}, None, {"a": 1}], pa.struct([("a", pa.time64("ns"))])),
        "00:00:00.000000001",
    ),
    "in a list": (
        pa.array([[0, 1000], None, [2000, 7]], pa.list_(pa.timestamp("ns"))),
        "1970-01-01 00:00:00.000000007",
    ),
    "in a map": (
        pa.array([[("a", 0)], None, [("b", 1)]], pa.map_(pa.string(), pa.time64("ns"))),
        "00:00:00.000000001",
    ),
}


def test_an_int96_that_loses_digits_is_named_in_every_century(tmp_path: Path) -> None:
    old = [datetime(1, 1, 1), None, datetime(1500, 1, 1, 0, 0, 0, 7), datetime(9999, 12, 31)]
    exact = write(
        tmp_path / "exact",
        {"t": pa.array(old * 500, pa.timestamp("us"))},
        use_deprecated_int96_timestamps=True,
    )
    lossy = write(
        tmp_path / "lossy",
        {"t": pa.array([0, None, 1_500] + [0] * 2_000, pa.timestamp("ns")), "id": range(2_003)},
        use_deprecated_int96_timestamps=True,
    )

    found = read(exact)["t"].to_pylist()
    counted = read(lossy, on_bad_value="NULL")
    cut = read(lossy, on_loss="TRUNCATE")["t"]

    assert found == [at and at.replace(tzinfo=UTC) for at in old * 500]
    with pytest.raises(LoadFailed, match=r"row 3: column `t`: the value `1970.*000001500`"):
        read(lossy)
    assert counted[BAD_VALUES_HELPER].to_pylist().count(1) == 1
    assert counted["t"][2].as_py() is None
    assert cut[2].as_py() == datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)


def test_a_rejected_int96_is_shown_with_its_century_and_all_digits(tmp_path: Path) -> None:
    far = [datetime(9999, 12, 31), datetime(1, 1, 1)]
    columns = {
        "far": pa.array(far, pa.timestamp("us")),
        "in_list": pa.array([[far[0]], [None]], pa.list_(pa.timestamp("us"))),
        "t": pa.array([1_001, 0], pa.timestamp("ns")),
    }
    path = write(tmp_path / "a", columns, use_deprecated_int96_timestamps=True)

    rejects: Any = read(path, on_bad_value="QUARANTINE")[REJECTED_HELPER].to_pylist()

    assert rejects[1] is None
    assert json.loads(rejects[0]["raw_record"]) == {
        "far": "9999-12-31 00:00:00.000000000",
        "in_list": ["9999-12-31 00:00:00.000000000"],
        "t": "1970-01-01 00:00:00.000001001",
    }


@pytest.mark.parametrize("name", LOSSY)
def test_a_value_that_loses_digits_is_named(tmp_path: Path, name: str) -> None:
    content, value = LOSSY[name]
    table = pa.table({"id": [1, 2, 3], "x": content})
    path = write(
        tmp_path / "a.parquet", pa.concat_tables([table.slice(0, 2), table]), row_group_size=2
    )

    with pytest.raises(LoadFailed) as raised:
        read(path)
    counted = read(path, on_bad_value="NULL")
    cut = read(path, on_loss="TRUNCATE")

    assert f"reading `{path}`, row group 3, row 1: column `x" in raised.value.message
    assert f"the value `{value}` cannot be loaded" in raised.value.message
    assert "`on_loss: TRUNCATE`" in (raised.value.hint or "")
    assert counted[BAD_VALUES_HELPER].to_pylist() == [0, 0, 0, 0, 1]
    assert cut["x"][4].as_py() is not None
    assert read(path, without=["x"])["id"].to_pylist() == [1, 2, 1, 2, 3]


def test_the_first_ten_bad_values_are_named_and_all_of_them_counted(tmp_path: Path) -> None:
    nanos = pa.array([0, 1] * 40, pa.timestamp("ns"))
    path = write(tmp_path / "a", {"t": nanos, "u": pa.nulls(80)}, row_group_size=30)

    with pytest.raises(LoadFailed) as raised:
        read(path)

    _, file, *texts, more = raised.value.message.splitlines()
    assert [text.partition(": column")[0] for text in texts] == [
        f"    row group 1, row {row}" for row in range(2, 21, 2)
    ]
    assert (file, more) == (f"  reading `{path}`:", "  and 30 more")


def test_an_int96_that_loses_digits_is_found_at_every_depth(tmp_path: Path) -> None:
    kinds: dict[str, pa.DataType] = {
        "s": pa.struct([("a", pa.struct([("t", pa.timestamp("ns"))])), ("n", pa.int32())]),
        "l": pa.list_(pa.timestamp("ns")),
        "m": pa.map_(pa.string(), pa.timestamp("ns")),
    }
    values: dict[str, Any] = {
        "s": [{"a": {"t": 1_000}, "n": 1}, None, {"a": {"t": 1_500}, "n": 3}],
        "l": [[1_000, None], None, [2_000, 1_500]],
        "m": [[("x", 1_000)], None, [("y", 1_500)]],
    }
    for name, kind in kinds.items():
        content = {"id": [1, 2, 3], name: pa.array(values[name], kind)}
        path = write(tmp_path / name, content, use_deprecated_int96_timestamps=True)

        with pytest.raises(LoadFailed, match=rf"row 3: column `{name}\..*000001500`"):
            read(path)
        counted = read(path, on_bad_value="NULL")
        cut = read(path, on_loss="TRUNCATE")

        assert counted[BAD_VALUES_HELPER].to_pylist() == [0, 0, 1]
        assert [value is None for value in counted[name].to_pylist()] == [False, True, False]
        assert "1970, 1, 1, 0, 0, 0, 1, tz" in repr(cut[name][2].as_py())


def test_a_map_with_a_key_twice_is_bad(tmp_path: Path) -> None:
    plain = pa.map_(pa.int32(), pa.string())
    twice = [[(1, "a"), (2, "b")], None, [(7, "a"), (8, "b"), (7, "c")], []]
    other = pa.array([[(time(1), 1), (time(1), 2)]] * 4, pa.map_(pa.time64("us"), pa.int32()))
    first = write(tmp_path / "a", {"m": pa.array(twice, plain)})
    within = write(
        tmp_path / "b",
        {"s": pa.array([[{"m": one}] for one in twice], pa.list_(pa.struct([("m", plain)])))},
    )
    texts = write(tmp_path / "c", {"m": other})

    with pytest.raises(LoadFailed, match=r"row 3: column `m`: the value `7` .* has this key twice"):
        read(first)
    with pytest.raises(LoadFailed, match=r"row 3: column `s\.element\.m`: the value `7`"):
        read(within)
    with pytest.raises(LoadFailed, match=r"row 1: column `m`: the value `01:00:00.000000`"):
        read(texts)
    counted = read(first, on_bad_value="NULL")
    assert counted["m"].to_pylist() == [twice[0], None, None, []]
    assert counted[BAD_VALUES_HELPER].to_pylist() == [0, 0, 1, 0]
    assert read(within, on_bad_value="NULL")["s"].to_pylist()[2] == [{"m": None}]


def test_a_column_that_is_not_loaded_may_be_damaged(tmp_path: Path) -> None:
    rows = {"id": range(100), "x": [f"text {number}" for number in range(100)]}
    path = write(tmp_path / "a", rows, compression="none", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    data = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)

    with pytest.raises(LoadFailed, match=str(path)):
        read(path)
    assert read(path, without=["x"])["id"].to_pylist() == list(range(100))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_a_page_that_differs_from_its_checksum_is_refused(
    tmp_path: Path, version: Any, dictionary: bool
) -> None:
    content = {"id": [number % 7 for number in range(1_000)]}
    path = write(
        tmp_path / "a",
        content,
        compression="none",
        use_dictionary=dictionary,
        data_page_version=version,
        write_page_checksum=True,
    )
    assert read(path).to_pydict() == content
    flip_bit(path)

    with pytest.raises(LoadFailed, match=rf"{path}.*checksum"):
        read(path)


ROWS_25, ROWS_20, ROWS_30 = b"\x16\x32", b"\x16\x28", b"\x16\x3c"
"""Numbers of rows or values as footers have them: of the file, of a column, of a row group."""


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("counts", list(product((ROWS_25, ROWS_20, ROWS_30), repeat=3)))
def test_other_rows_than_the_footer_says_are_refused(
    tmp_path: Path, counts: tuple[bytes, ...], nested: bool
) -> None:
    column = [[number] if nested else number for number in range(25)]
    path = write(tmp_path / "a", {"n": column}, **FOOTER_ALONE)
    replace_bytes(path, ROWS_25, *counts)
    # What repeats may have any number of values, and no count of pages is asked where all agree.
    of_file, of_column, of_group = counts
    agrees = of_file == of_group != ROWS_30 and (nested or of_column == of_file)

    if agrees:
        assert read(path).num_rows == (25 if of_file == ROWS_25 else 20)
    else:
        with pytest.raises(LoadFailed, match=rf"reading `{path}`: .* \d+ (rows|values)"):
            read(path)


FOOTER_ALONE: dict[str, Any] = {
    "compression": "none",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
}
"""Options of files in which numbers of rows are easily found."""


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_encrypted_columns_are_refused(tmp_path: Path, plaintext_footer: bool) -> None:
    content = pa.table({"id": [1], "secret": ["x"]})
    path = write_encrypted(tmp_path / "a", content, plaintext_footer=plaintext_footer)

    with pytest.raises(LoadFailed, match=rf"reading `{path}`: it has .*encrypted") as caught:
        footers([path])
    assert caught.value.hint == "write it without encryption"


def test_a_footer_with_other_bytes_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"n": range(25)}, **FOOTER_ALONE)
    content, end = path.read_bytes()[:-8], path.read_bytes()[-8:]
    # In place of the byte that ends it: a list of a UUID, which no footer has, its end, and more.
    more = b"\x79\x1d" + bytes(16) + b"\0" + b"more"
    length = int.from_bytes(end[:4], "little") - 1 + len(more)
    path.write_bytes(content[:-1] + more + length.to_bytes(4, "little") + end[4:])

    with pytest.raises(LoadFailed, match="damaged: its footer"):
        footers([path])


def test_a_level_that_cannot_be_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"n": range(25)}, **FOOTER_ALONE)
    replace_bytes(path, LEVELS_1, LEVELS_3)

    with pytest.raises(LoadFailed, match=rf"reading `{path}`"):
        read(path)


LEVELS_1, LEVELS_3 = (bytes((2, 0, 0, 0, 25 << 1, level)) for level in (1, 3))
"""The levels of 25 values of a column that may be null: they have a value, and what cannot be."""


def test_digits_are_cut_off_and_not_rounded(tmp_path: Path) -> None:
    content = {
        "ns": pa.array([-1, 1_999], pa.timestamp("ns")),
        "t": pa.array([86_399_999_999_999, 1_999], pa.time64("ns")),
    }
    path = write(tmp_path / "a.parquet", content)

    assert read(path, on_loss="TRUNCATE").to_pydict() == {
        "ns": [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1, 0, 0, 0, 1)],
        "t": ["23:59:59.999999", "00:00:00.000001"],
    }


def test_the_key_of_a_map_is_never_null(tmp_path: Path) -> None:
    content = pa.array([[(1, "a")]], pa.map_(pa.time64("ns"), pa.string()))
    path = write(tmp_path / "a.parquet", {"m": content})

    with pytest.raises(LoadFailed, match=r"column `m\.key`"):
        read(path, on_bad_value="NULL")


def test_a_time_that_is_none_is_bad_and_midnight_may_be_the_end(tmp_path: Path) -> None:
    end = write(tmp_path / "end", {"t": pa.array([86_400_000_000]).view(pa.time64("us"))})
    late = write(tmp_path / "late", {"t": pa.array([0, 86_400_000_001]).view(pa.time64("us"))})

    assert read(end)["t"].to_pylist() == ["24:00:00.000000"]
    with pytest.raises(LoadFailed, match=r"row 2: .* `86400000001` .* not a time of day"):
        read(late)


def test_an_instant_beyond_microseconds_is_bad(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"t": pa.array([0, 2**62], pa.timestamp("ms", "UTC"))})

    with pytest.raises(LoadFailed, match=r"row 2: column `t`: .* beyond what microseconds"):
        read(path)
    assert read(path, on_bad_value="NULL")[BAD_VALUES_HELPER].to_pylist() == [0, 1]


_NOT_UTF8 = pa.array([b"fine", b"caf\xe9", None])
_LARGE = pa.array([b"fine", b"caf\xe9", None], pa.large_binary())
BAD_TEXT: dict[str, Any] = {
    "text": _NOT_UTF8.view(pa.string()),
    "large text": _LARGE.view(pa.large_string()),
    "element": pa.ListArray.from_arrays([0, 1, 2, 3], _NOT_UTF8.view(pa.string())),
    "field": pa.StructArray.from_arrays([_NOT_UTF8.view(pa.string())], ["f"]),
}


@pytest.mark.parametrize("name", BAD_TEXT)
def test_text_that_is_not_utf8_is_bad(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a.parquet", {"id": [1, 2, 3], "t": BAD_TEXT[name]})

    with pytest.raises(LoadFailed, match=r"row 2: column `t.*`caf\\xe9` cannot .* it is not UTF-8"):
        read(path)
    counted = read(path, on_bad_value="NULL")
    assert counted[BAD_VALUES_HELPER].to_pylist() == [0, 1, 0]
    assert "caf" not in str(counted["t"].to_pylist())
    rejected: list[Any] = read(path, on_bad_value="QUARANTINE")[REJECTED_HELPER].to_pylist()
    assert [one and one["column_value"] for one in rejected] == [None, "caf\\xe9", None]
    assert "caf\\\\xe9" in rejected[1]["raw_record"]


def test_columns_are_united_by_name_in_any_order(tmp_path: Path) -> None:
    first = write(
        tmp_path / "1", {"id": pa.array([1], pa.int32()), "f": pa.array([0.5], pa.float32())}
    )
    second = write(
        tmp_path / "2",
        {
            "new": ["x"],
            "f": [0.1],
            "id": [2**40],
            "d": pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
        },
    )
    third = write(
        tmp_path / "3",
        {"d": pa.array([Decimal("123456.125")], pa.decimal128(9, 3)), "id": pa.nulls(1)},
    )

    found = read(first, second, third)

    kinds: dict[str, pa.DataType] = {
        "id": pa.int64(),
        "f": pa.float64(),
        "new": pa.string(),
        "d": pa.decimal128(9, 3),
    }
    assert found.schema == pa.schema(kinds)
    assert found.to_pylist() == [
        {"id": 1, "f": 0.5, "new": None, "d": None},
        {"id": 2**40, "f": 0.1, "new": "x", "d": Decimal("1.500")},
        {"id": None, "f": None, "new": None, "d": Decimal("123456.125")},
    ]


def test_fields_are_united_at_every_depth(tmp_path: Path) -> None:
    first = write(
        tmp_path / "1",
        {
            "s": pa.array(
                [[{"a": 1, "b": "x"}]], pa.list_(pa.struct([("a", pa.int8()), ("b", pa.string())]))
            )
        },
    )
    second = write(
        tmp_path / "2",
        {
            "s": pa.array(
                [[{"c": True, "a": 2**33}, None]],
                pa.list_(pa.struct([("c", pa.bool_()), ("a", pa.int64())])),
            )
        },
    )

    assert read(first, second)["s"].to_pylist() == [
        [{"a": 1, "b": "x", "c": None}],
        [{"a": 2**33, "b": None, "c": True}, None],
    ]


@pytest.mark.parametrize("whole", [pa.int8(), pa.uint32(), pa.int64()])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_whole_numbers_and_doubles_are_doubles(
    tmp_path: Path, whole: pa.DataType, kind: pa.DataType
) -> None:
    structs = pa.array([{"a": 7}], pa.struct([("a", whole)]))
    first = write(tmp_path / "1", {"v": pa.array([7], whole), "s": structs})
    structs = pa.array([{"a": 0.5}], pa.struct([("a", kind)]))
    second = write(tmp_path / "2", {"v": pa.array([0.5], kind), "s": structs})

    for paths in ((first, second), (second, first)):
        found = read(*paths)
        assert found.schema.field("v").type == pa.float64()
        values: list[Any] = found.to_pylist()
        assert sorted(row["v"] for row in values) == [0.5, 7.0]
        assert sorted(row["s"]["a"] for row in values) == [0.5, 7.0]
        reasons = [column.not_spark for column in columns_of(*paths)]
        names = [reason.split("`")[1] for reason in reasons]
        assert names == ["v", "s.a"]
        assert all(f"in `{path}`" in reason for path in paths for reason in reasons)


def test_whole_number_that_is_no_double_is_bad(tmp_path: Path) -> None:
    numbers = [2**53, 2**53 + 1, None, -(2**63), 2**63 - 1]
    first = write(tmp_path / "1", {"v": pa.array(numbers, pa.int64())})
    second = write(tmp_path / "2", {"v": [0.5]})

    with pytest.raises(LoadFailed, match="the nearest double is another number") as failed:
        read(first, second)
    counted = read(first, second, on_bad_value="NULL")

    assert "column `v`: the value `9007199254740993` cannot be loaded" in failed.value.message
    assert "row 5" in failed.value.message
    assert counted["v"].to_pylist() == [2.0**53, None, None, -(2.0**63), None, 0.5]
    assert counted[BAD_VALUES_HELPER].to_pylist() == [0, 1, 0, 0, 1, 0]


APART: dict[str, tuple[pa.DataType, pa.DataType, str, str]] = {
    "decimal and double": (pa.decimal128(5, 1), pa.float64(), "decimal(5,1)", "double"),
    "int and text": (pa.int64(), pa.string(), "bigint", "text"),
    "text and binary": (pa.string(), pa.binary(), "text", "binary"),
    "instant and local": (
        pa.timestamp("us", "UTC"),
        pa.timestamp("ns"),
        "timestamp",
        "timestamp_ntz",
    ),
    "date and timestamp": (pa.date32(), pa.timestamp("us"), "date", "timestamp_ntz"),
    "too many digits": (pa.decimal128(38, 0), pa.decimal128(9, 3), "decimal(38,0)", "decimal(9,3)"),
    "list and value": (pa.list_(pa.int32()), pa.int32(), "array<int>", "int"),
}


@pytest.mark.parametrize("name", APART)
def test_incompatible_types_name_both_files(tmp_path: Path, name: str) -> None:
    one, other, first, second = APART[name]
    paths = [
        write(tmp_path / str(number), {"x": pa.array([None], kind), "y": [1]})
        for number, kind in enumerate((one, one, other))
    ]

    with pytest.raises(LoadFailed) as raised:
        columns_of(*paths)

    assert raised.value.message == (
        f"the column `x` is {first} in `{paths[0]}` and {second} in `{paths[2]}`"
    )
    assert [column.name for column in columns_of(*paths, without=["x"])] == ["y"]


def test_integers_and_unsigned_integers_meet_in_a_decimal(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "1", {"n": pa.array([2**64 - 1], pa.uint64())}),
        write(tmp_path / "2", {"n": pa.array([-1], pa.int64())}),
    ]

    assert read(*paths)["n"].to_pylist() == [Decimal(2**64 - 1), Decimal(-1)]


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_list(pa.time64("us")),
        pa.list_(pa.time64("us"), 2),
        pa.list_view(pa.time64("us")),
        pa.large_list_view(pa.time64("us")),
    ],
    ids=str,
)
def test_lists_of_every_layout_are_lists(tmp_path: Path, kind: pa.DataType) -> None:
    values = [None, [time(1), None], None, [time(2), time(3)], None]
    path = write(tmp_path / "a", {"l": pa.array(values, kind)})

    assert read(path)["l"].to_pylist() == [
        None,
        ["01:00:00.000000", None],
        None,
        ["02:00:00.000000", "03:00:00.000000"],
        None,
    ]


def test_a_place_is_named_for_each_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"n": range(5)}, row_group_size=2)

    assert read(path, places=True)[PLACE_HELPER].to_pylist() == [
        {"source_file": str(path), "row_group": group, "row_number": row}
        for group, row in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1))
    ]


def test_spark_settings_still_decide_types(tmp_path: Path) -> None:
    content = {
        "b": pa.array([b"a"]),
        "ns": pa.array([1_500], pa.timestamp("ns")),
        "local": pa.array([0], pa.timestamp("us")),
    }
    path = write(tmp_path / "a", content)
    settings = ParquetSettings(True, True, True)

    kinds = [type_name(column.kind) for column in columns_of(path, settings=settings)]

    assert kinds == ["text", "bigint", "timestamp"]


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"no parquet at all")

    with pytest.raises(LoadFailed, match=f"reading `{path}`"):
        columns_of(path)


def test_two_columns_of_one_name_are_refused_where_they_are_loaded(tmp_path: Path) -> None:
    twins = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "a"])
    path = write(tmp_path / "a", twins)

    with pytest.raises(LoadFailed, match="two columns named `a`"):
        columns_of(path)
    assert [column.name for column in columns_of(path, without=["a"])] == ["b"]


def test_name_that_is_not_utf8_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"names": [1]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"names", b"n\xecmes"))

    with pytest.raises(LoadFailed, match="a name in its schema is not UTF-8"):
        read_footers(file_states([path]), FileBytes(), ParquetSettings())
