"""Records that `on_bad_value: QUARANTINE` sets aside: how rows carry them, and their side table.

A reader yields every record of its source, in its place. One that is rejected has a value in the
column `REJECTED_HELPER`, and its other values mean nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import RejectLimit
from lakeload_jobs.rows.arrow import Column, pc
from lakeload_jobs.rows.tracking import ARROW_TYPES, BAD_VALUES_HELPER, HELPER_PREFIX

REJECTED_HELPER = HELPER_PREFIX + "rejected"
"""Struct: why a record is rejected, null for a row that is loaded."""

ROW_HELPERS = (BAD_VALUES_HELPER, REJECTED_HELPER)
"""Helper columns that a reader's batches may have, in this order."""

SET_ASIDE = "set `on_bad_value: QUARANTINE`, which sets such records aside"
"""A hint for records that cannot be read."""

SHOWN = 10
_MOST_SHOWN = 80

_FIELDS: Mapping[str, tuple[str, pa.DataType]] = {
    "source_file": ("string", pa.string()),
    "source_line": ("bigint", pa.int64()),
    "row_group": ("int", pa.int32()),
    "row_number": ("bigint", pa.int64()),
    "column_name": ("string", pa.string()),
    "column_value": ("string", pa.string()),
    "reason": ("string", pa.string()),
    "source_columns": ("string", pa.string()),
    "raw_record": ("string", pa.string()),
    "raw_bytes": ("binary", pa.binary()),
}
_JOB = {"_supa_synced": "timestamp", "_supa_index": "bigint", "_supa_job_id": "string"}

REJECT: Any = pa.struct([(name, kind) for name, (_, kind) in _FIELDS.items()])
REJECT_TYPE = f"struct<{','.join(f'{name}:{kind}' for name, (kind, _) in _FIELDS.items())}>"
"""The same as Spark names it."""

SIDE_COLUMNS: Mapping[str, str] = {
    **{name: kind for name, (kind, _) in _FIELDS.items()},
    "attempt_id": "string",
    **_JOB,
}
"""The columns of a side table, as Spark names their types."""

SIDE_SCHEMA = pa.schema(
    [
        *((name, kind) for name, (_, kind) in _FIELDS.items()),
        ("attempt_id", pa.string()),
        *((name, ARROW_TYPES[name]) for name in _JOB),
    ]
)


@dataclass(frozen=True)
class Reject:
    """A record that is no row of the table. `reason` is a clause; with a `column` it begins with
    the value. `raw` is the record's text, or its JSON where the format has no text; None for a
    whole file, of which no record can be read. `exact` is what a record without text is read from
    again."""

    source_file: str
    reason: str
    raw: bytes | None = None
    source_line: int | None = None
    row_group: int | None = None
    row_number: int | None = None
    column_name: str | None = None
    column_value: str | None = None
    source_columns: str | None = None
    exact: bytes | None = None

    def values(self) -> dict[str, Any]:
        """Return the fields of `REJECT`. Bytes that are no text are kept beside a text of them."""
        found = {name: getattr(self, name) for name in _FIELDS if not name.startswith("raw_")}
        if self.raw is None:
            return {**found, "raw_record": None, "raw_bytes": None}
        try:
            return {**found, "raw_record": self.raw.decode(), "raw_bytes": self.exact}
        except UnicodeDecodeError:
            text = self.raw.decode(errors="backslashreplace")
            return {**found, "raw_record": text, "raw_bytes": self.raw}


def reject_column(rows: int, rejects: Mapping[int, Reject]) -> Column:
    """Return the helper column of a batch, given the rows that are rejected."""
    if not rejects:
        return pa.nulls(rows, REJECT)
    found = [rejects[row].values() if row in rejects else None for row in range(rows)]
    return pa.array(found, REJECT)


def sentence(values: Mapping[str, Any]) -> str:
    """Return what is wrong with a record, given the fields of `REJECT`."""
    if values["source_line"] is not None:
        place = f": line {values['source_line']:,}"
    else:
        parts = (("row group", values["row_group"]), ("row", values["row_number"]))
        place = "".join(f", {what} {number:,}" for what, number in parts if number is not None)
    if values["column_name"] is not None:
        what = f"column `{values['column_name']}`: {values['reason']}"
        return f"reading `{values['source_file']}`{place}, {what}"
    if values["raw_record"] is None:
        return f"reading `{values['source_file']}`{place}: {values['reason']}"
    raw = values["raw_record"].rstrip("\r\n")
    raw = raw if len(raw) <= _MOST_SHOWN else f"{raw[:_MOST_SHOWN]}…"
    return f"reading `{values['source_file']}`{place}: {values['reason']}: `{raw}`"


@dataclass(frozen=True)
class Rejected:
    """How many of how many records are rejected, sentences about the first of them, and the files
    that have other records than these."""

    rows: int = 0
    of: int = 0
    first: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __add__(self, other: Rejected) -> Rejected:
        first = (*self.first, *other.first)[:SHOWN]
        files = tuple(sorted({*self.files, *other.files}))
        return Rejected(self.rows + other.rows, self.of + other.of, first, files)


NONE_REJECTED = Rejected()


def check_rejected(rejected: Rejected, limit: RejectLimit) -> None:
    """Raise `LoadFailed` with the first records when more are rejected than `limit` allows."""
    if limit.allows(rejected.rows, rejected.of):
        return
    more = rejected.rows - len(rejected.first)
    texts = [*rejected.first, *((f"and {more:,} more",) if more else ())]
    share = 100 * rejected.rows / max(rejected.of, 1)
    raise TooManyRejected(
        f"{rejected.rows:,} of {rejected.of:,} records ({share:.3g} %) cannot be read, and "
        f"`max_rejected` is {limit}: {'; '.join(texts)}",
        hint="fix the files or the settings that say how they are read, or raise `max_rejected`",
    )


class TooManyRejected(LoadFailed):
    """More records are rejected than `max_rejected` allows."""


@dataclass(frozen=True)
class RejectedJob:
    """Whose rejected records they are."""

    synced: datetime
    job_id: str
    attempt_id: str


def loaded_rows(batch: pa.RecordBatch, rejects: Column) -> pa.RecordBatch:
    """Return the rows of a batch that are not rejected."""
    return batch if rejects.null_count == len(rejects) else batch.filter(rejects.is_null())


def side_rows(rejects: Column, first_index: int, job: RejectedJob) -> pa.RecordBatch | None:
    """Return the rows of the side table that the helper column of a batch makes; None for none.

    `first_index` is the index of the batch's first row.
    """
    places = pc.indices_nonzero(rejects.is_valid())
    count = len(places)
    if not count:
        return None
    taken = rejects.take(places)
    arrays: list[Column] = [
        *taken.flatten(),
        pa.repeat(pa.scalar(job.attempt_id), count),
        pa.array([job.synced] * count, ARROW_TYPES["_supa_synced"]),
        pc.add(places.cast(pa.int64()), first_index),
        pa.repeat(pa.scalar(job.job_id), count),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SIDE_SCHEMA)


def of_records(rows: Any) -> Any:
    """Return which rows of a side table are of a record, and do not stand for a whole file."""
    return pc.or_(rows["raw_record"].is_valid(), rows["raw_bytes"].is_valid())


class SideRows:
    """The rejected records of one partition as rows of the side table, kept on disk: how many there
    are, nobody knows before the end. Use it as a context manager."""

    def __init__(self) -> None:
        self.found = NONE_REJECTED
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of the block
        self._writer: Any = None

    def __enter__(self) -> SideRows:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, rejects: Column, first_index: int, job: RejectedJob) -> None:
        """Take the helper column of a batch whose first row has the index `first_index`."""
        rows = side_rows(rejects, first_index, job)
        if rows is None:
            return
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, SIDE_SCHEMA)
        self._writer.write_batch(rows)
        first = rows.slice(0, SHOWN - len(self.found.first)).to_pylist()
        files = tuple(pc.unique(rows.filter(of_records(rows))["source_file"]).to_pylist())
        self.found += Rejected(rows.num_rows, 0, tuple(map(sentence, first)), files)

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield all that was taken, when the last was."""
        if self._writer is not None:
            self._writer.close()
            self._file.seek(0)
            yield from pa.ipc.open_stream(self._file)


def with_records(
    arrays: Sequence[Column], rows: int, before: Sequence[int]
) -> tuple[list[Column], list[int], list[int]]:
    """Put records that are no rows between the rows of a batch, as rows of nulls.

    `before` is how many rows come before each record, in order. Returns the columns, the new places
    of the rows and those of the records.
    """
    own: list[int] = []
    order: list[int | None] = []
    added: list[int] = []
    left = list(before)
    for row in range(rows + 1):
        while left and left[0] <= row:
            left.pop(0)
            added.append(len(order))
            order.append(None)
        if row < rows:
            own.append(len(order))
            order.append(row)
    places = pa.array(order, pa.int64())
    return [column.take(places) for column in arrays], own, added
