"""Files as UTF-8 text: local or in S3, unpacked by what they hold, decoded as declared.

Bytes that the encoding does not know become bytes that are not UTF-8 either, so whoever reads the
text finds them in their place: nothing is ever replaced by `U+FFFD`.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, cast

import pyarrow as pa

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, is_damage
from lakeload_jobs.sources.paths.source_bytes import (
    CHUNK,
    Bytes,
    byte_order_mark,
    python_codec,
    wide_encoding,
)

_HEAD = 16
ENCODING_HINT = (
    "set the reader option `encoding`, such as `encoding: windows-1252`; `lakeload inspect` with "
    "the file suggests one"
)
_UNDECODABLE = "lakeload-undecodable"
_MAGIC = (
    (b"\x1f\x8b", "gz"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),  # one without members
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy"),
)
_BZ2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", re.DOTALL)
NOT_A_ZIP_FILE = (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError)
"""What `zipfile` raises for damage."""
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, pa.ArrowException)


def compression(name: str, head: bytes) -> str:
    """Return how a file is packed, '' where it is not. `head` are its first bytes."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if _BZ2.match(head):
        return "bz2"
    ending = name.rpartition(".")[2]
    if ending == "deflate" and head[:1] == b"\x78":
        return "deflate"
    # Hadoop's own framing of these has no magic.
    return ending if ending in ("lz4", "snappy") else ""


@dataclass
class Text:
    """A file as text. Where it can be split, `start` is the byte at which the text begins."""

    stream: Bytes
    start: int


@contextmanager
def open_text(files: FileBytes, file: FileState, encoding: str | None) -> Iterator[Text]:
    """Open a file as UTF-8 without its byte order mark.

    Raises `LoadFailed` naming the file where it is damaged or of a form that is not read, while it
    is read as well, and `AwsError`.
    """
    with open_unpacked(files, file) as (unpacked, kind):
        with _naming(file, kind):
            codec, mark = _codec(file, unpacked.peek(4), encoding)
            unpacked.skip(mark)
        if codec is None:
            yield Text(unpacked, mark)
        else:
            yield Text(_Transcoded(unpacked, codec), 0)


@contextmanager
def open_unpacked(files: FileBytes, file: FileState) -> Iterator[tuple[StartOfStream, str]]:
    """Open the bytes of a file, decompressed, and say how it is packed. Raises as `open_text`."""
    with ExitStack() as stack:
        raw = stack.enter_context(files.stream(file))
        head = StartOfStream(raw)
        kind = compression(file.path, head.peek(_HEAD))
        if kind in ("lz4", "snappy"):
            raise UnreadableFile(
                file.path,
                f"files compressed with {kind} are not supported",
                hint="compress it with gzip, bzip2, xz or zstd, or not at all",
            )
        packed: Any = head
        if kind == "zip":
            packed = stack.enter_context(files.seekable(file))
        with _naming(file, kind):
            unpacked = StartOfStream(_Checked(_unpacked(packed, kind, file), file, kind))
        if kind and (inner := compression("", unpacked.peek(_HEAD))):
            raise UnreadableFile(
                file.path,
                f"it is packed twice: there is a {inner} file in the {kind} file",
                hint="unpack it once, and use what is then there as `path`",
            )
        yield unpacked, kind


def is_splittable(files: FileBytes, file: FileState, encoding: str | None) -> bool:
    """Whether `open_text` would find a text of which any part can be read by itself."""
    with files.stream(file) as raw:
        head = StartOfStream(raw).peek(_HEAD)
    try:
        return not compression(file.path, head) and _codec(file, head[:4], encoding)[0] is None
    except UnreadableFile:
        return False


@contextmanager
def _naming(file: FileState, kind: str) -> Iterator[None]:
    """Make what a damaged file raises say which it is."""
    try:
        yield
    except _DAMAGED as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        if not is_damage(error):
            raise LoadFailed(
                f"reading `{file.path}`: {why}",
                hint="check that the file can be read, and run again",
            ) from error
        packed = f"{kind} " if kind else ""
        raise UnreadableFile(
            file.path,
            f"the {packed}file is damaged: {why}",
            hint="copy the file from its source again",
        ) from error


def _unpacked(packed: Any, kind: str, file: FileState) -> Bytes:
    match kind:
        case "":
            return cast("Bytes", packed)
        case "gz":
            return gzip.GzipFile(fileobj=packed)
        case "bz2":
            return bz2.BZ2File(packed)
        case "xz":
            return lzma.LZMAFile(packed)
        case "deflate":
            return _Inflated(packed)
        case "zip":
            return _member(packed, file)
    return cast("Bytes", pa.CompressedInputStream(pa.PythonFile(packed, "r"), "zstd"))


def _member(packed: IO[bytes], file: FileState) -> Bytes:
    try:
        archive = zipfile.ZipFile(packed)
    except NOT_A_ZIP_FILE as error:
        raise zipfile.BadZipFile(str(error)) from error
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if not members:
        raise UnreadableFile(
            file.path, "the zip file contains no files", hint="remove it, or export it again"
        )
    if len(members) > 1:
        raise UnreadableFile(
            file.path,
            f"the zip file contains {len(members)} files, and lakeload reads zip files with "
            "exactly one",
            hint="unpack it, and use the files or their folder as `path`",
        )
    if members[0].flag_bits & 1:
        raise UnreadableFile(file.path, "the zip file is encrypted", hint="unpack it beforehand")
    try:
        return cast("Bytes", archive.open(members[0]))
    except NotImplementedError as error:
        raise UnreadableFile(file.path, str(error), hint="unpack it beforehand") from error


@dataclass
class _Checked:
    """A stream whose errors name the file."""

    stream: Bytes
    file: FileState
    kind: str

    def read(self, size: int, /) -> bytes:
        with _naming(self.file, self.kind):
            return self.stream.read(size)


@dataclass
class StartOfStream:
    """A stream whose beginning can be looked at."""

    stream: Bytes
    held: bytes = b""
    closed: bool = False

    def peek(self, size: int) -> bytes:
        """Return the next bytes without taking them."""
        while len(self.held) < size and (more := self.stream.read(size - len(self.held))):
            self.held += more
        return self.held[:size]

    def skip(self, size: int) -> None:
        """Take bytes that were looked at."""
        self.held = self.held[size:]

    def read(self, size: int = -1, /) -> bytes:
        if self.held:
            taken, self.held = self.held[:size], self.held[size:]
            return taken
        return self.stream.read(size)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Leave it to whoever has opened the stream."""


@dataclass
class _Inflated:
    """What zlib has packed without a header of gzip."""

    stream: Bytes
    inflate: Any = field(default_factory=zlib.decompressobj)

    def read(self, size: int, /) -> bytes:
        while not self.inflate.eof:
            packed = self.inflate.unconsumed_tail or self.stream.read(CHUNK)
            if not packed:
                raise EOFError("it ends too early")
            if data := self.inflate.decompress(packed, size):
                return bytes(data)
        return b""


def _codec(file: FileState, head: bytes, encoding: str | None) -> tuple[str | None, int]:
    """Return the codec of a file, None for UTF-8, and how long its byte order mark is."""
    mark, marked = byte_order_mark(head)
    if encoding is None:
        if not marked and (wide := wide_encoding(head)):
            raise UnreadableFile(
                file.path,
                f"it looks like {wide.upper()} without a byte order mark",
                hint=f"set the reader option `encoding: {wide}`",
            )
        return (None if marked in ("", "utf-8") else marked), len(mark)
    name = codecs.lookup(python_codec(encoding, marked)).name
    if name in ("utf-8", "utf-8-sig"):
        return None, len(codecs.BOM_UTF8) if marked == "utf-8" else 0
    return name, len(mark) if marked == name else 0


def _undecodable(error: UnicodeError) -> tuple[str, int]:
    """Stand for bytes with halves of surrogate pairs, which UTF-8 does not have."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in bad), error.end


codecs.register_error(_UNDECODABLE, _undecodable)


class _Transcoded:
    """A text in UTF-8."""

    def __init__(self, stream: Bytes, codec: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(codec)(_UNDECODABLE)
        self._held = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        while not self._held and not self._ended:
            data = self._stream.read(CHUNK)
            self._ended = not data
            text = self._decoder.decode(data, self._ended)
            self._held = text.encode("utf-8", "surrogatepass")
        taken, self._held = self._held[:size], self._held[size:]
        return taken
