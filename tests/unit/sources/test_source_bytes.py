"""Source files as bytes: compressed, in parts, and in other encodings."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest

from lakeload_jobs.sources.files.source_bytes import DAMAGED, as_utf8, decompressed


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("a.csv", bytes),
        ("a.csv.gz", gzip.compress),
        ("a.csv.gz", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:])),
        ("a.csv.bz2", bz2.compress),
        ("a.csv.bz2", lambda data: bz2.compress(data[:5]) + bz2.compress(data[5:])),
        ("a.csv.zst", zstd),
        ("a.csv.zst", lambda data: zstd(data[:5]) + zstd(data[5:])),
        ("a.csv.deflate", zlib.compress),
        (".gz/a", bytes),
    ],
)
def test_a_file_is_unpacked_by_its_ending(name: str, compress: Callable[[bytes], bytes]) -> None:
    data = b"some text" * 200_000

    assert b"".join(decompressed(name, io.BytesIO(compress(data)))) == data


@pytest.mark.parametrize("name", ["a.gz", "a.bz2", "a.zst", "a.deflate"])
def test_what_is_not_compressed_so_raises_one_of_few_errors(name: str) -> None:
    with pytest.raises(DAMAGED):
        list(decompressed(name, io.BytesIO(b"id,name\n1,x\n")))


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-8-sig", "UTF-8"),
        ("utf-16", None),
        ("utf-16-le", None),
        ("utf-16-be", None),
        ("utf-32", None),
        ("utf-32-le", None),
        ("utf-32-be", None),
        ("utf-16", "UTF-16"),
        ("utf-16-be", "utf-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-32-be", "UTF_32"),
    ],
)
def test_a_text_becomes_utf_8(written: str, given: str | None, size: int) -> None:
    text = '{"a": "é🚀"}\n'
    data = text.encode(written)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]

    assert b"".join(as_utf8(chunks, given)).decode() == text


def test_an_encoding_of_single_bytes_is_left_as_it_is() -> None:
    assert b"".join(as_utf8([b"\xff\xfe\xe9"], "ISO-8859-1")) == b"\xff\xfe\xe9"
