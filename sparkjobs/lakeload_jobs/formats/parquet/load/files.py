"""Data files of a Parquet table: their keys, and how they are encoded."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.file_names import render_file_name
from lakeload_jobs.core.layout import TableLocation, data_key, partition_path
from lakeload_jobs.formats.data_files.encode import (
    BLOOM_FILTER_FPP,
    Encoding,
    FileTail,
    PartWriter,
    encode_file,
    footer_rows,
)
from lakeload_jobs.formats.data_files.stage import Encoded

_FOOTER_BYTES = 4 << 20
"""Longer ones, of thousands of columns, are not read again: tasks hold no more of a file."""


@dataclass(frozen=True)
class ParquetFiles:
    """The files of one job (`stage.DataFiles`)."""

    destination: DestinationSpec
    location: TableLocation
    job_id: str
    synced: datetime
    bloom_filters: tuple[str, ...] = ()
    """Names of columns."""

    @property
    def target_size(self) -> int:
        """What the destination says."""
        return self.destination.target_file_size

    def key(self, seq: int, *, rejects: bool) -> str:
        """Return a key in the partition of this job."""
        settings = self.destination.parquet
        return data_key(
            self.location.side_table if rejects else self.location,
            partition_path(settings.partition_strategy, self.synced, self.job_id),
            render_file_name(
                settings.file_name_pattern,
                seq=seq,
                uuid=str(uuid.uuid4()),
                synced=self.synced,
                job_id=self.job_id,
            ),
        )

    def encode(
        self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], sink: PartWriter
    ) -> Encoded:
        """Encode one file. Its rows are those that its footer counts."""
        filters = dict.fromkeys(self.bloom_filters, BLOOM_FILTER_FPP)
        encoding, tail = Encoding(bloom_filters=filters), FileTail(sink, _FOOTER_BYTES)
        rows = encode_file(first, rest, tail, target_size=self.target_size, encoding=encoding)
        footer = tail.footer()
        return Encoded(rows if footer is None else footer_rows(footer))
