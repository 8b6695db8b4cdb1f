"""The table formats: one line for each, by the name a destination gives it."""

from __future__ import annotations

from collections.abc import Mapping

from lakeload_jobs.contract.spec import TableFormat as FormatName
from lakeload_jobs.formats.base import TableFormat
from lakeload_jobs.formats.iceberg.format import IcebergFormat
from lakeload_jobs.formats.parquet.format import ParquetFormat

FORMATS: Mapping[FormatName, TableFormat] = {
    "PARQUET": ParquetFormat(),
    "ICEBERG": IcebergFormat(),
}
