"""What became of a maintenance, with Spark or without. Every step is one commit, or none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakeload.launch.outcome import ResultProblem, read_result_of
from lakeload.launch.run import Ended, Launcher, run_job
from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.errors import ExitCode, Interrupted, LakeloadError, shared_exit
from lakeload_jobs.contract.maintain import MaintainResult, TableMaintenance
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import JobSpec

AGAIN = "run it again: what was done stays, and a step that was not finished has changed nothing"


@dataclass(frozen=True)
class Maintained:
    """The end of a maintenance: what is shown, and the exit code."""

    exit_code: ExitCode
    tables: tuple[TableMaintenance, ...] = ()
    error: ErrorInfo | None = None

    @property
    def status(self) -> str:
        """SUCCEEDED, FAILED or INTERRUPTED, for the JSON document."""
        if self.exit_code in (ExitCode.OK, ExitCode.FOLLOW_UP_FAILED) and self.error is None:
            return "SUCCEEDED"
        return "INTERRUPTED" if self.exit_code == ExitCode.INTERRUPTED else "FAILED"


def launch_maintenance(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Maintained:
    """Maintain the tables that `spec` names. Raises as `run_job` does."""
    ended = run_job(spec, folder, launcher)
    return decide(ended, read_result_of(MaintainResult, folder.result, spec.attempt_id))


def maintained(tables: Iterable[TableMaintenance]) -> Maintained:
    """Return the outcome of tables that were all worked on."""
    found = tuple(tables)
    return Maintained(exit_code_of(found), found)


def refused(error: LakeloadError) -> Maintained:
    """Return the outcome of a maintenance that ended before any table was looked at."""
    return Maintained(error.exit_code, (), ErrorInfo.of(error))


def decide(ended: Ended, result: MaintainResult | ResultProblem) -> Maintained:
    """Return the outcome; success takes two signals that agree, as that of a load does."""
    ending = ended.ending
    tables = result.tables if isinstance(result, MaintainResult) else ()
    whole = isinstance(result, MaintainResult) and result.error is None
    if ending.stopped_by is not None and not (whole and ending.exit_status == 0):
        stopped = Interrupted(f"stopped by {ending.stopped_by.name}", hint=AGAIN)
        return Maintained(stopped.exit_code, tables, ErrorInfo.of(stopped))
    if isinstance(result, ResultProblem):
        ran_well = ending.exit_status == 0 or not result.missing
        message, hint, code = result.message, result.hint, ExitCode.TABLE_FAILED
        if not ran_well:
            cause = ended.cause
            message, code = f"the Spark job died: {cause.message}", cause.exit_code
            hint = cause.hint or AGAIN
        return Maintained(code, (), ErrorInfo("NoResult", message, int(code), hint))
    if result.error is not None:
        return Maintained(ExitCode(result.error.exit_code), tables, result.error)
    if result.status == "SUCCEEDED" and ending.exit_status != 0:
        code = ExitCode.FOLLOW_UP_FAILED
        message = f"the job reported success and Spark ended with status {ending.exit_status}"
        return Maintained(code, tables, ErrorInfo("Disagreement", message, int(code)))
    return Maintained(exit_code_of(tables), tables)


def exit_code_of(tables: Iterable[TableMaintenance]) -> ExitCode:
    """Return the code that all failures share, else 1; 5 where other commits came first."""
    found = tuple(tables)
    steps = [step for table in found for step in table.steps]
    failed = [table.error for table in found if table.error]
    failed += [step.error for step in steps if step.status == "FAILED" and step.error]
    if failed:
        return shared_exit(error.exit_code for error in failed)
    lost = any(step.status == "LOST_RACE" for step in steps)
    return ExitCode.FOLLOW_UP_FAILED if lost else ExitCode.OK
