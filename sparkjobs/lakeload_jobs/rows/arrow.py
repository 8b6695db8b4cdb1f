"""Arrow arrays and compute functions as this package types them.

The published stubs give most compute functions a union of scalar, array and chunked array, and
arrays of a type found out at run time none of that type's methods. A column is therefore `Any`
here, in one place; the tests compare values and types.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.compute

Column: TypeAlias = Any
"""A `pyarrow.Array` of whatever type."""

pc: Any = pyarrow.compute
