"""Files as UTF-8 text, however they are packed and encoded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.files.text.opening import is_splittable, open_text
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.local_listing import file_state

DATA = "id,name\n1,é🚀\n".encode() * 15_000


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def zipped(data: bytes, *others: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("folder/", "")
        file.writestr("folder/a.csv", data)
        for other in others:
            file.writestr(other, "x")
    return archive.getvalue()


def text(path: Path, content: bytes, encoding: str | None = None, size: int = 1 << 20) -> bytes:
    """Write a file and read it as text."""
    path.write_bytes(content)
    with open_text(FileBytes(), file_state(str(path)), encoding) as opened:
        return b"".join(iter(lambda: opened.stream.read(size), b""))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.bin"])
@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:]),
        bz2.compress,
        lambda data: bz2.compress(data[:5]) + bz2.compress(data[5:]),
        lzma.compress,
        lambda data: lzma.compress(data[:5]) + lzma.compress(data[5:]),
        zstd,
        lambda data: zstd(data[:5]) + zstd(data[5:]),
        zipped,
        lambda data: zipped(data, "__MACOSX/._a.csv"),
    ],
)
def test_a_file_is_unpacked_by_what_it_holds(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    content = pack(DATA)

    assert text(path, content) == DATA
    assert is_splittable(FileBytes(), file_state(str(path)), None) == (content == DATA)


def test_deflate_is_known_by_its_ending(tmp_path: Path) -> None:
    assert text(tmp_path / "a.csv.deflate", zlib.compress(DATA)) == DATA


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(DATA, mtime=0)[:-9], "the gz file is damaged"),
        (gzip.compress(DATA, mtime=0) + b"rubbish", "the gz file is damaged"),
        (bz2.compress(DATA)[:-9], "the bz2 file is damaged"),
        (lzma.compress(DATA)[:-9], "the xz file is damaged"),
        (zstd(DATA)[:-9], "the zst file is damaged"),
        (zipped(DATA)[:-9], "the zip file is damaged"),
        (zipped(DATA, "b.csv"), "contains 2 files, and lakeload reads zip files with exactly one"),
        (b"PK\x05\x06" + bytes(18), "the zip file contains no files"),
        (gzip.compress(gzip.compress(DATA)), "packed twice: there is a gz file in the gz file"),
        (zipped(zstd(DATA)), "packed twice: there is a zst file in the zip file"),
        (b"\x04\x22\x4d\x18....", "files compressed with lz4 are not supported"),
    ],
)
def test_a_file_that_cannot_be_unpacked_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.csv.gz"

    with pytest.raises(LoadFailed, match=said) as failed:
        text(path, content)

    assert f"reading `{path}`" in failed.value.message
    assert failed.value.hint


def test_snappy_is_known_by_its_ending(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match="files compressed with snappy are not supported"):
        text(tmp_path / "a.csv.snappy", b"....")


@pytest.mark.parametrize("size", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-8-sig", "UTF-8"),
        ("utf-8-sig", "utf_8_sig"),
        ("utf-16", None),
        ("utf-32", None),
        ("utf-16", "UTF-16"),
        ("utf-16-be", "utf-16"),
        ("utf-16-le", "UTF-16LE"),
        ("utf-32-be", "UTF_32"),
        ("gb18030", "gb18030"),
    ],
)
def test_a_text_becomes_utf_8(tmp_path: Path, written: str, given: str | None, size: int) -> None:
    expected = "id,ä\n1,é🚀\n"

    assert text(tmp_path / "a.csv", expected.encode(written), given, size).decode() == expected


def test_each_encoding_of_single_bytes_is_read_by_its_name(tmp_path: Path) -> None:
    content = "id,name\n1,50 €“”\n".encode("windows-1252")

    assert text(tmp_path / "a.csv", content, "windows-1252").decode() == "id,name\n1,50 €“”\n"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"a,\x81,b", "windows-1252"),
        ("a,".encode("utf-16-le") + b"\x00\xdc" + ",b".encode("utf-16-le"), "utf-16-le"),
        (b"a,\xe9,b", "ascii"),
        (b"a,\xff\xff,b", "shift_jis"),
    ],
)
def test_bytes_that_do_not_decode_are_not_utf_8_either(
    tmp_path: Path, content: bytes, encoding: str
) -> None:
    found = text(tmp_path / "a.csv", content, encoding)

    first, middle, last = found.split(b",")
    assert (first, last) == (b"a", b"b")
    with pytest.raises(UnicodeDecodeError):
        middle.decode()


def test_utf_16_without_its_mark_is_not_taken_for_utf_8(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match="looks like UTF-16-LE") as failed:
        text(tmp_path / "a.csv", "id\n1\n".encode("utf-16-le"))

    assert failed.value.hint == "set the reader option `encoding: utf-16-le`"


def test_missing_file_counts_as_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id\n")
    file = file_state(str(path))
    path.unlink()

    with (
        pytest.raises(LoadFailed, match="was removed") as failed,
        open_text(FileBytes(), file, None),
    ):
        pass

    assert failed.value.retryable
