"""The formats of source files that lakeload reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.sources.files.formats.avro.format import AVRO
from lakeload_jobs.sources.files.formats.base import FileFormat, TextFormat, TypedFormat
from lakeload_jobs.sources.files.formats.csv.format import CSV
from lakeload_jobs.sources.files.formats.json.format import JSON, NDJSON
from lakeload_jobs.sources.files.formats.orc.format import ORC
from lakeload_jobs.sources.files.formats.parquet.format import PARQUET
from lakeload_jobs.sources.paths.source_bytes import PACKED_SUFFIXES

TEXT_FORMATS: Mapping[str, TextFormat] = {one.name: one for one in (CSV, JSON, NDJSON)}
TYPED_FORMATS: Mapping[str, TypedFormat] = {one.name: one for one in (PARQUET, ORC, AVRO)}
FILE_FORMATS: Mapping[str, FileFormat] = {**TEXT_FORMATS, **TYPED_FORMATS}

_ENDINGS = {ending: one.name for one in FILE_FORMATS.values() for ending in one.endings}


def named_format(path: str) -> FileFormatName | None:
    """Return the format that a path's ending says, None where it says none."""
    name = path.lower()
    for suffix in PACKED_SUFFIXES:
        name = name.removesuffix(suffix)
    return _ENDINGS.get(PurePosixPath(name).suffix)
