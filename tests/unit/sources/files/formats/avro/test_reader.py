"""Avro files: columns and values are those of docs/avro-files.md; fastavro writes them."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.files.formats.avro.reader import (
    AvroReader,
    read_avro_headers,
    schema_text,
)
from lakeload_jobs.sources.files.typed.columns import type_name
from lakeload_jobs.sources.files.typed.rows import ReadTyped, split_files
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from tests.environments import many
from tests.unit.sources.files.formats.parquet.test_reader import DOCS, UUID, shown
from tests.unit.sources.files.typed.typed_files import file_states, read_rows, replace_bytes

INSTANT = datetime(2024, 2, 29, 1, 2, 3, 4, UTC)
MICROS = 1_709_168_523_000_004


def write(
    path: Path, fields: Any, records: Sequence[Any], codec: str = "null", **options: Any
) -> Path:
    """Write records, whose logical values may be given as what is stored, as an Avro file."""
    schema = (
        {"type": "record", "name": "r", "fields": fields} if isinstance(fields, list) else fields
    )
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, codec=codec, **options)
    return path


def column(path: Path, kind: Any, *values: Any) -> Path:
    return write(path, [{"name": "v", "type": kind}], [{"v": value} for value in values])


def read(*paths: Path, **options: Any) -> pa.Table:
    """Return the rows of files as they are handed on."""
    schemas = read_avro_headers(file_states(paths), FileBytes())
    return read_rows(schemas, AvroReader(FileBytes()), **options)


def values(*paths: Path, **options: Any) -> list[Any]:
    return read(*paths, **options)["v"].to_pylist()


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def fixed(size: int, logical_type: str, **more: Any) -> dict[str, Any]:
    return logical("fixed", logical_type, name="f", size=size, **more)


RECORD = {"type": "record", "name": "inner", "fields": [{"name": "t", "type": "string"}]}

EXAMPLES: dict[str, tuple[Any, Any]] = {
    "null": ("null", None),
    "boolean": ("boolean", True),
    "int": ("int", -7),
    "long": ("long", -7),
    "float": ("float", 1.5),
    "double": ("double", 1.5),
    "string": ("string", "a"),
    "bytes, fixed": ("bytes", b"a"),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B"),
    "decimal(5,2)": (logical("bytes", "decimal", precision=5, scale=2), Decimal("1.20")),
    "decimal(50,3)": (fixed(21, "decimal", precision=50, scale=3), Decimal("1" * 40 + ".125")),
    "uuid": (fixed(16, "uuid"), UUID.bytes),
    "date": (logical("int", "date"), date(2024, 2, 29)),
    "time-millis": (logical("int", "time-millis"), time(1, 2, 3, 4000)),
    "time-micros": (logical("long", "time-micros"), time(1, 2, 3, 4)),
    "timestamp-millis": (
        logical("long", "timestamp-millis"),
        INSTANT.replace(microsecond=4000),
    ),
    "timestamp-micros": (logical("long", "timestamp-micros"), INSTANT),
    "timestamp-nanos": (logical("long", "timestamp-nanos"), MICROS * 1000),
    "local-timestamp-millis": (logical("long", "local-timestamp-millis"), MICROS // 1000),
    "local-timestamp-micros": (logical("long", "local-timestamp-micros"), MICROS),
    "local-timestamp-nanos": (logical("long", "local-timestamp-nanos"), MICROS * 1000),
    "duration": (fixed(12, "duration"), bytes((1, 0, 0, 0, 2, 0, 0, 0, 188, 11, 0, 0))),
    "record": (RECORD, {"t": "a"}),
    "array": ({"type": "array", "items": ["null", "int"]}, [1, None]),
    "map": ({"type": "map", "values": "int"}, {"a": 1}),
    "union of null and a type": (["null", "string"], "a"),
    "union of int and long, of float and double": (["int", "null", "long"], 2**40),
    "union of other types": (["null", "int", "string"], "a"),
}


def rows_of_the_page() -> list[tuple[str, str, str]]:
    text = (DOCS / "avro-files.md").read_text(encoding="utf-8").split("## Types of Avro")[1]
    lines = text.split("\n#")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [(row[0], row[1], row[2].strip("`")) for row in rows[1:]]


def test_the_page_has_an_example_of_each_type() -> None:
    assert [name for name, _, _ in rows_of_the_page()] == list(EXAMPLES)


@pytest.mark.parametrize(("name", "kind", "value"), rows_of_the_page())
def test_a_type_is_read_as_the_page_says(tmp_path: Path, name: str, kind: str, value: str) -> None:
    written, example = EXAMPLES[name]

    table = read(column(tmp_path / "a.avro", written, example))

    assert type_name(table.schema.field("v").type) == kind
    assert shown(table["v"].to_pylist()[0]) == value


def _varint(number: int) -> bytes:
    left, out = number << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*out, left))


def packed(path: Path, codec: str) -> None:
    """Pack the blocks of a file with a codec: fastavro wants other packages for some. One that is
    not known says so and packs nothing."""
    with path.open("rb") as file:
        blocks = list(fastavro.block_reader(file))
        file.seek(0)
        reader = fastavro.reader(file)
        notes = {**reader.metadata, "avro.codec": codec}
    content, sync = path.read_bytes(), path.read_bytes()[-16:]
    made = bytearray(b"Obj\x01" + _varint(len(notes)))
    for text in (one.encode() for note in notes.items() for one in note):
        made += _varint(len(text)) + text
    made += _varint(0) + sync
    for block in blocks:
        stored = content[block.offset : block.offset + block.size - 16]
        data = stored[len(_varint(block.num_records)) :]
        size = len(data) - next(n for n in range(1, 6) if _varint(len(data) - n) == data[:n])
        data = data[-size:]
        if reader.codec == "deflate":
            data = zlib.decompress(data, wbits=-zlib.MAX_WBITS)
        match codec:
            case "snappy":
                small = pa.Codec("snappy").compress(data, asbytes=True)
                small += zlib.crc32(data).to_bytes(4, "big")
            case "zstandard":
                small = pa.Codec("zstd").compress(data, asbytes=True)
            case "deflate":
                small = zlib.compress(data, wbits=-zlib.MAX_WBITS)
            case "bzip2":
                small = bz2.compress(data)
            case "xz":
                small = lzma.compress(data)
            case _:
                small = data
        made += _varint(block.num_records) + _varint(len(small)) + small + sync
    path.write_bytes(made)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_blocks_of_each_codec_are_read_in_order(tmp_path: Path, codec: str) -> None:
    fields = [{"name": "v", "type": "long"}, {"name": "t", "type": ["null", "string"]}]
    records = [{"v": n, "t": None if n % 7 == 0 else f"é{n}"} for n in range(5000)]
    by_hand = codec in ("zstandard", "snappy")
    own = "null" if by_hand else codec
    path = write(tmp_path / "a.avro", fields, records, own, sync_interval=1000)
    if by_hand:
        packed(path, codec)

    table = read(path)

    assert table.to_pylist() == records


def test_a_codec_that_is_not_read_is_named(tmp_path: Path) -> None:
    path = column(tmp_path / "a.avro", "long", 1)
    path.write_bytes(path.read_bytes().replace(b"\x08null", b"\x08lzma"))

    with pytest.raises(LoadFailed, match="its codec `lzma` is not supported"):
        read(path)


def test_a_large_file_is_read_in_parts(tmp_path: Path) -> None:
    fields = [{"name": "v", "type": "long"}, {"name": "t", "type": "bytes"}]
    path = write(tmp_path / "a.avro", fields, [{"v": n, "t": bytes(5000)} for n in range(2000)])
    file = FileState(str(path), path.stat().st_size, 0)
    (schema,) = read_avro_headers([file], FileBytes())
    reader = ReadTyped(pa.schema([("v", pa.int64())]), AvroReader(FileBytes()))

    splits = split_files([schema], reader, base=None, parallelism=4)

    assert len(splits.parts) > 1
    found = [
        v for part in splits.parts for batch in splits.read(part) for v in batch["v"].to_pylist()
    ]
    assert found == list(range(2000))


def test_avro_column_loaded_by_spark_stays_a_number(tmp_path: Path) -> None:
    kinds = [
        logical("int", "time-millis"),
        logical("long", "time-micros"),
        logical("long", "timestamp-nanos"),
        fixed(16, "uuid"),
        logical("long", "timestamp-micros"),
    ]
    for number, kind in enumerate(kinds):
        column(tmp_path / f"{number}.avro", kind)
    files = [FileState(str(path), path.stat().st_size, 0) for path in sorted(tmp_path.iterdir())]

    stored = [schema.columns[0].stored for schema in read_avro_headers(files, FileBytes())]

    assert stored == [pa.int32(), pa.int64(), pa.int64(), pa.binary(), None]


@pytest.mark.parametrize(
    ("kind", "stored", "clause"),
    [
        (logical("int", "time-millis"), -1, "the value `-1` cannot be loaded: as a number of ms"),
        (logical("long", "timestamp-nanos"), 1, "it has digits below a microsecond"),
        (logical("long", "timestamp-millis"), 2**62, "it is beyond what microseconds can count"),
        (logical("bytes", "decimal", precision=3, scale=1), b"\x10\x00", "than decimal(3,1)"),
        ({"type": "array", "items": logical("int", "time-millis")}, [0, -1], "column `v.element`"),
    ],
)
def test_a_bad_value_is_named_with_file_and_row(
    tmp_path: Path, kind: Any, stored: Any, clause: str
) -> None:
    plain = json.loads(json.dumps(kind, default=str).replace("logicalType", "ignored"))
    path = column(tmp_path / "a.avro", plain, stored)
    # The same bytes, with the logical type in a header of the same length.
    content = path.read_bytes().replace(b'"ignored"', b'"logicalType"')
    path.write_bytes(_with_header(content, kind))

    with pytest.raises(LoadFailed) as failure:
        read(path)
    nulls = read(path, on_bad_value="NULL")
    aside = read(path, on_bad_value="QUARANTINE")

    assert f"reading `{path}`, row 1: column `v" in failure.value.message
    assert clause in failure.value.message
    assert nulls[BAD_VALUES_HELPER].to_pylist() == [1]
    reject: Any = aside[REJECTED_HELPER].to_pylist()[0]
    assert (reject["source_file"], reject["row_group"], reject["row_number"]) == (
        str(path),
        None,
        1,
    )


def _with_header(content: bytes, kind: Any) -> bytes:
    """Return a file of one block with the schema of a column `v` in its header."""
    block = content[content.rindex(content[-16:], 0, -16) + 16 :]
    made = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": kind}]}
    fastavro.writer(made, schema, [], sync_marker=content[-16:])
    return made.getvalue() + block


def test_text_that_is_not_utf8_is_bad(tmp_path: Path) -> None:
    path = column(tmp_path / "a.avro", "string", "good", "bXd")
    path.write_bytes(path.read_bytes().replace(b"bXd", b"b\xffd"))

    with pytest.raises(LoadFailed, match=r"row 2: column `v`: the value `b\\xffd`.*not UTF-8"):
        read(path)


def test_a_map_with_a_key_twice_is_bad(tmp_path: Path) -> None:
    path = column(tmp_path / "a.avro", {"type": "map", "values": "int"}, {"ab": 1, "cd": 2})
    path.write_bytes(path.read_bytes().replace(b"cd", b"ab"))

    with pytest.raises(LoadFailed, match="the map has this key twice"):
        read(path)


def test_names_need_not_be_those_of_the_specification(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.avro",
        [{"name": "aXb", "type": RECORD | {"namespace": "x.y"}}],
        [{"aXb": {"t": "q"}}],
    )
    path.write_bytes(path.read_bytes().replace(b"aXb", b"a.b").replace(b'"t"', b'"-"'))

    assert read(path).to_pylist() == [{"a.b": {"-": "q"}}]


def test_types_are_found_by_their_names(tmp_path: Path) -> None:
    fields = [
        {"name": "a", "type": RECORD | {"namespace": "x"}},
        {"name": "b", "type": ["null", "x.inner"]},
        {"name": "c", "type": {"type": "array", "items": "x.inner"}},
    ]
    row = {"a": {"t": "1"}, "b": {"t": "2"}, "c": [{"t": "3"}]}

    assert read(write(tmp_path / "a.avro", fields, [row, row | {"b": None}])).to_pylist() == [
        row,
        row | {"b": None},
    ]


def test_a_union_within_lists_and_maps_says_which_type_a_value_has(tmp_path: Path) -> None:
    union = ["null", "int", "long", "string", RECORD, {"type": "array", "items": "double"}]
    fields = [
        {"name": "l", "type": {"type": "array", "items": union}},
        {"name": "m", "type": {"type": "map", "values": ["string", "inner"]}},
    ]
    row: dict[str, Any] = {
        "l": [None, 1, 2**40, "x", {"t": "y"}, [1.5]],
        "m": {"a": "b", "c": {"t": "d"}},
    }

    (found,) = read(write(tmp_path / "a.avro", fields, [row])).to_pylist()

    names = [f"member{n}" for n in range(5)]
    assert [one and {k: v for k, v in one.items() if v is not None} for one in found["l"]] == [
        None,
        *({name: value} for name, value in zip(names, row["l"][1:], strict=True)),
    ]
    assert found["m"] == [
        ("a", {"member0": "b", "member1": None}),
        ("c", {"member0": None, "member1": {"t": "d"}}),
    ]


def test_a_type_within_itself_is_refused_unless_it_is_left_out(tmp_path: Path) -> None:
    node = {
        "type": "record",
        "name": "node",
        "fields": [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "node"]}],
    }
    fields = [{"name": "list", "type": node}, {"name": "v", "type": "int"}]
    chain = {"n": 1, "next": {"n": 2, "next": None}}
    path = write(tmp_path / "a.avro", fields, [{"list": chain, "v": 7}])

    with pytest.raises(LoadFailed, match=r"column `list` of .* has the recursive type `node`"):
        read(path)
    assert read(path, names=["v"]).to_pylist() == [{"v": 7}]


def test_files_are_united_by_name_and_defaults_are_not_filled_in(tmp_path: Path) -> None:
    first = write(tmp_path / "a.avro", [{"name": "v", "type": "int"}], [{"v": 1}])
    late = [{"name": "late", "type": "string", "default": "x"}, {"name": "v", "type": "long"}]
    second = write(tmp_path / "b.avro", late, [{"v": 2**40, "late": "y"}])

    assert read(first, second).to_pylist() == [{"v": 1, "late": None}, {"v": 2**40, "late": "y"}]


def test_whole_numbers_and_doubles_are_doubles(tmp_path: Path) -> None:
    first = column(tmp_path / "a.avro", "long", 7)
    second = column(tmp_path / "b.avro", ["null", "double"], 0.5)
    large = column(tmp_path / "c.avro", "long", 2**53 + 1)

    assert [row["v"] for row in read(first, second).to_pylist()] == [7.0, 0.5]
    with pytest.raises(LoadFailed, match="the nearest double is another number"):
        read(second, large)


def test_a_logical_type_that_does_not_fit_is_what_is_stored(tmp_path: Path) -> None:
    """As the specification has it."""
    kinds = [
        (logical("long", "time-of-mind"), 7),
        (logical("int", "time-micros"), 7),
        (logical("string", "decimal", precision=2, scale=1), "1.5"),
        (fixed(4, "uuid"), b"abcd"),
    ]
    for number, (kind, value) in enumerate(kinds):
        (row,) = read(column(tmp_path / f"{number}.avro", kind, value)).to_pylist()
        assert row == {"v": value}


@pytest.mark.parametrize("cut", [1, 10, 17, 40])
def test_a_file_that_is_cut_off_is_damaged(tmp_path: Path, cut: int) -> None:
    path = column(tmp_path / "a.avro", "string", *map(str, range(100)))
    path.write_bytes(path.read_bytes()[:-cut])

    with pytest.raises(LoadFailed, match="the Avro file is damaged: it ends within a block"):
        read(path)


def test_damage_within_a_block_is_found(tmp_path: Path) -> None:
    path = column(tmp_path / "a.avro", ["null", "string"], "x", "y")
    content = path.read_bytes()
    path.write_bytes(content[:-21] + b"\x7f" + content[-20:])

    with pytest.raises(LoadFailed, match="the Avro file is damaged"):
        read(path)


@pytest.mark.parametrize("kind", ["long", fixed(1, "none"), {"type": "array", "items": RECORD}])
def test_a_file_whose_rows_are_no_records_is_refused(tmp_path: Path, kind: Any) -> None:
    path = write(tmp_path / "a.avro", kind, [])

    with pytest.raises(LoadFailed, match="`: its rows have no columns: its schema is not that of"):
        read(path)


def test_rows_without_columns_are_refused(tmp_path: Path) -> None:
    empty = write(tmp_path / "a.avro", [], [{}, {}])

    with pytest.raises(LoadFailed, match=r"the source has rows but no columns: `.*` has 2"):
        read(empty)
    assert values(column(tmp_path / "b.avro", "long", 7), empty) == [7, None, None]


def test_a_record_may_be_an_error(tmp_path: Path) -> None:
    error = {"type": "error", "name": "e", "fields": [{"name": "v", "type": "long"}]}
    path = write(tmp_path / "a.avro", error, [{"v": 7}])

    assert values(path) == [7]


def test_a_file_without_records_has_columns(tmp_path: Path) -> None:
    table = read(column(tmp_path / "a.avro", "long"))

    assert (table.num_rows, table.schema.names) == (0, ["v"])


def _logical_long(name: str, low: int, high: int) -> Any:
    return st.tuples(st.just(logical("long", name)), st.just(st.integers(low, high)))


def _union_of_null(drawn: Any) -> Any:
    kind, given_values = drawn
    return (["null", kind], st.none() | given_values)


_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
_LEAVES = st.one_of(
    st.just(("boolean", st.booleans())),
    st.just(("int", st.integers(-(2**31), 2**31 - 1))),
    st.just(("long", st.integers(-(2**63), 2**63 - 1))),
    st.just(("double", st.floats(allow_nan=False))),
    st.just(("float", st.floats(width=32, allow_nan=False))),
    st.just(("string", st.text(max_size=9))),
    st.just(("bytes", st.binary(max_size=9))),
    _logical_long("timestamp-micros", _FIRST, _LAST),
    _logical_long("timestamp-millis", _FIRST // 1000, _LAST // 1000),
    _logical_long("local-timestamp-micros", _FIRST, _LAST),
    _logical_long("time-micros", 0, 86_399_999_999),
    st.just((logical("int", "date"), st.integers(-719_162, 2_932_896))),
    st.just(
        (
            logical("bytes", "decimal", precision=20, scale=3),
            st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: Decimal(n).scaleb(-3)),
        )
    ),
)


def _nested(inner: Any) -> Any:
    return inner.map(
        lambda one: ({"type": "array", "items": one[0]}, st.lists(one[1], max_size=3))
    ) | inner.map(
        lambda one: (
            {"type": "map", "values": one[0]},
            st.dictionaries(st.text(max_size=3), one[1], max_size=3),
        )
    )


_KINDS = st.recursive(_LEAVES | _LEAVES.map(_union_of_null), _nested, max_leaves=3)


@settings(deadline=None, max_examples=many(30))
@given(st.data())
def test_random_tables_are_read_as_fastavro_reads_them(data: Any) -> None:
    kinds = data.draw(st.lists(_KINDS, min_size=1, max_size=4))
    fields = [{"name": f"c{n}", "type": kind} for n, (kind, _) in enumerate(kinds)]
    row = st.fixed_dictionaries(
        {f"c{n}": given_values for n, (_, given_values) in enumerate(kinds)}
    )
    rows = data.draw(st.lists(row, max_size=5))
    with TemporaryDirectory() as folder:
        path = write(Path(folder, "a.avro"), fields, rows, sync_interval=50)
        with path.open("rb") as file:
            expected: list[Any] = list(fastavro.reader(file))

        found = read(path).to_pylist()

    assert found == [{name: _as_arrow(value) for name, value in row.items()} for row in expected]


def _as_arrow(value: Any) -> Any:
    """Return a value of fastavro as Arrow has it: times are text, and maps lists of pairs."""
    if isinstance(value, time):
        return value.isoformat("microseconds")
    if isinstance(value, dict):
        return [(key, _as_arrow(one)) for key, one in value.items()]
    return [_as_arrow(one) for one in value] if isinstance(value, list) else value


def nested_schema(depth: int) -> str:
    """Return a schema of one column of lists in lists, written as text: it may be too deep."""
    inner = '{"type":"array","items":' * depth + '"long"' + "}" * depth
    fields = f'[{{"name":"v","type":{inner}}},{{"name":"id","type":"long"}}]'
    return f'{{"type":"record","name":"r","fields":{fields}}}'


def avro_of(schema: str) -> bytes:
    """Return a file without records."""
    out = io.BytesIO()
    notes = {b"avro.schema": schema.encode(), b"avro.codec": b"null"}
    out.write(b"Obj\x01" + bytes([len(notes) * 2]))
    for name, value in notes.items():
        for text in (name, value):
            size = len(text) * 2
            while size > 0x7F:
                out.write(bytes([size & 0x7F | 0x80]))
                size >>= 7
            out.write(bytes([size]) + text)
    out.write(b"\0" + bytes(16))
    return out.getvalue()


def test_types_that_are_nested_too_deep_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.avro"
    found = {}
    for depth in (40, 60, 100_000):
        path.write_bytes(avro_of(nested_schema(depth)))
        try:
            (schema,) = read_avro_headers(file_states([path]), FileBytes())
            found[depth] = [column.refused for column in schema.columns]
        except LoadFailed as error:
            found[depth] = [error.message]

    assert found[40] == ["", ""]
    assert "column `v` of" in found[60][0]
    assert "90 or more levels of nested types" in found[60][0]
    assert found[100_000] == [f"reading `{path}`: its types are nested too deep to be read"]


@pytest.mark.parametrize("count", [24, 26])
def test_a_block_of_other_records_than_it_says_is_refused(tmp_path: Path, count: int) -> None:
    path = column(tmp_path / "a.avro", "string", *["abcdefg"] * 25)
    size = 25 * 8
    replace_bytes(path, _varint(25) + _varint(size), _varint(count) + _varint(size))

    with pytest.raises(LoadFailed, match=rf"`{path}`: .*records"):
        read(path)


def test_schema_text_is_that_of_the_header_whatever_its_size(tmp_path: Path) -> None:
    fields = [{"name": f"column_{number}", "type": "int"} for number in range(2_000)]
    path = write(tmp_path / "a.avro", fields, [])
    (file,) = file_states([path])

    assert json.loads(schema_text(file, FileBytes()))["fields"] == fields
    path.write_bytes(b"id\n1\n")
    with pytest.raises(LoadFailed, match=r"a\.avro`: it is not an Avro file"):
        schema_text(file, FileBytes())
