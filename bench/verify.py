"""Check a contestant's Parquet files with a reader none of them uses (Arrow C++).

A time counts only when every source column equals the generated data, row by row, and the five
tracking columns hold what they must. A tool tried as a peer once reported success and had written
15 % of the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet

from bench.data import KEY, DataSet
from bench.digest import Column, ColumnDigest

# The stubs cannot join types of different classes by themselves.
TRACKING_TYPES: dict[str, pa.DataType] = {
    "_supa_synced": pa.timestamp("us", tz="UTC"),
    "_supa_deleted": pa.bool_(),
    "_supa_index": pa.int64(),
    "_supa_id": pa.string(),
    "_supa_job_id": pa.string(),
}
TRACKING = pa.schema(TRACKING_TYPES)
SAMPLED_IDS = 1000

KeyEncoding = Callable[[int], bytes]
"""How a contestant turns the key into the bytes it hashes for `_supa_id`."""


class WrongOutput(RuntimeError):
    """A contestant reported success and its files do not hold the data."""


def plain_text(key: int) -> bytes:
    """The encoding of the peers: `sha2(CAST(order_id AS STRING))`."""
    return str(key).encode()


def canonical_key(key: int) -> bytes:
    """The encoding of lakeload for a key of one integer (docs/row-id.md)."""
    return f"n{key};".encode()


def verify(
    files: Sequence[Path],
    data: DataSet,
    *,
    encode: KeyEncoding,
    dense_index: bool,
    same_types: bool = True,
) -> None:
    """Raise `WrongOutput` unless `files` hold exactly the data set and the tracking columns.

    Without `same_types` a column may have another type that holds the values exactly.
    """
    output = pyarrow.dataset.dataset([str(path) for path in files], format="parquet")
    _check_schema(output.schema, data.shape.schema, same_types=same_types)
    _check_compression(files)
    keys = _column(output, data.shape.schema.field(KEY))
    if len(keys) != data.rows:
        raise WrongOutput(f"{len(keys)} rows instead of {data.rows}")
    order = pc.sort_indices(keys)
    for field in data.shape.schema:
        digest = ColumnDigest()
        digest.update(_column(output, field).take(order))
        if digest.hexdigest() != data.digests[field.name]:
            raise WrongOutput(f"column `{field.name}` does not hold the generated values")
    _check_constants(output)
    _check_index(_column(output, TRACKING.field("_supa_index")), dense=dense_index)
    _check_ids(keys, _column(output, TRACKING.field("_supa_id")), encode)


def _column(output: pyarrow.dataset.Dataset, expected: pa.Field[Any]) -> Column:
    """One column as a single array of the type the data set declares."""
    chunked = output.to_table(columns=[expected.name]).column(0)
    return pa.concat_arrays([chunk.cast(expected.type) for chunk in chunked.chunks])


def _check_schema(schema: pa.Schema, given: pa.Schema, *, same_types: bool) -> None:
    """Same columns and, with `same_types`, the same logical types, in any order."""
    expected = {field.name: field.type for field in (*given, *TRACKING)}
    if sorted(schema.names) != sorted(expected):
        raise WrongOutput(f"columns {schema.names} instead of {list(expected)}")
    for field in schema:
        if same_types and field.type != expected[field.name]:
            raise WrongOutput(f"`{field.name}` is {field.type} instead of {expected[field.name]}")


def _check_compression(files: Sequence[Path]) -> None:
    for path in files:
        metadata = pyarrow.parquet.read_metadata(path)
        for group in range(metadata.num_row_groups):
            for column in range(metadata.num_columns):
                codec = metadata.row_group(group).column(column).compression
                if codec != "GZIP":
                    raise WrongOutput(f"{path.name} holds a {codec} column instead of GZIP")


def _check_constants(output: pyarrow.dataset.Dataset) -> None:
    for name in ("_supa_synced", "_supa_job_id", "_supa_deleted"):
        values = pc.unique(_column(output, TRACKING.field(name))).to_pylist()
        if len(values) != 1 or values[0] is None:
            raise WrongOutput(f"`{name}` has {len(values)} values instead of one")
        if name == "_supa_deleted" and values[0]:
            raise WrongOutput("`_supa_deleted` is true for rows that are not deleted")


def _check_index(index: Column, *, dense: bool) -> None:
    distinct = pc.count_distinct(index, mode="all").as_py()
    if distinct != len(index) or index.null_count:
        raise WrongOutput(f"`_supa_index` has {distinct} values for {len(index)} rows")
    first, last = pc.min(index).as_py(), pc.max(index).as_py()
    if dense and (first, last) != (1, len(index)):
        raise WrongOutput(f"`_supa_index` runs from {first} to {last}")


def _check_ids(keys: Column, ids: Column, encode: KeyEncoding) -> None:
    distinct = pc.count_distinct(ids, mode="all").as_py()
    if distinct != len(ids) or ids.null_count:
        raise WrongOutput(f"`_supa_id` has {distinct} values for {len(ids)} rows")
    step = max(1, len(keys) // SAMPLED_IDS)
    for place in range(0, len(keys), step):
        expected = hashlib.sha256(encode(keys[place].as_py())).hexdigest()
        if ids[place].as_py() != expected:
            raise WrongOutput(f"`_supa_id` of key {keys[place]} is not the SHA-256 of that key")
