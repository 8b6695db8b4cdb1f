"""Avro: facts, options and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeload_jobs.sources.files.formats.base import SessionSetting, TypedFormat

if TYPE_CHECKING:
    from lakeload_jobs.sources.files.typed.columns import FileSchema
    from lakeload_jobs.sources.files.typed.rows import FormatReader
    from lakeload_jobs.sources.paths.file_bytes import FileBytes
    from lakeload_jobs.sources.paths.file_state import FileState


class AvroFormat(TypedFormat):
    """Blocks of packed records, behind a header that says their types."""

    name = "AVRO"
    title = "Avro"
    endings = (".avro",)
    magic = b"Obj\x01"
    own_options = ("ignoreExtension", "on_loss")
    spark_options = (
        *("avroSchema", "datetimeRebaseMode", "enableStableIdentifiersForUnionType"),
        *("positionalFieldMatching", "recursiveFieldMaxDepth"),
        "stableIdentifierPrefixForUnionType",
    )
    spark_jars = frozenset({"avro"})
    counting_reads = True

    def schemas(
        self,
        files: Sequence[FileState],
        opener: FileBytes,
        *,
        sets_aside: bool = False,
        counts: bool = True,
        setting: SessionSetting | None = None,
    ) -> tuple[FileSchema, ...]:
        """Read the headers, and where blocks begin."""
        # With Arrow, which the documents alone do without.
        from lakeload_jobs.sources.files.formats.avro.reader import read_avro_headers

        return read_avro_headers(files, opener, whole=counts, sets_aside=sets_aside)

    def reader(self, opener: FileBytes, *, exact: bool = True, whole: bool = True) -> FormatReader:
        """Return what reads blocks."""
        from lakeload_jobs.sources.files.formats.avro.reader import AvroReader

        return AvroReader(opener)


AVRO = AvroFormat()
