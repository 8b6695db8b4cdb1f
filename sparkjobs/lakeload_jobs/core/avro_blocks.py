"""Blocks of Avro files, and the codecs that pack them.

https://avro.apache.org/docs/current/specification/, "Object Container Files".
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import Any

CODECS = frozenset({"null", "deflate", "snappy", "zstandard", "bzip2", "xz"})
"""Those of the specification."""
_CHUNK = 1 << 20


class BlockTooLarge(Exception):
    """A block that is too large when it is unpacked; `size` is the number of bytes, at least."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class DamagedBlock(ValueError):
    """A block that its codec cannot unpack; the text says why."""


def unpacked(codec: str, data: bytes, most: int) -> bytes:
    """Return the data of a block of one of `CODECS`. Raises `BlockTooLarge` for more than `most`
    bytes, and `DamagedBlock`."""
    try:
        found = _unpacked(codec, data, most)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        why = " ".join(str(error).split())[:200]
        raise DamagedBlock(f"a {codec} block cannot be decompressed: {why}") from error
    if len(found) > most:
        raise BlockTooLarge(len(found))
    return found


def _unpacked(codec: str, data: bytes, most: int) -> bytes:
    match codec:
        case "deflate":
            return _decompressed(zlib.decompressobj(-zlib.MAX_WBITS), data, most)
        case "bzip2":
            return _decompressed(bz2.BZ2Decompressor(), data, most)
        case "xz":
            return _decompressed(lzma.LZMADecompressor(), data, most)
        case "snappy" | "zstandard":
            return _by_arrow(codec, data, most)
        case _:
            return data


def _decompressed(codec: Any, data: bytes, most: int) -> bytes:
    """Return what data was before, of too much the beginning."""
    found: bytes = codec.decompress(data, most + 1)
    if not codec.eof and len(found) <= most:
        raise ValueError("it ends too early")
    return found


def _by_arrow(codec: str, data: bytes, most: int) -> bytes:
    # Commands that read no such block start sooner.
    import pyarrow as pa

    try:
        return _from_snappy(pa, data, most) if codec == "snappy" else _from_zstd(pa, data, most)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _from_zstd(arrow: Any, data: bytes, most: int) -> bytes:
    parts, size = [], 0
    with arrow.CompressedInputStream(arrow.BufferReader(data), "zstd") as stream:
        while size <= most and (part := stream.read(_CHUNK)):
            parts.append(part)
            size += len(part)
    return b"".join(parts)


def _from_snappy(arrow: Any, data: bytes, most: int) -> bytes:
    # Raw Snappy begins with the length, and a checksum follows it here.
    packed, length = data[:-4], 0
    for place, byte in enumerate(packed[:5]):
        length |= (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            break
    if length > most:
        raise BlockTooLarge(length)
    found: bytes = arrow.Codec("snappy").decompress(packed, length, asbytes=True)
    if zlib.crc32(found) != int.from_bytes(data[-4:], "big"):
        raise ValueError("its checksum is wrong")
    return found
