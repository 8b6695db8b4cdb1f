"""ORC files: columns and values are those of docs/orc-files.md."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
import zlib
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, PLACE_HELPER
from lakeload_jobs.sources.batch_sizes import BATCH_BYTES
from lakeload_jobs.sources.files.formats.orc import reader as orc_reader
from lakeload_jobs.sources.files.formats.orc.reader import OrcReader, read_orc_footers
from lakeload_jobs.sources.files.typed.columns import INSTANT, kind_in_table, type_name, unite
from lakeload_jobs.sources.files.typed.rows import ReadTyped, TypedPart, split_files
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from tests.environments import EXHAUSTIVE, many
from tests.unit.sources.files.formats.parquet.test_reader import DOCS, shown
from tests.unit.sources.files.typed.typed_files import file_states, read_rows, replace_bytes


def read(*paths: Path, **options: Any) -> pa.Table:
    """Return the rows of files as they are handed on."""
    schemas = read_orc_footers(file_states(paths), FileBytes())
    return read_rows(schemas, OrcReader(FileBytes()), **options)


CORPUS = Path(__file__).parents[5] / "corpus" / "files" / "orc"
NANOS = pa.timestamp("ns")
EXAMPLES = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "smallint": "smallint",
    "int": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "string, varchar": "varchar",
    "char(5)": "char",
    "binary": "binary",
    "decimal(5,2)": "decimal",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp with local time zone": "instant",
    "struct": "struct",
    "array": "array",
    "map": "map",
}


def rows_of_the_page() -> list[tuple[str, str, str]]:
    text = (DOCS / "orc-files.md").read_text(encoding="utf-8").split("## Types of ORC")[1]
    lines = text.split("\n#")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [(row[0], row[1], row[2].strip("`")) for row in rows[1:]]


def test_the_page_has_an_example_of_each_type_of_orc() -> None:
    assert [name for name, _, _ in rows_of_the_page()] == list(EXAMPLES)


@pytest.mark.parametrize(("name", "kind", "value"), rows_of_the_page())
def test_a_type_of_orc_is_read_as_the_page_says(name: str, kind: str, value: str) -> None:
    table = read(CORPUS / f"page_{EXAMPLES[name]}.orc")

    assert type_name(table.schema.field("v").type) == kind
    assert shown(table["v"].to_pylist()[0]) == value


def write(path: Path, table: pa.Table | dict[str, Any], **options: Any) -> Path:
    orc.write_table(table if isinstance(table, pa.Table) else pa.table(table), str(path), **options)
    return path


def values(*paths: Path, **options: Any) -> list[Any]:
    return read(*paths, **options)["v"].to_pylist()


def test_a_large_file_is_read_in_parts_and_in_order(tmp_path: Path) -> None:
    table = pa.table({"v": range(40_000), "t": [f"{n:0200d}" for n in range(40_000)]})
    path = write(tmp_path / "a.orc", table, stripe_size=1 << 20, batch_size=512)

    found = read(path, places=True)

    (schema,) = read_orc_footers([FileState(str(path), path.stat().st_size, 0)], FileBytes())
    assert len(schema.units) > 3
    assert found.select(["v", "t"]).equals(table)
    places: Any = found[PLACE_HELPER].to_pylist()
    assert [place["row_number"] for place in places] == list(range(1, 40_001))


def test_nested_values_are_cut_into_batches(tmp_path: Path) -> None:
    lists = [[{"at": datetime(2024, 1, 1), "n": n}] * (n % 64) for n in range(20_000)]
    kind = pa.list_(pa.struct([("at", pa.timestamp("us")), ("n", pa.int64())]))
    written = pa.array(lists, kind)
    path = write(tmp_path / "a.orc", {"v": written})

    found = read(path)["v"]

    assert found.num_chunks > 1
    assert found.cast(kind).combine_chunks().equals(written)


def open_stripe(path: Path, table: pa.Table) -> Any:
    """Write a table as one stripe, and open it for reads in batches."""
    schemas = read_orc_footers(file_states([write(path, table, stripe_size=1 << 30)]), FileBytes())
    assert len(schemas[0].units) == 1
    part = TypedPart(schemas[0].file, schemas[0].units)
    return OrcReader(FileBytes()).open(part, table.column_names)


def test_a_stripe_is_decoded_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_reader, "BATCH_BYTES", BATCH_BYTES // 8)
    at = [[{"at": datetime(1969, 12, 31, 23, 59, n % 60, n)}] * (n % 5) for n in range(5_000)]
    table = pa.table(
        {
            "t": [f"{n}" * 200 for n in range(5_000)],
            "v": pa.array(at, pa.list_(pa.struct([("at", pa.timestamp("us"))]))),
        }
    )

    with open_stripe(tmp_path / "a.orc", table) as batches:
        found = [pa.table(dict(batch.columns)) for batch in batches]

    assert len(found) > 3
    assert max(part.nbytes for part in found) <= BATCH_BYTES // 8
    assert pa.concat_tables(found).equals(table)


def test_a_file_that_ends_while_it_is_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    table = pa.table({"t": [f"{n:01000d}" for n in range(50_000)]})

    with open_stripe(path, table) as batches:
        next(batches)
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(LoadFailed) as failure:
            list(batches)

    assert failure.value.message == (
        f"reading `{path}`: the ORC file is damaged: it ends too early"
    )


def test_a_stripe_that_is_left_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    read_at = orc_reader._bytes_at
    sizes: list[int] = []

    def counted(stream: Any, start: int, size: int) -> bytes:
        sizes.append(size)
        return read_at(stream, start, size)

    monkeypatch.setattr(orc_reader, "_bytes_at", counted)
    monkeypatch.setattr(orc_reader, "BATCH_BYTES", BATCH_BYTES // 8)
    path = tmp_path / "a.orc"
    table = pa.table(
        {"t": [f"{n:01000d}" for n in range(12_000)], "v": [datetime(1970, 1, 1)] * 12_000}
    )

    with open_stripe(path, table) as batches:
        next(batches)
    del batches

    assert failed == []
    assert sum(sizes) < path.stat().st_size // 2


def test_orc_columns_not_loaded_are_not_read(tmp_path: Path) -> None:
    texts = [f"needle {n:03d}" for n in range(100)]
    path = write(tmp_path / "a.orc", {"v": range(100), "t": texts, "s": [{"x": "needle"}] * 100})
    content = path.read_bytes()
    size = len("".join(texts))
    at = content.index("".join(texts).encode())
    path.write_bytes(content[:at] + b"\xff" * size + content[at + size :])

    assert read(path, names=["v"])["v"].to_pylist() == list(range(100))
    with pytest.raises(LoadFailed, match="column `t`"):
        read(path)


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        (pa.array([0, 1001], NANOS), "1970-01-01 00:00:00.000001001", "digits below a micro"),
        (pa.array([0, -1], NANOS), "1969-12-31 23:59:59.999999999", "digits below a micro"),
        (pa.array([None, 1], pa.timestamp("ns", "UTC")), "000000001Z", "digits below a micro"),
        (pa.array([[0], [1]], pa.list_(NANOS)), "00:00:00.000000001", "digits below a micro"),
        (pa.array([{"x": 0}, {"x": 1}], pa.struct([("x", NANOS)])), ".000000001", "digits below"),
    ],
)
def test_a_bad_value_is_named_counted_or_rejected(
    tmp_path: Path, column: Any, text: str, reason: str
) -> None:
    path = write(tmp_path / "a.orc", {"v": column, "at": pa.array([5000, 6000], NANOS)})

    with pytest.raises(LoadFailed) as failure:
        read(path)
    nulls = read(path, on_bad_value="NULL")
    aside = read(path, on_bad_value="QUARANTINE")

    assert f"reading `{path}`, row 2: column `v" in failure.value.message
    assert text in failure.value.message
    assert reason in failure.value.message
    assert failure.value.hint is not None
    assert "on_loss: TRUNCATE" in failure.value.hint
    assert nulls[BAD_VALUES_HELPER].to_pylist() == [0, 1]
    rejects: Any = aside[REJECTED_HELPER].to_pylist()
    reject = rejects[1]
    assert (reject["source_file"], reject["row_group"], reject["row_number"]) == (
        str(path),
        None,
        2,
    )
    raw = json.loads(reject["raw_record"])
    assert text in json.dumps(raw["v"])
    assert raw["at"] == "1970-01-01 00:00:00.000006"


def test_digits_are_cut_off_towards_the_past() -> None:
    path = CORPUS / "refused_old_nanos_pyorc.orc"

    _, found = values(path, on_loss="TRUNCATE")
    aside: Any = read(path, on_bad_value="QUARANTINE")[REJECTED_HELPER].to_pylist()[1]

    expected = datetime(1970, 1, 1) - timedelta(seconds=62_000_000_000) + timedelta(microseconds=1)
    assert found == expected
    assert json.loads(aside["raw_record"])["v"] == f"{expected.isoformat(' ')}001"


def test_orc_timestamp_beyond_microseconds_is_damage() -> None:
    path = CORPUS / "refused_far_pyorc.orc"

    with pytest.raises(LoadFailed, match="a time that is more than 292,000 years away"):
        read(path, on_loss="TRUNCATE")


def with_calendar(path: Path, number: int) -> Path:
    """Make the footer of a file that is not packed name a calendar."""
    content = path.read_bytes()
    postscript = content[-1 - content[-1] : -1]
    assert postscript[0] == 8, "the length of the footer comes first"
    length, digits = 0, 0
    while True:
        digits += 1
        length |= (postscript[digits] & 0x7F) << 7 * (digits - 1)
        if postscript[digits] < 0x80:
            break
    length += 2
    varint = bytes(
        (length >> 7 * place & 0x7F) | (0x80 if place < digits - 1 else 0)
        for place in range(digits)
    )
    postscript = b"\x08" + varint + postscript[1 + digits :]
    footer = bytes((11 << 3, number))
    body = content[: -1 - content[-1]]
    path.write_bytes(body + footer + postscript + bytes((len(postscript),)))
    return path


@pytest.mark.parametrize(
    ("stored", "read_as"),
    [
        ("1582-10-15", "1582-10-15"),
        ("1582-10-14", "1582-10-04"),
        ("1500-03-11", "1500-03-01"),
        ("1500-03-09", "1500-02-28"),
        ("1000-03-05", "1000-02-28"),
        ("1000-03-07", "1000-03-01"),
        ("0300-02-28", "0300-02-28"),
        ("0300-03-02", "0300-03-01"),
        ("0001-01-01", "0001-01-03"),
        ("2024-02-29", "2024-02-29"),
    ],
)
def test_days_of_the_julian_calendar_keep_their_names(
    tmp_path: Path, stored: str, read_as: str
) -> None:
    day = date.fromisoformat(stored)
    at = datetime.combine(day, time(12, 30))
    table = {"v": pa.array([day]), "at": pa.array([at], pa.timestamp("us"))}
    path = with_calendar(write(tmp_path / "a.orc", table), 1)
    expected = date.fromisoformat(read_as)

    assert read(path).to_pylist() == [{"v": expected, "at": datetime.combine(expected, at.time())}]
    assert values(with_calendar(write(tmp_path / "b.orc", table), 2)) == [day]


@pytest.mark.parametrize("name", ["v", "at"])
def test_a_day_that_only_the_julian_calendar_has_is_refused(tmp_path: Path, name: str) -> None:
    table = {"v": pa.array([date(1500, 3, 10)]), "at": pa.array([datetime(1500, 3, 10, 1)])}
    path = with_calendar(write(tmp_path / "a.orc", table), 1)

    with pytest.raises(LoadFailed, match=rf"`{path}`: it has the day `1500-02-29`"):
        read(path, names=[name])


def test_text_that_is_not_utf8_is_bad_in_orc_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.orc", {"v": ["good", "bXd"]})
    path.write_bytes(path.read_bytes().replace(b"bXd", b"b\xffd"))

    with pytest.raises(LoadFailed, match=r"row 2: column `v`: the value `b\\xffd`.*not UTF-8"):
        read(path)


def test_earlier_versions_loaded_timestamps_as_instants() -> None:
    names = ["timestamp", "instant", "list_of_times", "date"]
    paths = [CORPUS / f"{name}_pyorc_zlib.orc" for name in names]
    files = [FileState(str(path), path.stat().st_size, 0) for path in paths]

    stored = [schema.columns[1].stored for schema in read_orc_footers(files, FileBytes())]

    assert stored == [INSTANT, None, pa.list_(INSTANT), None]


def test_a_nested_timestamp_stays_what_a_table_has_when_other_fields_grow(tmp_path: Path) -> None:
    def column(number: Any) -> pa.Table:
        kind = pa.struct([("at", pa.timestamp("us")), ("n", number)])
        return pa.table({"v": pa.array([{"at": datetime(2024, 1, 1), "n": 1}], kind)})

    paths = [
        write(tmp_path / f"{number}.orc", column(number)) for number in (pa.int32(), pa.int64())
    ]
    files = [FileState(str(path), path.stat().st_size, 0) for path in paths]
    schemas = read_orc_footers(files, FileBytes())
    in_table = pa.struct([("at", INSTANT), ("n", pa.int64())])

    for some in (schemas, schemas[:1], schemas[1:]):
        (united,) = unite(some, ["v"])
        assert kind_in_table(united, in_table) == in_table
    assert kind_in_table(unite(schemas, ["v"])[0], None).field("at").type == pa.timestamp("us")
    reader = ReadTyped(pa.schema([("v", in_table)]), OrcReader(FileBytes()))
    splits = split_files(schemas, reader, base=None, parallelism=1)
    rows = [
        row for part in splits.parts for batch in splits.read(part) for row in batch.to_pylist()
    ]
    assert rows == [{"v": {"at": datetime(2024, 1, 1, tzinfo=UTC), "n": 1}}] * 2


def test_a_file_whose_rows_are_no_structs_is_refused() -> None:
    with pytest.raises(LoadFailed, match="its rows have no columns"):
        read(CORPUS / "refused_no_struct_pyorc.orc")


def test_orc_files_are_united_by_name(tmp_path: Path) -> None:
    first = write(tmp_path / "a.orc", {"v": pa.array([1], pa.int8())})
    second = write(tmp_path / "b.orc", {"late": ["y"], "v": [2**40]})
    empty = tmp_path / "c.orc"
    empty.write_bytes(b"")

    assert read(first, second, empty).to_pylist() == [
        {"v": 1, "late": None},
        {"v": 2**40, "late": "y"},
    ]


def test_whole_numbers_and_doubles_are_doubles(tmp_path: Path) -> None:
    first = write(tmp_path / "a.orc", {"v": pa.array([7], pa.int64())})
    second = write(tmp_path / "b.orc", {"v": [0.5]})
    large = write(tmp_path / "c.orc", {"v": pa.array([2**53 + 1], pa.int64())})

    assert read(first, second)["v"].to_pylist() == [7.0, 0.5]
    with pytest.raises(LoadFailed, match="the nearest double is another number"):
        read(second, large)


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_a_file_that_is_cut_off_or_changed_is_damaged(tmp_path: Path, codec: str) -> None:
    table = {"v": pa.array([f"{n}" for n in range(500)]), "at": pa.array(range(500), NANOS)}
    path = write(tmp_path / "a.orc", table, compression=codec)
    content = path.read_bytes()

    for cut in (1, 5, 40, len(content) // 2):
        path.write_bytes(content[:-cut])
        with pytest.raises(LoadFailed, match=r"reading `.*a\.orc`"):
            read(path)


MASKS = (0x01, 0x55, 0xFF)


def test_damage_of_a_footer_ends_in_a_message(tmp_path: Path) -> None:
    table = {"v": pa.array([1, None] * 20), "at": pa.array([*range(40)], pa.timestamp("ms"))}
    path = write(tmp_path / "a.orc", table)
    content = path.read_bytes()

    for place in range(len(content) - 120, len(content)):
        for mask in MASKS if EXHAUSTIVE else (MASKS[place % 3],):
            changed = bytes((content[place] ^ mask,))
            path.write_bytes(content[:place] + changed + content[place + 1 :])
            with suppress(LoadFailed):
                read(path)


@pytest.mark.parametrize("codec", ["zlib", "snappy", "zstd", "lz4"])
def test_a_footer_with_too_long_a_chunk_is_damaged(tmp_path: Path, codec: str) -> None:
    table = {f"column_{number}": ["", ""] for number in range(9)}
    path = write(tmp_path / "a.orc", table, compression=codec, compression_block_size=65536)
    content = path.read_bytes()
    content = content.replace(b"\x18\x80\x80\x04", b"\x18\xa0\x80\x00")
    path.write_bytes(content)

    with pytest.raises(LoadFailed, match="damaged: a footer has a chunk of more than 32 bytes"):
        read(path)


def with_footer(path: Path, packed: bytes, block: int | None = None) -> None:
    """Give a file a footer of this one packed chunk, and perhaps another size of blocks."""
    content = path.read_bytes()
    end = len(content) - 1 - content[-1]
    postscript = content[end:-1]
    said = orc_reader._Message(postscript)
    size = said.number(1)
    chunk = (len(packed) << 1).to_bytes(3, "little") + packed
    others = postscript.removeprefix(orc_reader._encoded((1, size)))
    if block is not None:
        others = others.replace(
            orc_reader._encoded((3, said.number(3))), orc_reader._encoded((3, block))
        )
    postscript = orc_reader._encoded((1, len(chunk))) + others
    parts = (content[: end - size], chunk, postscript, bytes((len(postscript),)))
    path.write_bytes(b"".join(parts))


def test_a_footer_of_one_large_chunk_is_read(tmp_path: Path) -> None:
    name = "x" * (5 << 20)
    table = {name: pa.array([7])}
    path = write(tmp_path / "a.orc", table, compression="lz4", compression_block_size=6 << 20)
    content = path.read_bytes()
    end = len(content) - 1 - content[-1]
    size = orc_reader._Message(content[end:-1]).number(1)
    # Arrow does not pack it.
    with_footer(path, pa.Codec("lz4_raw").compress(content[end - size + 3 : end], asbytes=True))

    assert path.stat().st_size < size
    assert read(path).to_pydict() == {name: [7]}


def packed(codec: str, size: int) -> bytes:
    """Return so many zeros as a chunk of ORC."""
    zeros = bytes(size)
    if codec == "zlib":
        return zlib.compress(zeros)[2:-4]
    name: Any = "lz4_raw" if codec == "lz4" else codec
    return pa.Codec(name).compress(zeros, asbytes=True)


@pytest.mark.parametrize("block", [65536, (1 << 32) - 1])
@pytest.mark.parametrize("codec", ["zlib", "snappy", "zstd", "lz4"])
def test_a_footer_is_not_unpacked_beyond_the_bound(tmp_path: Path, codec: str, block: int) -> None:
    path = write(tmp_path / "a.orc", {"v": [1]}, compression=codec)
    with_footer(path, packed(codec, 100 << 20), block)
    bound = min(block, (1 << 23) - 1)

    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with pytest.raises(LoadFailed, match=f"a footer has a chunk of more than {bound:,} bytes"):
        read(path)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert taken < 32 << 20
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("codec", ["zlib", "snappy", "zstd", "lz4"])
def test_a_chunk_of_a_footer_may_have_just_the_size_of_a_block(codec: str) -> None:
    chunk = packed(codec, 65536)
    data = (len(chunk) << 1).to_bytes(3, "little") + chunk

    assert orc_reader._unpacked(codec, data, 65536) == bytes(65536)
    with pytest.raises(orc_reader._Damaged, match="more than 65,535 bytes"):
        orc_reader._unpacked(codec, data, 65535)
    short = (len(chunk) - 3 << 1).to_bytes(3, "little") + chunk[:-3]
    with pytest.raises(orc_reader._Damaged, match="cannot be unpacked"):
        orc_reader._unpacked(codec, short, 65536)


def test_file_that_is_not_orc_is_rejected_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    for content in (b"id\n1\n", b"PAR1" * 9, b"\x00"):
        path.write_bytes(content)
        with pytest.raises(LoadFailed, match=r"a\.orc`: it is not an ORC file"):
            read(path)
    path.write_bytes(b"")
    with pytest.raises(LoadFailed, match="none of the files has columns"):
        read(path)


def test_a_codec_that_is_not_read_is_named_in_orc_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.orc", {"v": [1]}, compression="zstd")
    content = bytearray(path.read_bytes())
    place = content.rindex(b"\x10\x05", -1 - content[-1])
    content[place + 1] = 3
    path.write_bytes(content)

    with pytest.raises(LoadFailed, match="its codec `lzo` is not supported"):
        read(path)


def test_a_column_that_cannot_be_read_is_refused_unless_it_is_left_out(tmp_path: Path) -> None:
    twins = pa.table([[1], ["a"], [2]], names=["v", "t", "v"])
    path = write(tmp_path / "a.orc", twins)

    with pytest.raises(LoadFailed, match="has two columns named `v`"):
        read(path)
    assert read(path, names=["t"]).to_pylist() == [{"t": "a"}]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([Decimal("1.25")], pa.decimal128(10, 2)),
        pa.array([[(Decimal("1.25"), 1)]], pa.map_(pa.decimal128(10, 2), pa.int8())),
    ],
)
def test_decimals_without_a_precision_are_refused_and_say_who_wrote_them(
    tmp_path: Path, column: Any
) -> None:
    path = write(tmp_path / "a.orc", {"t": ["a"], "v": column}, compression="uncompressed")
    written = path.read_bytes()
    decimal, without_precision = b"\x28\x0a\x30\x02", b"\x78\x0a\x30\x02"
    assert written.count(decimal) == 1
    path.write_bytes(written.replace(decimal, without_precision))

    with pytest.raises(LoadFailed, match=r"without a precision, as Hive 0\.11") as raised:
        read(path)
    assert raised.value.hint == "leave it out with `columns.exclude`"
    assert read(path, names=["t"]).to_pylist() == [{"t": "a"}]


def test_orc_column_names_may_be_any_text(tmp_path: Path) -> None:
    row = {"a.b": 1, "a": {"b": 2, "c d": datetime(2024, 1, 1)}, "é`": "x", "A": 3}
    path = write(tmp_path / "a.orc", pa.Table.from_pylist([row]))

    assert read(path).to_pylist() == [row]
    assert read(path, names=["a.b"]).to_pylist() == [{"a.b": 1}]


_DAYS = st.dates()
_TIMES = st.datetimes()
_LEAVES = st.one_of(
    st.just((pa.bool_(), st.booleans())),
    st.just((pa.int8(), st.integers(-(2**7), 2**7 - 1))),
    st.just((pa.int64(), st.integers(-(2**63), 2**63 - 1))),
    st.just((pa.float64(), st.floats(allow_nan=False))),
    st.just((pa.float32(), st.floats(width=32, allow_nan=False))),
    st.just((pa.string(), st.text(max_size=9))),
    st.just((pa.binary(), st.binary(max_size=9))),
    st.just((pa.date32(), _DAYS)),
    st.just((pa.timestamp("us"), _TIMES)),
    st.just((pa.timestamp("us", "UTC"), _TIMES.map(lambda at: at.replace(tzinfo=UTC)))),
    st.just(
        (
            pa.decimal128(20, 3),
            st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: Decimal(n).scaleb(-3)),
        )
    ),
)


def _nested(inner: Any) -> Any:
    return (
        inner.map(lambda one: (pa.list_(one[0]), st.lists(st.none() | one[1], max_size=3)))
        | inner.map(
            lambda one: (
                pa.map_(pa.string(), one[0]),
                st.dictionaries(st.text(max_size=3), one[1], max_size=3).map(
                    lambda pairs: list(pairs.items())
                ),
            )
        )
        | inner.map(
            lambda one: (
                pa.struct([("x", one[0]), ("y", pa.int32())]),
                st.fixed_dictionaries({"x": _in_struct(*one), "y": st.just(7)}),
            )
        )
    )


def _in_struct(kind: Any, drawn: Any) -> Any:
    # After a null struct in a struct, Arrow's writer writes zeros.
    return drawn if pa.types.is_struct(kind) else st.none() | drawn


_KINDS = st.recursive(_LEAVES, _nested, max_leaves=3)


@settings(deadline=None, max_examples=many(40))
@given(st.data())
def test_random_tables_are_read_as_they_were_written(data: Any) -> None:
    kinds = data.draw(st.lists(_KINDS, min_size=1, max_size=3))
    rows = data.draw(st.integers(0, 12))
    columns = {
        f"c{n}": pa.array(
            data.draw(st.lists(st.none() | given_values, min_size=rows, max_size=rows)), kind
        )
        for n, (kind, given_values) in enumerate(kinds)
    }
    options = {
        "compression": data.draw(
            st.sampled_from(["uncompressed", "zlib", "snappy", "lz4", "zstd"])
        ),
        "file_version": data.draw(st.sampled_from(["0.11", "0.12"])),
        "dictionary_key_size_threshold": data.draw(st.sampled_from([0.0, 1.0])),
        "batch_size": data.draw(st.sampled_from([1, 1024])),
    }
    with TemporaryDirectory() as folder:
        path = write(Path(folder, "a.orc"), columns, **options)

        assert read(path).to_pylist() == pa.table(columns).to_pylist()


def test_other_rows_than_the_footer_says_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    orc.write_table(pa.table({"n": range(25)}), path)
    replace_bytes(path, bytes((6 << 3, 25)), bytes((6 << 3, 20)))

    with pytest.raises(LoadFailed, match=rf"`{path}`: .* has 20 rows, and its stripes have 25"):
        read(path)
