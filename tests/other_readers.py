"""Files as other programs read them: csv, json, pyarrow, fastavro and pyorc."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from itertools import dropwhile
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from lakeload_jobs.core.names import normalize, unique_names

Options = Mapping[str, Any]


class Unreadable(Exception):
    """The other program does not read a file either, or cannot be asked."""


@dataclass(frozen=True)
class Other:
    """Rows of a file; `names` None where columns go by their places."""

    rows: Sequence[Any]
    names: tuple[str, ...] | None = None

    def columns(self, loaded: Sequence[str]) -> list[list[Any]]:
        """Return the columns of a table with these names."""
        if self.names is None:
            return [[_cell(row, i) for row in self.rows] for i in range(len(loaded))]
        return [[_named(row, name) for row in self.rows] for name in loaded]


def _cell(row: Sequence[Any], place: int) -> Any:
    return row[place] if place < len(row) else None


def _named(row: Any, name: str) -> Any:
    if not isinstance(row, dict):
        return row
    names = unique_names([str(key) for key in row], lower=True)
    return dict(zip(names, row.values(), strict=True)).get(normalize(name, lower=True))


def read(path: Path, kind: str, options: Options) -> Other:
    """Return the rows of a file of a format. Raises `Unreadable`."""
    try:
        return _READERS[kind](path, options)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    for magic, unpack in _PACKED.items():
        if data.startswith(magic):
            return unpack(data)
    return data


def _unzip(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return b"".join(archive.read(name) for name in sorted(archive.namelist()))


def _unzstd(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        content: bytes = stream.read()
        return content


_PACKED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x28\xb5\x2f\xfd": _unzstd,
    b"PK\x03\x04": _unzip,
}


def _text(path: Path, options: Options) -> str:
    content = _content(path)
    encoding = str(options.get("encoding", "utf-8-sig"))
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    return content.decode("utf-8-sig" if encoding.upper() == "UTF-8" else encoding)


def _csv(path: Path, options: Options) -> Other:
    text = _text(path, options)
    quote, escape = options.get("quote", '"'), options.get("escape")
    if escape and escape != quote:
        # It stands before a quote or itself, and is a sign anywhere else.
        signs = re.compile(f"({re.escape(escape)})([{re.escape(quote + escape)}])?")
        text = signs.sub(lambda pair: pair[0] if pair[2] else pair[0] * 2, text)
    lines = io.StringIO(text, newline="")
    for _ in range(int(options.get("skip_rows", 0))):
        lines.readline()
    records = csv.reader(
        lines,
        delimiter=str(options.get("separator", ",")).replace("\\t", "\t"),
        quotechar=str(quote) or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        escapechar=str(escape) if escape and escape != quote else None,
        doublequote=not escape or escape == quote,
        skipinitialspace=bool(options.get("trim_left")),
        strict=True,
    )
    csv.field_size_limit(1 << 30)
    comment = str(options.get("comment", ""))
    rows = [row for row in records if not (comment and row and row[0].startswith(comment))]
    rows = list(dropwhile(lambda row: not row, rows))
    # A blank line is a null in a file of one column, and nothing in others.
    wide = any(len(row) > 1 for row in rows)
    rows = [row or [""] for row in rows if row or not wide]
    nulls = options.get("null_values", options.get("null_value", []))
    markers = {"", *([nulls] if isinstance(nulls, str) else nulls)}
    rows = rows[1:] if options.get("header") else rows
    return Other([[None if value in markers else value for value in row] for row in rows])


def _json(path: Path, options: Options) -> Other:
    text = _text(path, options)
    decoder, place = json.JSONDecoder(), 0
    values: list[Any] = []
    while place < len(text):
        if text[place].isspace() or text[place] == ",":
            place += 1
            continue
        value, place = decoder.raw_decode(text, place)
        values.append(value)
    if len(values) == 1 and (records := options.get("records")):
        for plain, quoted in re.findall(r"\.([^.\[]+)|\['([^']*)'\]", str(records)):
            values = [values[0][plain or quoted]]
    if len(values) == 1 and isinstance(values[0], list):
        (values,) = values
    return Other(values, names=())


def _parquet(path: Path, options: Options) -> Other:
    table = pq.ParquetFile(path).read()
    variants = [one.name for one in table.schema if _is_variant(one.type)]
    if variants:
        raise Unreadable(f"pyarrow reads the VARIANT `{variants[0]}` as a struct of its parts")
    return Other(list(zip(*(_values(column) for column in table.columns), strict=True)))


def _is_variant(kind: pa.DataType) -> bool:
    names = {kind.field(i).name for i in range(kind.num_fields)} if pa.types.is_struct(kind) else ()
    return "metadata" in names and ("value" in names or "typed_value" in names)


def _values(column: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    values: list[Any] = column.to_pylist()
    return values


def _avro(path: Path, options: Options) -> Other:
    import fastavro

    with path.open("rb") as file:
        records = fastavro.reader(file)
        schema: Any = records.writer_schema
        names = [column["name"] for column in schema["fields"]]
        rows: list[Any] = list(records)
        return Other([[row[name] for name in names] for row in rows])


def _orc(path: Path, options: Options) -> Other:
    import pyorc

    with path.open("rb") as file:
        return Other(list(pyorc.Reader(file)))


_READERS: dict[str, Callable[[Path, Options], Other]] = {
    "CSV": _csv,
    "JSON": _json,
    "NDJSON": _json,
    "PARQUET": _parquet,
    "AVRO": _avro,
    "ORC": _orc,
}


def plain_number(value: Any, options: Options) -> Any:
    """Return the text of a number with a point, and without marks of thousands."""
    if not isinstance(value, str):
        return value
    value = value.replace(str(options.get("thousands_mark", "")), "")
    return value.replace(str(options.get("decimal_mark", ".")), ".")


def same(other: Any, own: Any) -> bool:
    """Whether a value that another program reads is the one that was loaded, whose type may be a
    finer one: a number of a text, a struct of an object."""
    if other is None or own is None:
        return (other is None or other == "") and (own is None or own == "")
    if isinstance(own, str) and isinstance(other, bytes | timedelta):
        # Intervals and binary types whose text is compared in tests that know it.
        return True
    if isinstance(own, str) and isinstance(other, time):
        return time.fromisoformat(own) == other
    if isinstance(own, str) and isinstance(other, dict | list | tuple | int | float | bool):
        with suppress(ValueError):
            return same(other, json.loads(own))
        return str(other) == own
    if isinstance(own, dict):
        return _same_struct(other, own)
    if isinstance(own, list):
        return _same_list(other, own)
    if isinstance(own, bool):
        return str(other).strip().lower() in (("true", "1") if own else ("false", "0"))
    if isinstance(own, int | float | Decimal):
        return _same_number(other, own)
    if isinstance(own, datetime | date | time | timedelta):
        return _same_time(other, own)
    if isinstance(own, bytes):
        return own == (other.bytes if isinstance(other, UUID) else other)
    return str(other).rstrip() == str(own).rstrip()


def _same_struct(other: Any, own: dict[Any, Any]) -> bool:
    if all(re.fullmatch(r"member\d+", str(name)) for name in own):
        # A union, of which other programs give the value alone.
        members = [value for value in own.values() if value is not None]
        if len(members) == 1 and same(other, members[0]):
            return True
    if isinstance(other, dict):
        return all(same(_named(other, str(name)), value) for name, value in own.items())
    values = list(own.values())
    return len(other) == len(values) and all(map(same, other, values))


def _same_list(other: Any, own: list[Any]) -> bool:
    if isinstance(other, dict):
        pairs = {str(key): value for key, value in own}
        return all(same(value, pairs.get(str(key))) for key, value in other.items())
    return len(other) == len(own) and all(map(same, other, own))


def _same_number(other: Any, own: float | Decimal) -> bool:
    if isinstance(other, bool):
        return own == int(other)
    try:
        exact = Decimal(str(other).strip())
    except InvalidOperation:
        return False
    if exact == Decimal(str(own)):
        return True
    return isinstance(own, float) and (
        float(exact) == own or (math.isnan(own) and exact.is_nan()) or _single(float(exact)) == own
    )


def _single(value: float) -> float:
    return float(pa.scalar(value, pa.float32()).as_py())


def _same_time(other: Any, own: Any) -> bool:
    if isinstance(other, str):
        with suppress(ValueError):
            other = type(own).fromisoformat(other.strip().replace(" ", "T", 1))
        # Other ways to write a date are compared in tests that know them.
        if isinstance(other, str):
            return True
    if isinstance(own, datetime) and isinstance(other, datetime):
        return _instant(own) == _instant(other)
    if isinstance(other, int):
        return True
    return str(other) == str(own)


def _instant(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
