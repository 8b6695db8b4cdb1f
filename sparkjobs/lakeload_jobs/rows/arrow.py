"""Names for Arrow's types and functions, which its stubs do not know well enough."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow
import pyarrow.compute

Column: TypeAlias = Any
"""A `pyarrow.Array` of whatever type."""

Kind: TypeAlias = Any
"""A `pyarrow.DataType` of whatever kind."""

pc: Any = pyarrow.compute


def with_child(column: Column, kind: Kind, child: Column) -> Column:
    """Return lists or maps of the same lengths with other elements, or entries, as `kind`."""
    buffers = column.buffers()[:2]
    size, nulls, offset = len(column), column.null_count, column.offset
    return pyarrow.Array.from_buffers(kind, size, buffers, nulls, offset, [child])
