"""Failures as data, and what several of them mean for a script."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.errors import (
    ExitCode,
    FollowUpFailed,
    LakeloadError,
    LoadFailed,
    shared_exit,
    worst_exit,
)
from lakeload_jobs.contract.result import ErrorInfo

WORST_LAST = [
    ExitCode.OK,
    ExitCode.FOLLOW_UP_FAILED,
    ExitCode.REFUSED,
    ExitCode.INVALID,
    ExitCode.MACHINE,
    ExitCode.BUG,
    ExitCode.TABLE_FAILED,
    ExitCode.INTERRUPTED,
]


def test_exit_code_of_several_errors_is_the_worst() -> None:
    assert set(WORST_LAST) == set(ExitCode)
    assert worst_exit([]) is ExitCode.OK
    for number, worst in enumerate(WORST_LAST, 1):
        codes = [int(code) for code in WORST_LAST[:number]]
        assert worst_exit(codes) is worst
        assert worst_exit(codes[::-1]) is worst


@pytest.mark.parametrize(
    ("codes", "shared"), [([4, 4], 4), ([3], 3), ([2, 4], 1), ([1, 2], 1), ([], 1)]
)
def test_failures_share_a_code_or_are_failed_tables(codes: list[int], shared: int) -> None:
    assert shared_exit(codes) is ExitCode(shared)


@pytest.mark.parametrize(
    "error",
    [
        LoadFailed("the file is gone", hint="run again", retryable=True),
        FollowUpFailed("Glue lags behind"),
    ],
)
def test_error_round_trips_as_data(error: LakeloadError) -> None:
    info = ErrorInfo.of(error, "commit")

    assert (info.type, info.message, info.hint) == (type(error).__name__, str(error), error.hint)
    assert (info.exit_code, info.retryable) == (error.exit_code, error.retryable)
    assert info.stage == "commit"
    assert ErrorInfo.of(error).stage is None
