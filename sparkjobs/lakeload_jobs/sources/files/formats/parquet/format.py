"""Parquet: facts, options and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeload_jobs.sources.files.formats.base import SessionSetting, TypedFormat

if TYPE_CHECKING:
    from lakeload_jobs.sources.files.typed.columns import Column, FileSchema
    from lakeload_jobs.sources.files.typed.rows import FormatReader
    from lakeload_jobs.sources.paths.file_bytes import FileBytes
    from lakeload_jobs.sources.paths.file_state import FileState


class ParquetFormat(TypedFormat):
    """Row groups of packed columns, with a footer that says their types."""

    name = "PARQUET"
    title = "Parquet"
    endings = (".parquet",)
    magic = b"PAR1"
    own_options = ("datetimeRebaseMode", "int96RebaseMode", "mergeSchema", "on_loss")
    spark_reads = True

    def schemas(
        self,
        files: Sequence[FileState],
        opener: FileBytes,
        *,
        sets_aside: bool = False,
        counts: bool = True,
        setting: SessionSetting | None = None,
    ) -> tuple[FileSchema, ...]:
        """Read the footers."""
        # With Arrow, which the documents alone do without.
        from lakeload_jobs.sources.files.formats.parquet.reader import ParquetSettings, read_footers

        settings = ParquetSettings.of_session(setting)
        return read_footers(files, opener, settings, sets_aside=sets_aside)

    def reader(self, opener: FileBytes, *, exact: bool = True, whole: bool = True) -> FormatReader:
        """Return what reads row groups."""
        from lakeload_jobs.sources.files.formats.parquet.reader import ParquetReader

        return ParquetReader(opener, exact, whole)

    def damage_hint(self, columns: Sequence[Column]) -> str:
        """Return what to do about a file that Arrow cannot decode, and perhaps Spark can."""
        from lakeload_jobs.sources.files.typed.columns import lists_of_spark

        also = "; `spark: {reader: JVM}` lets Spark read it" if lists_of_spark(columns) else ""
        return f"check the file{also}"


PARQUET = ParquetFormat()
