"""Findings about this machine for a Spark job that never started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from lakeload.launch.outcome import Cause
from lakeload.launch.properties import SparkSettings
from lakeload.launch.run_folder import runs_directory
from lakeload.machine.cache import cache_directory
from lakeload_jobs.contract.errors import ExitCode


def explained_by_machine(
    environment: Mapping[str, str], settings: SparkSettings
) -> Callable[[Cause], Cause]:
    """Return what adds to the cause of a job that never started what is unusual on this machine."""
    return lambda cause: _explained(cause, environment, settings)


def _explained(cause: Cause, environment: Mapping[str, str], settings: SparkSettings) -> Cause:
    from lakeload.checks import CheckStatus
    from lakeload.machine.doctor.checks import START_CHECKS
    from lakeload.machine.doctor.model import CheckContext, Host, Need, run_checks

    host = Host(
        environment, sys.platform, "", cache_directory(environment), runs_directory(environment)
    )
    need = Need(master=settings.master, driver_memory=settings.memory, conf=settings.conf)
    report = run_checks(CheckContext(host, need, offline=True), START_CHECKS)
    findings = report.with_status(CheckStatus.FAILED, CheckStatus.WARNING)
    if not findings or cause.exit_code is ExitCode.INTERRUPTED:
        return cause
    lines = "\n".join(
        f"  {finding.found}{f': {finding.why}' if finding.why else ''}" for finding in findings
    )
    commands = [f"`{finding.command}`" for finding in findings if finding.command]
    hints = [cause.hint, f"run {', or '.join(commands)}" if commands else None]
    return replace(
        cause,
        message=f"{cause.message}\nwhat is unusual on this machine:\n{lines}",
        hint=", or ".join(filter(None, hints)) or None,
        exit_code=ExitCode.MACHINE,
    )
