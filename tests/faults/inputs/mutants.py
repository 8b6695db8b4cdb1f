"""Small files of every format, and damaged copies of them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from lakeload_jobs.contract.spec import FileFormatName

ROWS = [
    {
        "id": number,
        "name": f"name {number}",
        "amount": Decimal(number) / 4,
        "day": date(2024, 2, 1 + number % 28),
        "at": datetime(2024, 2, 29, 1, 2, number % 60, 5, tzinfo=UTC),
        "ok": number % 2 == 0 or None,
        "tags": [{"key": "a", "value": number}] * (number % 3),
    }
    for number in range(40)
]


@dataclass(frozen=True)
class Seed:
    """A file that is as it should be."""

    name: str
    format: FileFormatName
    content: bytes


def _csv() -> bytes:
    names = [name for name in ROWS[0] if name != "tags"]
    lines = [",".join(names)]
    for row in ROWS:
        values = ["" if row[name] is None else str(row[name]) for name in names]
        lines.append(",".join([values[0], f'"{values[1]}"', *values[2:]]))
    return "\n".join(lines).encode()


def _json(rows: Any, **changes: Any) -> bytes:
    return json.dumps(rows, default=str, **changes).encode()


def _zipped(content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.csv", content)
    return target.getvalue()


def _parquet(codec: Any, **changes: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist(ROWS), sink, compression=codec, row_group_size=25, **changes
    )
    return sink.getvalue()


def _orc(codec: Any) -> bytes:
    sink = io.BytesIO()
    pyarrow.orc.write_table(pa.Table.from_pylist(ROWS), sink, compression=codec)
    return sink.getvalue()


def _avro(codec: str) -> bytes:
    tag = {
        "type": "record",
        "name": "tag",
        "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "long"}],
    }
    moment = {"type": "long", "logicalType": "timestamp-micros"}
    amount = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    fields = [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "amount", "type": amount},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": moment},
        {"name": "ok", "type": ["null", "boolean"]},
        {"name": "tags", "type": {"type": "array", "items": tag}},
    ]
    sink = io.BytesIO()
    schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
    fastavro.writer(sink, schema, ROWS, codec=codec, sync_interval=400)
    return sink.getvalue()


@cache
def seeds() -> tuple[Seed, ...]:
    """Return a file of each format, and of each way in which it is packed."""
    csv, lines = _csv(), b"\n".join(map(_json, ROWS)) + b"\n"
    utf16 = csv.decode().encode("utf-16")
    found = [
        *(Seed(f"csv {n}", "CSV", c) for n, c in (("plain", csv), ("utf-16", utf16))),
        *(
            Seed(f"csv {pack.__name__}", "CSV", pack(csv))
            for pack in (gzip.compress, bz2.compress, lzma.compress, _zipped)
        ),
        Seed("csv zst", "CSV", pa.Codec("zstd").compress(csv, asbytes=True)),
        Seed("csv semicolons", "CSV", csv.replace(b",", b";").replace(b"\n", b"\r\n")),
        Seed("ndjson", "NDJSON", lines),
        Seed("ndjson gz", "NDJSON", gzip.compress(lines)),
        Seed("json", "JSON", _json(ROWS, indent=1)),
        Seed("json wrapped", "JSON", _json({"n": 2, "data": {"items": ROWS}, "rows": ROWS})),
    ]
    codecs = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
    found += [Seed(f"parquet {c}", "PARQUET", _parquet(c)) for c in codecs]
    odd = {"use_dictionary": False, "data_page_version": "2.0", "write_page_checksum": True}
    found.append(Seed("parquet v2", "PARQUET", _parquet("snappy", **odd)))
    found += [
        Seed(f"orc {c}", "ORC", _orc(c)) for c in ("uncompressed", "zlib", "snappy", "lz4", "zstd")
    ]
    found += [Seed(f"avro {c}", "AVRO", _avro(c)) for c in ("null", "deflate", "xz", "bzip2")]
    return tuple(found)


def _flip(random: Random, content: bytearray) -> None:
    for _ in range(random.choice((1, 1, 2, 8, 64))):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def _overwrite(random: Random, content: bytearray) -> None:
    at = random.randrange(len(content))
    content[at : at + random.choice((1, 4, 8, 30))] = random.choice(_ODD)


def _insert(random: Random, content: bytearray) -> None:
    at = random.randrange(len(content) + 1)
    content[at:at] = random.choice(_ODD) * random.choice((1, 1, 2, 500))


def _cut(random: Random, content: bytearray) -> None:
    at = random.randrange(len(content))
    if random.random() < 0.5:
        del content[at:]
    else:
        del content[at : at + random.choice((1, 7, 100))]


def _repeat(random: Random, content: bytearray) -> None:
    at = random.randrange(len(content))
    content[at:at] = content[at : at + random.choice((1, 20, 400))] * random.choice((1, 3, 50))


def _swap(random: Random, content: bytearray) -> None:
    size = random.choice((1, 8, 64))
    first, second = (random.randrange(len(content)) for _ in range(2))
    one, other = content[first : first + size], content[second : second + size]
    content[first : first + size], content[second : second + size] = other, one


def _splice(random: Random, content: bytearray) -> None:
    other = random.choice(seeds()).content
    content[random.randrange(len(content)) :] = other[random.randrange(len(other)) :]


_ODD = (
    *(b"\0", b"\xff", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\x80" * 9 + b"\x01", b"\0" * 30),
    *(b'"', b"'", b"\\", b"\n", b"\r", b",", b";", b"\t", b"{", b"}", b"[", b"]", b":"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\\ud800", b"\\u0000"),
    *(b"9" * 400, b"1e999", b"-0", b"NaN", b"Infinity", b"2024-02-30", b"0001-01-01", b"null"),
    *(b"PAR1", b"ORC", b"Obj\x01", b"PK\x03\x04", b"\x1f\x8b\x08", b"sep=;\n", b"#", b"__"),
)
_MUTATIONS: tuple[Callable[[Random, bytearray], None], ...] = (
    *(_flip, _flip, _overwrite, _insert, _cut, _repeat, _swap, _splice),
)


def mutant(random: Random) -> Seed:
    """Return a file with some damage, or now and then none."""
    seed = random.choice(seeds())
    content = bytearray(seed.content)
    for _ in range(random.choice((0, 1, 1, 1, 2, 3, 10))):
        if content:
            random.choice(_MUTATIONS)(random, content)
    return Seed(seed.name, seed.format, bytes(content))
