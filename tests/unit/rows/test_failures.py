"""Failures cross from a worker to the driver as text, and only what is meant to."""

from __future__ import annotations

import errno
import traceback

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import ExitCode, LoadFailed
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.rows.failures import TaskFailed, expected_failure, failure_in, marked


def test_failure_is_parsed_from_a_traceback() -> None:
    denied = AwsError(
        "uploading part 1 of `s3://lake/a`: access denied",
        code="AccessDenied",
        status=403,
        hint="allow `s3:PutObject`\non this resource",
    )
    try:
        raise TaskFailed(ErrorInfo.of(denied, "stage")) from denied
    except TaskFailed:
        text = f"Job aborted\n\n{traceback.format_exc()}\nDriver stacktrace: …"

    found = failure_in(text)

    assert found is not None
    assert found == ErrorInfo.of(denied, "stage")
    assert (found.type, found.exit_code, found.stage) == ("AwsError", ExitCode.REFUSED, "stage")


def test_text_without_a_failure_is_none() -> None:
    assert failure_in("Traceback (most recent call last):\nValueError: {}") is None


def test_a_plan_that_may_fail_has_not_failed() -> None:
    mark = marked(ErrorInfo.of(LoadFailed("the key is null"), "stage"))
    plan = f"raise_error(USER_RAISED_EXCEPTION, map(errorMessage, {mark}), NullType)"

    assert failure_in(f"[INVALID_NON_DETERMINISTIC_EXPRESSIONS] no;\nProject [{plan}]") is None
    raised = failure_in(f"SparkRuntimeException: [USER_RAISED_EXCEPTION] {mark} SQLSTATE: P0001")
    assert raised is not None
    assert raised.message == "the key is null"


def test_a_full_disk_names_the_setting() -> None:
    failure = expected_failure(OSError(errno.ENOSPC, "No space left on device", "/spool/x"))

    assert failure is not None
    assert "/spool/x" in failure.message
    assert "spark.local.dir" in (failure.hint or "")
    assert failure.exit_code == ExitCode.MACHINE


def test_out_of_memory_is_a_machine_error() -> None:
    failure = expected_failure(MemoryError())

    assert failure is not None
    assert failure.exit_code == ExitCode.MACHINE


def test_unexpected_error_is_not_an_expected_failure() -> None:
    assert expected_failure(KeyError("x")) is None
    assert expected_failure(LoadFailed("x")) is not None
