"""Metrics of our data files for their manifest: from the footer, and from the facts of the task.

The rules are those of Iceberg's `MetricsConfig` and `ParquetMetrics`, for files that lakeload's own
tasks have written: their fields have Iceberg's ids and the order of the schema.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from lakeload_jobs.formats.iceberg.commits.manifests import DATA
from lakeload_jobs.formats.iceberg.commits.metadata import Json, int_property
from lakeload_jobs.formats.iceberg.commits.values import Leaf, binary, leaves, truncated

_METRICS = "write.metadata.metrics."
_INFERRED = f"{_METRICS}max-inferred-column-defaults"
_MAX_INFERRED = 100
"""Columns behind so many have no metrics, unless a property says so."""
_DEFAULT = "truncate(16)"
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_MAGIC = b"PAR1"

Mode = Literal["none", "counts", "full", "truncate"]


@dataclass(frozen=True)
class Metrics:
    """How much is told of a column; `length` is that of bounds in mode `truncate`."""

    mode: Mode
    length: int = 0

    @classmethod
    def parsed(cls, text: str) -> Metrics:
        """Read a property's value; a wrong one is the default, as Iceberg takes it."""
        lower = text.strip().lower()
        if match := _TRUNCATE.fullmatch(lower):
            return cls("truncate", int(match[1]))
        modes: Mapping[str, Mode] = {"none": "none", "counts": "counts", "full": "full"}
        return cls(modes[lower]) if lower in modes else cls.parsed(_DEFAULT)


def metrics_by_id(schema: Mapping[str, Any], properties: Mapping[str, str]) -> dict[int, Metrics]:
    """Return field id → metrics, as the properties of a table have them."""
    default = properties.get(f"{_METRICS}default")
    most = int_property({"properties": properties}, _INFERRED, _MAX_INFERRED)
    few = set(itertools.islice(_flat_first({**schema, "type": "struct"}), most))
    found = {}
    for leaf in leaves(schema):
        inferred = default or (_DEFAULT if leaf.id in few else "none")
        found[leaf.id] = Metrics.parsed(properties.get(f"{_METRICS}column.{leaf.name}", inferred))
    return found


def _flat_first(kind: Any) -> Iterator[int]:
    """Yield the ids of primitive fields, at each level before those within it: in this order
    Iceberg chooses columns that have metrics."""
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        inner = [(field["id"], field["type"]) for field in kind["fields"]]
    else:
        parts = ("element",) if kind["type"] == "list" else ("key", "value")
        inner = [(kind[f"{part}-id"], kind[part]) for part in parts]
    yield from (number for number, one in inner if isinstance(one, str))
    for _, one in inner:
        yield from _flat_first(one)


@dataclass(frozen=True)
class WrittenFile:
    """A file that is in the bucket: `footer` is that of the file (Thrift), `floats` are NaN counts
    and bounds of its floating-point columns by field id, `partition` its values by name."""

    location: str
    size: int
    rows: int
    footer: bytes
    floats: Mapping[int, Mapping[str, Any]]
    partition: Mapping[str, Any] = field(default_factory=dict)


def data_file(
    schema: Mapping[str, Any], properties: Mapping[str, str], written: WrittenFile
) -> Json:
    """Return what a manifest says of a file, without its row ids."""
    footer = struct.pack("<I", len(written.footer))
    metadata = pq.read_metadata(pa.BufferReader(_MAGIC + written.footer + footer + _MAGIC))
    columns = list(leaves(schema))
    metrics = metrics_by_id(schema, properties)
    counted = _Counted()
    for number in range(metadata.num_row_groups):
        counted.add(metadata.row_group(number), columns, metrics)
    bounds = counted.bounds(columns, metrics)
    nans: dict[int, int] = {}
    for identifier, facts in written.floats.items():
        _add_floats(identifier, facts, metrics[identifier], nans, bounds)
    return {
        "content": DATA,
        "file_path": written.location,
        "file_format": "PARQUET",
        "partition": dict(written.partition),
        "record_count": written.rows,
        "file_size_in_bytes": written.size,
        "column_sizes": _pairs(counted.sizes),
        "value_counts": _pairs(counted.values),
        "null_value_counts": _pairs(counted.known_nulls),
        "nan_value_counts": _pairs(nans),
        "lower_bounds": _pairs(bounds[0]),
        "upper_bounds": _pairs(bounds[1]),
        "key_metadata": None,
        "split_offsets": counted.offsets,
        "equality_ids": None,
        "sort_order_id": 0,
    }


@dataclass
class _Counted:
    """Sums over the row groups of a file, by field id."""

    sizes: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    nulls: dict[int, int] = field(default_factory=dict)
    low: dict[int, Any] = field(default_factory=dict)
    high: dict[int, Any] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    """Columns of which a row group has no statistics: nulls and bounds are left out."""
    unbounded: set[int] = field(default_factory=set)
    """Columns of which a row group has values and no bounds: those of others do not hold."""
    offsets: list[int] = field(default_factory=list)

    @property
    def known_nulls(self) -> dict[int, int]:
        return {number: nulls for number, nulls in self.nulls.items() if number not in self.unknown}

    def add(self, group: Any, columns: list[Leaf], metrics: Mapping[int, Metrics]) -> None:
        """Add one row group."""
        self.offsets.append(_begin(group.column(0)))
        for at, leaf in enumerate(columns):
            chunk, mode = group.column(at), metrics[leaf.id].mode
            if mode == "none":
                continue
            self.sizes[leaf.id] = self.sizes.get(leaf.id, 0) + chunk.total_compressed_size
            if leaf.repeated:
                continue
            self.values[leaf.id] = self.values.get(leaf.id, 0) + chunk.num_values
            statistics = chunk.statistics
            if statistics is None or not statistics.has_null_count:
                self.unknown.add(leaf.id)
                continue
            self.nulls[leaf.id] = self.nulls.get(leaf.id, 0) + statistics.null_count
            # Bounds of floats come from the tasks: Parquet's own know no NaN and no -0.0.
            if mode != "counts" and statistics.has_min_max and leaf.kind not in ("float", "double"):
                self._widen(leaf, statistics.min_raw, statistics.max_raw)
            elif statistics.null_count < chunk.num_values:
                self.unbounded.add(leaf.id)

    def _widen(self, leaf: Leaf, least: Any, most: Any) -> None:
        if leaf.kind.startswith("decimal") and isinstance(least, bytes):
            least, most = (int.from_bytes(one, "big", signed=True) for one in (least, most))
        low, high = self.low.get(leaf.id, least), self.high.get(leaf.id, most)
        self.low[leaf.id], self.high[leaf.id] = min(low, least), max(high, most)

    def bounds(
        self, columns: list[Leaf], metrics: Mapping[int, Metrics]
    ) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Return lower and upper bounds as manifests have them."""
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        for leaf in columns:
            if leaf.id not in self.low or leaf.id in self.unbounded | self.unknown:
                continue
            for into, value, is_upper in (
                (lower, self.low[leaf.id], False),
                (upper, self.high[leaf.id], True),
            ):
                bound: bytes | None = binary(leaf.kind, value)
                if bound is not None and metrics[leaf.id].mode == "truncate":
                    bound = truncated(leaf.kind, bound, metrics[leaf.id].length, upper=is_upper)
                if bound is not None:
                    into[leaf.id] = bound
        return lower, upper


def _begin(chunk: Any) -> int:
    """Return where the pages of a row group's first column begin."""
    start = int(chunk.data_page_offset)
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        return int(chunk.dictionary_page_offset)
    return start


def _add_floats(
    identifier: int,
    facts: Mapping[str, Any],
    metrics: Metrics,
    nans: dict[int, int],
    bounds: tuple[dict[int, bytes], dict[int, bytes]],
) -> None:
    if metrics.mode == "none":
        return
    nans[identifier] = facts["nan"]
    if metrics.mode == "counts":
        return
    for into, name in zip(bounds, ("low", "high"), strict=True):
        if facts[name] is not None:
            into[identifier] = bytes.fromhex(facts[name])


def _pairs(values: Mapping[int, Any]) -> list[Json]:
    return [{"key": number, "value": value} for number, value in sorted(values.items())]
