"""One file of each format, for the tests that hold for all of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from lakeload_jobs.sources.files.formats.avro.reader import AvroReader

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """How rows of `id` and `name` are written, in several parts where a file has such.

    `options` are those that read them, and `beside` what other options have to be set with.
    """

    content: Callable[[Sequence[Row]], bytes]
    options: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    has_parts: bool = True
    """Whether a file can be read in several parts."""
    least: str = ""
    """The constant of the format that says how many bytes a part has at least."""


def _csv(rows: Sequence[Row]) -> bytes:
    lines = ["id,name", *(f"{row['id']},{row['name']}" for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def _ndjson(rows: Sequence[Row]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def _parquet(rows: Sequence[Row]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), stream, row_group_size=len(rows) // 4 + 1)
    return stream.getvalue()


def _orc(rows: Sequence[Row]) -> bytes:
    stream = io.BytesIO()
    table = pa.Table.from_pylist(list(rows))
    with orc.ORCWriter(stream, stripe_size=1, batch_size=len(rows) // 4 + 1) as writer:
        for start in range(0, len(rows), len(rows) // 4 + 1):
            writer.write(table.slice(start, len(rows) // 4 + 1))
    return stream.getvalue()


def _avro(rows: Sequence[Row]) -> bytes:
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
    schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
    stream = io.BytesIO()
    fastavro.writer(stream, schema, list(rows), sync_interval=256)
    return stream.getvalue()


SAMPLES: Mapping[str, Sample] = {
    "CSV": Sample(_csv, {"header": "true"}, {"backslash_escapes": "true"}),
    "JSON": Sample(lambda rows: json.dumps(list(rows)).encode(), has_parts=False),
    "NDJSON": Sample(_ndjson),
    "PARQUET": Sample(_parquet),
    "ORC": Sample(_orc),
    "AVRO": Sample(_avro, least=f"{AvroReader.__module__}._UNIT_BYTES"),
}
