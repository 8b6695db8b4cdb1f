"""A digest of one column in order, whatever chunks, files or encodings it came in."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = Any
"""An Arrow array whose type is known at run time only, which the stubs' overloads do not follow."""


class ColumnDigest:
    """SHA-256 over the validity, the lengths and the bytes of a column, fed array by array.

    What a struct or a list holds is digested as columns of its own.
    """

    def __init__(self) -> None:
        self._parts = [hashlib.sha256() for _ in range(3)]
        self._children: list[ColumnDigest] = []

    def update(self, array: Column) -> None:
        """Add the values of `array` after those added before."""
        valid, lengths, values = self._parts
        valid.update(_fixed(array.is_valid()))
        if pa.types.is_struct(array.type):
            self._update_children(array.flatten())
        elif pa.types.is_list(array.type):
            counts: Column = pc.list_value_length(array)
            lengths.update(_fixed(pc.fill_null(counts, pa.scalar(0, pa.int32()))))
            self._update_children([array.flatten()])
        elif pa.types.is_string(array.type) or pa.types.is_binary(array.type):
            filled = pc.fill_null(array, pa.scalar("", array.type))
            lengths.update(_fixed(pc.binary_length(filled)))
            values.update(_characters(filled))
        else:
            values.update(_fixed(pc.fill_null(array, _zero(array.type))))

    def hexdigest(self) -> str:
        """The digest of everything added so far."""
        parts = [part.digest() for part in self._parts]
        parts += [child.hexdigest().encode() for child in self._children]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def _update_children(self, arrays: list[Column]) -> None:
        self._children = self._children or [ColumnDigest() for _ in arrays]
        for child, array in zip(self._children, arrays, strict=True):
            child.update(array)


def _zero(kind: pa.DataType) -> Column:
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.scalar(0, width).cast(kind)
    return pa.scalar(0).cast(kind) if not pa.types.is_decimal(kind) else pa.scalar(0, kind)


def _fixed(array: Column) -> memoryview:
    """The bytes of a fixed-width array without nulls."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    width = array.type.bit_width // 8
    first, last = array.offset * width, (array.offset + len(array)) * width
    return memoryview(array.buffers()[1])[first:last]


def _characters(array: Column) -> memoryview:
    """The bytes of a string array's values, one after the other."""
    offsets = memoryview(array.buffers()[1]).cast("i")
    first, last = offsets[array.offset], offsets[array.offset + len(array)]
    return memoryview(array.buffers()[2])[first:last]
