"""What a table has to hold, as plain lists of dicts, and the source files that say so."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table

Row = dict[str, Any]

_NOON = dt.datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=dt.UTC)
SECOND = 2
"""The version of the source whose columns are wider, and one more."""


def schema(version: int) -> pa.Schema:
    """Return the source's columns: the second version widens three and adds one."""
    wider = version >= SECOND
    fields: list[pa.Field[Any]] = [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("qty", pa.int64() if wider else pa.int32()),
        pa.field("price", pa.decimal128(14 if wider else 10, 2)),
        pa.field("ratio", pa.float64() if wider else pa.float32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("version", pa.int64()),
        pa.field("gone", pa.bool_()),
    ]
    return pa.schema([*fields, pa.field("note", pa.string())] if wider else fields)


def row(number: int, *, version: int = 1, gone: bool = False, wide: bool = False) -> Row:
    """Return one source row, every value a function of its arguments."""
    values: Row = {
        "id": number,
        "name": None if number % 7 == 0 else f"näme {number} v{version}",
        "qty": number * 10 + (5_000_000_000 if wide else 0),
        "price": Decimal(number * 100 + version).scaleb(-2),
        "ratio": number + 0.25,
        "at": _NOON + dt.timedelta(seconds=number, days=version),
        "version": version,
        "gone": gone,
    }
    return {**values, "note": f"note {number}"} if wide else values


def write_rows(path: Path, rows: Sequence[Row], *, version: int = 1) -> Path:
    """Write a source file of Parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema(version)), path)
    return path


def row_id(number: int) -> str:
    """Return `_supa_id` of a table whose key is `id`, as docs/row-id.md says."""
    return hashlib.sha256(f"n{number};".encode()).hexdigest()


@dataclass
class Oracle:
    """The rows a table has to hold after each load, and at each of its snapshots."""

    rows: list[Row] = field(default_factory=list)
    at: dict[int, list[Row]] = field(default_factory=dict)
    """Snapshot id → the rows as they were then."""

    def append(self, rows: Sequence[Row], job: str) -> None:
        """All rows come on top."""
        self.rows = [*self.rows, *(_loaded(one, job) for one in rows)]

    def overwrite(self, rows: Sequence[Row], job: str) -> None:
        """These rows take the place of all others."""
        self.rows = [_loaded(one, job) for one in rows]

    def upsert(self, rows: Sequence[Row], job: str, deletes: Literal["MARK", "DELETE"]) -> None:
        """The latest version of each key takes the place of what was there, unless it is late."""
        there = {one["id"]: one["version"] for one in self.rows}
        rows = [one for one in rows if one["version"] >= there.get(one["id"], one["version"])]
        latest: dict[int, Row] = {}
        for one in rows:
            if one["id"] not in latest or one["version"] >= latest[one["id"]]["version"]:
                latest[one["id"]] = one
        kept = [old for old in self.rows if old["id"] not in latest]
        come = [one for one in latest.values() if deletes == "MARK" or not one["gone"]]
        self.rows = [*kept, *(_loaded(one, job) for one in come)]

    def remember(self, snapshot: int) -> None:
        """Note that these are the rows of a snapshot."""
        self.at[snapshot] = [dict(one) for one in self.rows]


def _loaded(source: Mapping[str, Any], job: str) -> Row:
    return {
        **source,
        "_supa_deleted": source["gone"],
        "_supa_id": row_id(source["id"]),
        "_supa_job_id": job,
    }


def read(table: Table, snapshot: int | None = None) -> list[Row]:
    """Return what pyiceberg reads, without what says when and in which order rows were loaded."""
    found: list[Row] = table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
    unsaid = ("_supa_synced", "_supa_index")
    return [{k: v for k, v in one.items() if k not in unsaid} for one in found]


def assert_same(found: Sequence[Row], wanted: Sequence[Row], what: str) -> None:
    """Compare every row and every column; a row of before a column came has null there."""
    columns = {name for one in wanted for name in one}
    filled = [{name: one.get(name) for name in columns} for one in wanted]
    assert {name for one in found for name in one} == columns, what
    assert _sorted(found) == _sorted(filled), what


def _sorted(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda one: (one["id"], one["version"], one["_supa_job_id"]))
