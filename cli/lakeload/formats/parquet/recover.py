"""Recovery of several tables, and what its end means for a script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from lakeload.formats.tables import UpkeepTable, about, for_each
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import ExitCode, LakeloadError, worst_exit
from lakeload_jobs.formats.parquet.log.publish import Notify
from lakeload_jobs.formats.parquet.log.recovery import TableRecovery, recover_table
from lakeload_jobs.formats.parquet.log.roll_forward import Catalog
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class Recovery:
    """One table after its recovery, or in a dry run before it."""

    target: str
    found: TableRecovery
    dry_run: bool = False

    @property
    def status(self) -> str:
        """IN_STEP, RECOVERED, DAMAGED, CATALOG_STALE or FAILED, the worst that applies.

        In a dry run UNFINISHED stands for RECOVERED.
        """
        if self.found.error is not None:
            return "FAILED"
        if self.found.damaged:
            return "DAMAGED"
        if self._uploads_error is not None:
            return "FAILED"
        if self.found.catalog_error is not None:
            return "CATALOG_STALE"
        if replace(self.found, uploads_error=None).nothing_to_do:
            return "IN_STEP"
        return "UNFINISHED" if self.dry_run else "RECOVERED"

    @property
    def errors(self) -> tuple[LakeloadError, ...]:
        """Everything that went wrong, the worst first."""
        found = (self.found.error, self._uploads_error, self.found.catalog_error)
        return tuple(error for error in found if error is not None)

    @property
    def warnings(self) -> tuple[LakeloadError, ...]:
        """What a role may not do that published policies lack: nothing committed depends on it."""
        denied = self.found.uploads_error
        return () if denied is None or self._uploads_error else (denied,)

    @property
    def _uploads_error(self) -> LakeloadError | None:
        error = self.found.uploads_error
        return None if isinstance(error, AwsError) and error.denied else error

    @property
    def exit_code(self) -> ExitCode:
        """TABLE_FAILED where a person is needed, REFUSED, FOLLOW_UP_FAILED, or OK."""
        stopping = [error for error in (self.found.error, self._uploads_error) if error]
        codes = {error.exit_code for error in stopping}
        if self.found.damaged or codes - {ExitCode.REFUSED}:
            return ExitCode.TABLE_FAILED
        if codes:
            return ExitCode.REFUSED
        return ExitCode.FOLLOW_UP_FAILED if self.found.catalog_error else ExitCode.OK


@dataclass(frozen=True)
class Tools:
    """What work on a table's log needs."""

    objects: Objects
    catalog: Catalog | None
    parallelism: int
    notify: Notify


def recover(
    tools: Tools, tables: Sequence[UpkeepTable], *, abort_older_than: timedelta, dry_run: bool
) -> tuple[Recovery, ...]:
    """Recover each table, several at a time; one that cannot be leaves the others alone."""

    def work(table: UpkeepTable) -> Recovery:
        found = recover_table(
            tools.objects,
            table.location,
            catalog=tools.catalog,
            parallelism=tools.parallelism,
            notify=about(table, tools.notify),
            abort_older_than=abort_older_than,
            dry_run=dry_run,
        )
        return Recovery(table.target, found, dry_run)

    return tuple(for_each(tables, work))


def code_of_errors(errors: Iterable[LakeloadError | None]) -> ExitCode:
    """Return the exit code of tables of which some ended with an error, None for the others."""
    known = (ExitCode.REFUSED, ExitCode.FOLLOW_UP_FAILED)
    codes = [error.exit_code for error in errors if error]
    return worst_exit(code if code in known else ExitCode.TABLE_FAILED for code in codes)
