"""The few probes `sync` and `plan` run before they start Spark."""

from __future__ import annotations

from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.model import Failure, Probe
from lakeload_jobs.contract.errors import Refused
from lakeload_jobs.contract.spec import DestinationSpec

NAMES = frozenset({"credentials", "assume-role", "bucket", "list"})
TIMEOUT_SECONDS = 30.0


def preflight(destination: DestinationSpec) -> None:
    """Make sure that the role can be assumed and the prefix listed; writes nothing.

    Raises `Refused` with what AWS said, and in the hint what to do.
    """
    options = ConnectionOptions(timeout=TIMEOUT_SECONDS, read_only=True, only=NAMES)
    for result in ConnectionTest(destination, options).run():
        if result.failure is not None:
            raise Refused(
                result.failure.message,
                hint=_advice(result.probe, result.failure),
                retryable=result.failure.retryable,
            )


def _advice(probe: Probe, failure: Failure) -> str:
    advice = [failure.hint] if failure.hint else list(failure.causes[:3])
    if failure.status == 403 and probe.resource:
        advice.append(f"the action is `{probe.action}` on `{probe.resource}`")
    return "; ".join([*advice, "`lakeload test-connection` shows the likely causes"])
