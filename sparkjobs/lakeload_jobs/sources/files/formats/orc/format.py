"""ORC: facts, options and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeload_jobs.sources.files.formats.base import SessionSetting, TypedFormat

if TYPE_CHECKING:
    from lakeload_jobs.sources.files.typed.columns import FileSchema
    from lakeload_jobs.sources.files.typed.rows import FormatReader
    from lakeload_jobs.sources.paths.file_bytes import FileBytes
    from lakeload_jobs.sources.paths.file_state import FileState


class OrcFormat(TypedFormat):
    """Stripes of packed columns, with a footer that says their types."""

    name = "ORC"
    title = "ORC"
    endings = (".orc",)
    magic = b"ORC"
    own_options = ("mergeSchema", "on_loss")

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
        from lakeload_jobs.sources.files.formats.orc.reader import read_orc_footers

        return read_orc_footers(files, opener, sets_aside=sets_aside)

    def reader(self, opener: FileBytes, *, exact: bool = True, whole: bool = True) -> FormatReader:
        """Return what reads stripes."""
        from lakeload_jobs.sources.files.formats.orc.reader import OrcReader

        return OrcReader(opener)


ORC = OrcFormat()
