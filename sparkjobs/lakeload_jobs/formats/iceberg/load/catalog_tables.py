"""The tables of a run's catalog, as loads read them and commit to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.catalogs.vended_files import files_for
from lakeload_jobs.formats.iceberg.commits.errors import Unsupported


@dataclass(frozen=True)
class CatalogTables:
    """The tables of one catalog. Its methods raise `CatalogError` and `AwsError` for what is
    refused, and `LoadFailed` for a table that lakeload cannot commit to."""

    store: TableStore
    destination: DestinationSpec
    aws: AwsSession

    @classmethod
    def of(cls, destination: DestinationSpec, aws: AwsSession) -> CatalogTables:
        """Return those of a destination. Nothing is asked yet; raises `InvalidInput` for a missing
        secret."""
        return cls(open_tables(destination, aws), destination, aws)

    def read(self, schema: str, table: str) -> ReadTable | None:
        """Read a table; None where there is none."""
        with committable(f"{schema}.{table}"):
            return self.store.load(schema, table)

    def existing(self, table: TableSpec) -> ReadTable:
        """Read a table that this load has opened before. Raises `LoadFailed` where it was dropped
        since."""
        found = self.read(table.schema, table.table)
        if found is None:
            raise dropped(table.target)
        return found

    def files(self, table: ReadTable) -> LakeFiles:
        """Return the metadata files of a table, read and written as its catalog wants it."""
        return files_for(table, self.destination, self.aws, self.store)


def dropped(target: str) -> LoadFailed:
    """Return the error of a load whose table is gone."""
    return LoadFailed(
        f"the table `{target}` was dropped during the load",
        hint="run again to create it",
        retryable=True,
    )


@contextmanager
def committable(target: str) -> Iterator[None]:
    """Translate what the block raises of a table that commits do not know. Raises `LoadFailed`."""
    try:
        yield
    except Unsupported as error:
        raise LoadFailed(
            f"the table `{target}` has {error}, to which this version of lakeload cannot commit",
            hint=error.hint or "use a newer version of lakeload",
        ) from None
