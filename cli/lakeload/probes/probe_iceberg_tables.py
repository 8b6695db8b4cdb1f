"""What the Glue probes do for Iceberg tables: as `probe_tables`, with metadata files in S3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import ClassVar

from lakeload.probes.probe_tables import TABLE, ProbeTables
from lakeload.probes.runner import Deadline, succeeds
from lakeload_jobs.aws import AwsError
from lakeload_jobs.core.layout import probe_path
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.opening import open_glue

_AS_GLUE_SAYS = {404: "EntityNotFoundException", 409: "AlreadyExistsException"}


class ProbeIcebergTables(ProbeTables):
    """The Glue probes of one test of an Iceberg destination."""

    update_proves: ClassVar[str] = "a commit goes in, on the version of the table that was read"
    _tried_iceberg = False

    def create_table(self) -> str:
        """A table can be made, and its first metadata file written."""
        with self._writing:
            return self._ask(self._create, inside="database", makes="table")

    def update_table(self) -> str:
        """A commit goes in: metadata is read, written anew, and Glue pointed to it."""
        if "table" not in self._made:
            # A commit to no table would end at reading it.
            return super().update_table()
        with self._writing:
            return self._ask(self._commit, inside="table")

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Remove the database, and the metadata files."""
        left = list(super().remove_all(deadline))
        files = self._catalog.files if self._tried_iceberg else None
        for location in sorted(files.written) if files else ():
            if files and not succeeds(partial(files.delete, location), deadline):
                left.append(location)
        return tuple(left)

    @cached_property
    def _catalog(self) -> IcebergCatalog:
        return open_glue(self.destination, self.session)

    def _create(self) -> None:
        self._tried_iceberg = True
        place = f"{probe_path(self.destination.prefix)}{self.database}/{TABLE}"
        with _as_glue():
            self._catalog.create_table(
                self.database,
                TABLE,
                columns={"id": "long"},
                location=f"s3://{self.destination.bucket}/{place}",
                properties={"format-version": str(self.destination.iceberg.format_version)},
            )

    def _commit(self) -> None:
        with _as_glue():
            self._catalog.set_property(self.database, TABLE, "lakeload.probe", "committed")


@contextmanager
def _as_glue() -> Iterator[None]:
    """Say what Glue said: pyiceberg has names of its own for what is missing or there already."""
    try:
        yield
    except CatalogError as error:
        if error.status not in _AS_GLUE_SAYS:
            raise
        raise AwsError(
            error.message,
            code=_AS_GLUE_SAYS[error.status],
            status=400,
            hint=error.hint,
            retryable=error.retryable,
        ) from error
