"""Bytes of source files, and the compression that name and first bytes indicate."""

from __future__ import annotations

import codecs
import io
import re
from typing import Protocol

CHUNK = 1 << 20
PACKED_SUFFIXES = (".gz", ".gzip", ".bz2", ".xz", ".zst", ".zip", ".deflate", ".lz4", ".snappy")
"""How names of packed files end, in lower case."""

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Bytes(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, none at the end."""


class SeekableFile(io.RawIOBase):
    """A file for reads in any order: the place of the next one is `_at`. Subclasses read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = start + offset
        return self._at


def read_more(stream: Bytes, held: bytes, size: int) -> tuple[bytes, bool]:
    """Return `held` and the next `size` bytes, fewer at the end, and whether that is reached."""
    pieces = [held] if held else []
    while size > 0:
        piece = stream.read(size)
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces), False


def is_utf8(data: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def byte_order_mark(head: bytes) -> tuple[bytes, str]:
    """Return the byte order mark that a text begins with and its encoding; empty without one."""
    return next(((mark, name) for mark, name in _BOMS if head.startswith(mark)), (b"", ""))


def python_codec(encoding: str, marked: str) -> str:
    """Return Python's name of an encoding; `marked` is the one that the byte order mark names.

    UTF-16 and UTF-32 without a mark are big endian, as Unicode and Java have it.
    """
    name = encoding.lower().replace("_", "-")
    if name in ("utf-16", "utf-32", "utf16", "utf32"):
        wide = f"utf-{name[-2:]}"
        return marked if marked.startswith(wide) else f"{wide}-be"
    return re.sub(r"^utf-?(16|32)-?([bl]e)$", r"utf-\1-\2", name)


def wide_encoding(head: bytes) -> str:
    """Return the wide encoding of a text that begins with two ASCII characters, '' for none."""
    zeros = "".join("0" if byte == 0 else "x" for byte in head[:4])
    known = {"000x": "utf-32-be", "x000": "utf-32-le", "0x0x": "utf-16-be", "x0x0": "utf-16-le"}
    return known.get(zeros, "")
