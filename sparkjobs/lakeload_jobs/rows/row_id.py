"""`_supa_id`: SHA-256 of the key fields in a canonical encoding (F65; docs/row-id.md).

The encoding is a contract with everyone who joins or deduplicates by `_supa_id`: a change here
changes every id. `tests/cases/row_ids.tsv` holds vectors that anyone can recompute.
"""

from __future__ import annotations

import hashlib
from array import array
from binascii import hexlify
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from lakeload_jobs.rows.arrow import Column, pc
from lakeload_jobs.rows.encoding import encode

_DIGITS = 64


def row_ids(columns: Sequence[Column]) -> Column:
    """Return the id of each row as 64 lower-case hex digits; `columns` are the key, in order.

    Raises `ValueError` without columns and `InvalidInput` for a type that has no encoding.
    """
    if not columns:
        raise ValueError("a row id needs at least one column")
    sha256 = hashlib.sha256
    digests = b"".join([sha256(row).digest() for row in encoded_rows(columns).to_pylist()])
    count = len(columns[0])
    return pa.StringArray.from_buffers(count, _offsets(count), pa.py_buffer(hexlify(digests)))


def encoded_rows(columns: Sequence[Column]) -> Column:
    """Return the bytes that are hashed, one value a row; different rows have different bytes."""
    encoded = [encode(column) for column in columns]
    if len(encoded) == 1:
        return encoded[0]
    return pc.binary_join_element_wise(*encoded, pa.scalar(b""))


@lru_cache(maxsize=8)
def _offsets(count: int) -> pa.Buffer:
    """Return offsets of `count` strings of equal length; batches mostly have one of few lengths."""
    return pa.py_buffer(array("i", range(0, (count + 1) * _DIGITS, _DIGITS)))
