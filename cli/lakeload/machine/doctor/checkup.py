"""The examination: every check on its own, none able to spoil another."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Sequence

from lakeload.machine.doctor.access import (
    clock,
    credentials,
    proxies,
    secrets,
    silent_endpoint,
    variables,
)
from lakeload.machine.doctor.model import (
    Check,
    CheckContext,
    CheckResult,
    CheckStatus,
    DoctorReport,
)
from lakeload.machine.doctor.resources import memory, own_folders, processors, scratch, temporary
from lakeload.machine.doctor.software import (
    encoding,
    host_name,
    jars,
    java,
    open_files,
    python_version,
    spark,
)
from lakeload_jobs.contract.errors import LakeloadError

CHECKS = (
    Check("python", python_version),
    Check("java", java),
    Check("pyspark", spark),
    Check("jars", jars),
    Check("memory", memory),
    Check("processors", processors),
    Check("scratch-space", scratch),
    Check("temporary-folder", temporary),
    Check("own-folders", own_folders),
    Check("open-files", open_files),
    Check("encoding", encoding),
    Check("host-name", host_name),
    Check("variables", variables),
    Check("proxies", proxies),
    Check("clock", clock, silence=silent_endpoint),
    Check("secrets", secrets),
    Check("credentials", credentials),
)
"""All there is, in the order in which it is shown."""


def run_checks(context: CheckContext, checks: Sequence[Check] = CHECKS) -> DoctorReport:
    """Return every finding. All checks run at once; what takes longer than `context.seconds`,
    a name server or a disk that never answers, is given up and said.
    """
    started = time.monotonic()
    running = [_Running(check, context) for check in checks]
    findings = [finding for one in running for finding in one.findings(started + context.seconds)]
    return DoctorReport(tuple(findings), time.monotonic() - started)


class _Running:
    """One check under way, in a thread that the end of the program does not wait for."""

    def __init__(self, check: Check, context: CheckContext) -> None:
        self._check = check
        self._patient = context
        self._found: list[CheckResult] = []
        self._complete = False
        name = f"doctor-{check.name}"
        self._thread = threading.Thread(target=self._look, name=name, daemon=True)
        self._thread.start()

    def findings(self, until: float) -> list[CheckResult]:
        """Return what was found until an instant of the monotonic clock.

        Raises `RuntimeError` for a check with a bug; the thread has told where.
        """
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            return [*self._found, self._silence()]
        if not self._complete:
            raise RuntimeError(f"the check {self._check.name} broke off")
        return self._found

    def _look(self) -> None:
        """Collect the findings; what cannot be looked at is a finding too."""
        try:
            for finding in self._check.look(self._patient):
                self._found.append(finding)
        except LakeloadError as error:
            self._found.append(self._unseen(error.message))
        except (OSError, ValueError, ImportError) as error:
            self._found.append(self._unseen(f"{type(error).__name__}: {error}"))
        self._complete = True

    def _silence(self) -> CheckResult:
        if self._check.silence is not None:
            return self._check.silence(self._patient)
        file = self._patient.need.file
        longer = f"{self._patient.seconds * 4:g}s"
        command = ["lakeload", "doctor", *([file] if file else []), "--timeout", longer]
        return self._unseen(
            f"no answer within {self._patient.seconds:g} s", command=shlex.join(command)
        )

    def _unseen(self, why: str, command: str = "") -> CheckResult:
        found = "this could not be looked at"
        return CheckResult(self._check.name, CheckStatus.WARNING, found, why, command)
