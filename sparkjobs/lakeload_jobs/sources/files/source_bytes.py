"""The bytes of source files, decompressed, chunk by chunk: of local ones, or of any stream."""

from __future__ import annotations

import bz2
import codecs
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Protocol

CHUNK = 1 << 20

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


DAMAGED = (OSError, EOFError, zlib.error)
"""What `decompressed` raises for bytes that are not what the file's name says."""


class Bytes(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, none at the end."""


def decompressed(name: str, file: Bytes) -> Iterator[bytes]:
    """Yield the bytes of `file`, whose ending tells Hadoop, and so this, how it is compressed.

    Raises one of `DAMAGED`.
    """
    ending = name[name.rfind(".") :] if "." in name else ""
    if ending == ".deflate":
        yield from _inflated(file)
        return
    raw: Any = file
    stream: Any = file
    if ending == ".gz":
        stream = gzip.GzipFile(fileobj=raw)
    elif ending == ".bz2":
        stream = bz2.BZ2File(raw)
    elif ending == ".zst":
        # Heavy, and the command line lists sources without it.
        import pyarrow as pa

        stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
    yield from iter(partial(stream.read, CHUNK), b"")


def readable(name: str) -> bool:
    """Whether `decompressed` knows the file's compression: all but Hadoop's own LZ4 and Snappy."""
    return not name.endswith((".lz4", ".snappy"))


def splittable(name: str) -> bool:
    """Whether a part of the file can be read without what is before it."""
    return not name.endswith((".gz", ".bz2", ".xz", ".zst", ".zip", ".deflate", ".lz4", ".snappy"))


def is_wide(encoding: str) -> bool:
    """Whether an encoding writes ASCII in more than one byte."""
    return encoding.upper().replace("_", "-").startswith(("UTF-16", "UTF-32"))


def as_utf8(chunks: Iterable[bytes], encoding: str | None) -> Iterator[bytes]:
    """Yield a text in UTF-8 without its byte order mark.

    Without `encoding` the first bytes tell it, as they do to Jackson. An encoding that is not wide
    is left as it is: the signs of JSON are the same bytes in all of them.
    """
    stream = iter(chunks)
    start = b""
    while len(start) < 4 and (chunk := next(stream, None)) is not None:
        start += chunk
    mark, name = byte_order_mark(start)
    if encoding is None:
        name = name or wide_encoding(start) or "utf-8"
    else:
        name = python_codec(encoding, name)
        mark = mark if is_wide(name) or mark == codecs.BOM_UTF8 else b""
    decode = codecs.getincrementaldecoder(name)("replace").decode if is_wide(name) else None
    for chunk in chain([start[len(mark) :]], stream):
        yield chunk if decode is None else decode(chunk).encode("utf-8", "replace")


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


def _inflated(file: Bytes) -> Iterator[bytes]:
    inflate = zlib.decompressobj()
    for chunk in iter(partial(file.read, CHUNK), b""):
        rest = chunk
        while rest:
            yield inflate.decompress(rest, CHUNK)
            rest = inflate.unconsumed_tail
    yield inflate.flush()
