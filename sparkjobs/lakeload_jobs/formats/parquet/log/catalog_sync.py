"""Step 6 of DESIGN section 5: the catalog is brought into step with jobs that are done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.formats.parquet.log.catalog import Catalog
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.records import Column, GlueTarget, LoadRecord


@dataclass(frozen=True)
class Cataloged:
    """What step 6 achieved: the records that have their `.cat` now, and what stopped the rest."""

    numbers: frozenset[int] = frozenset()
    error: LakeloadError | None = None


class CatalogStep:
    """Step 6 of one table. Without a catalog, jobs with Glue wait for a run that has one."""

    def __init__(self, log: CommitLog, catalog: Catalog | None) -> None:
        self._log = log
        self._catalog = catalog

    def bring_into_step(
        self, records: Mapping[int, LoadRecord], columns: Sequence[Column]
    ) -> Cataloged:
        """Catalogue done records that have no `.cat` yet, and write it; never raises for them.

        `columns` is the union of the columns of all done records: a late step must not take any
        away (P19). A catalog that fails holds up nothing but the checkpoint (P18).
        """
        if self._catalog is None:
            return Cataloged()
        done: set[int] = set()
        failed: dict[GlueTarget, LakeloadError] = {}
        for target, numbers in _same_table(records).items():
            try:
                self._catalog.bring_into_step([records[number] for number in numbers], columns)
                for number in numbers:
                    self._log.mark_cataloged(number)
                    done.add(number)
            except LakeloadError as error:
                failed[target] = error
        return Cataloged(frozenset(done), next(iter(failed.values()), None))


def _same_table(records: Mapping[int, LoadRecord]) -> dict[GlueTarget, list[int]]:
    """Group the numbers of records by the table they belong to in the catalog, in order."""
    groups: dict[GlueTarget, list[int]] = {}
    for number in sorted(records):
        record = records[number]
        if record.glue is not None:
            groups.setdefault(record.glue, []).append(number)
    return groups


def union(*columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return all columns in order of appearance, the first type of each name."""
    found: dict[str, Column] = {}
    for column in (column for group in columns for column in group):
        found.setdefault(column.name, column)
    return tuple(found.values())
