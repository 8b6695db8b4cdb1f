"""Errors of AWS with better advice than the call itself could give."""

from __future__ import annotations

from lakeload_jobs.aws import AwsError


def with_hint(error: AwsError, hint: str) -> AwsError:
    """Return the error with another hint; all else stays as AWS said it."""
    return AwsError(
        error.message,
        code=error.code,
        status=error.status,
        request_id=error.request_id,
        operation=error.operation,
        hint=hint,
        retryable=error.retryable,
    )
