"""The IAM statement of `lakeload policy` that grants what a probe was denied."""

from __future__ import annotations

from dataclasses import replace

from lakeload.policy.iam.base import base_policy
from lakeload.policy.iam.iam import granting
from lakeload.policy.iam.model import Statement
from lakeload.probes.model import ProbeResult
from lakeload_jobs.contract.spec import DestinationSpec


def with_statement(result: ProbeResult, destination: DestinationSpec) -> ProbeResult:
    """Return the result with the statement that would have let the probe pass, if there is one."""
    failure = result.failure
    if failure is None or not failure.denied:
        return result
    service = failure.denied.partition(":")[0]
    statement = _statement(destination, failure.denied)
    # AWS may name an action of the same service that belongs to the one that was asked for.
    if statement is None and result.probe.action.startswith(f"{service}:"):
        statement = _statement(destination, result.probe.action)
    if statement is None:
        return result
    return replace(result, failure=replace(failure, statement=statement.as_json()))


def _statement(destination: DestinationSpec, action: str) -> Statement | None:
    if not action.startswith(("sts:", "secretsmanager:", "ssm:")):
        return granting(destination, action)
    # What the base identity needs, which assumes the role and reads the secrets.
    base = base_policy(destination, account=None, assumes=True)
    statements = base.statements if base else ()
    return next((one for one in statements if action in one.actions), None)
