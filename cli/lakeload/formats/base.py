"""Interface of a table format in the command line; one module per format implements it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from lakeload.formats.inspection import InspectionRequest, TableState
from lakeload.formats.plan import Judge, TablePlan
from lakeload.formats.reports import (
    Decision,
    RecoveryReport,
    ResetReport,
    ResolutionReport,
    RunsReport,
)
from lakeload.formats.tables import MaintenanceRequest, TablesRequest
from lakeload.launch.run import Maintained
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import JobSpec, TableSpec


class FormatCommands(Protocol):
    """What a job would find, and operations on the tables of a pipeline or destination after it.

    Each raises what opening the catalog raises. An operation raises `InvalidInput` for a request
    that the format cannot serve, `Refused`, `AwsError`.
    """

    def inspect(
        self, session: AwsSession, tables: Sequence[TableSpec], request: InspectionRequest
    ) -> Sequence[TableState]:
        """Inspect every table; a refusal belongs to its table."""

    def plan(
        self,
        session: AwsSession,
        tables: Sequence[TableSpec],
        request: InspectionRequest,
        *,
        local: bool,
    ) -> tuple[TablePlan, ...]:
        """Return what a load would do; with a `local` master the input files are counted."""

    def needs_java(self, spec: JobSpec, table: TableSpec, /) -> str:
        """Return why a load needs the jars of the format, as a clause; '' where it does without, as
        far as the settings tell."""

    def runs(self, request: TablesRequest, limit: int, /) -> RunsReport:
        """Return the newest `limit` jobs of all tables together."""

    def recover(
        self, request: TablesRequest, /, *, abort_older_than: timedelta, dry_run: bool
    ) -> RecoveryReport:
        """Finish or remove what killed runs have left."""

    def resolve(
        self, request: TablesRequest, decision: Decision, job_id: str, /, *, act: bool
    ) -> ResolutionReport:
        """Void or accept a damaged job; without `act` say what that means."""

    def reset(self, request: TablesRequest, /, *, with_log: bool, act: bool) -> ResetReport:
        """Remove what the pipeline has loaded; without `act` say what would go."""

    def maintain(self, request: MaintenanceRequest, /) -> Maintained | None:
        """Take the steps, or say what they would do; None where a Spark job does it."""

    @property
    def judge(self) -> Judge:
        """What becomes of the columns of a table."""
