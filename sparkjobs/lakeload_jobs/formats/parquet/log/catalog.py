"""What a table's commit log asks of a catalog (DESIGN section 5, step 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakeload_jobs.formats.parquet.log.records import Column, GlueTarget, LoadRecord


class Catalog(Protocol):
    """A catalog that knows tables by their files. Thread-safe: one serves all tables of a run."""

    def check(self, target: GlueTarget, columns: Sequence[Column]) -> None:
        """Say whether the catalog could take this table: before a load, and in `plan`.

        `columns` are the table's columns and those of the load; none before they are known. Only
        reads. Raises `LakeloadError` that names both sides: a table that is not ours, a database
        or table at another location, a column of another type.
        """

    def bring_into_step(self, records: Sequence[LoadRecord], columns: Sequence[Column]) -> None:
        """Make the catalog show the files of done records; doing it again changes nothing.

        The records, one at least, have the same `glue`; several cost hardly more requests than one.
        `columns` is the union of the columns of all done records: a late call never takes any away
        (P19). Raises `LakeloadError`; the data stays in, and what was done stays done.
        """
