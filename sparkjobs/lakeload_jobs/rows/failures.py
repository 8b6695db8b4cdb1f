"""Expected failures that cross from a Python worker to the driver as text.

Spark hands the driver only the text of a worker's traceback. An expected failure is therefore
written into it as one marked line of JSON and read back, so that "access denied" arrives as itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.errors import LakeloadError, MachineNotReady, disk_full
from lakeload_jobs.contract.events import Stage
from lakeload_jobs.contract.result import ErrorInfo

_MARK = "lakeload-failure "
# Where a worker or `raise_error` failed. Spark's text of a plan has the mark too, of what may fail.
_LINE = re.compile(r"(?:TaskFailed: |\[USER_RAISED_EXCEPTION\] )" + _MARK + r"(\{.*\})")


class TaskFailed(Exception):
    """What a task raises so that the driver finds the failure in the traceback's text."""

    def __init__(self, failure: ErrorInfo) -> None:
        super().__init__(marked(failure))


def marked(failure: ErrorInfo) -> str:
    """Return the failure as text that `failure_in` finds once `TaskFailed` or `raise_error` has
    raised it."""
    return _MARK + json.dumps(to_json(failure))


def expected_failure(error: BaseException) -> LakeloadError | None:
    """Return the failure that `error` is in lakeload's words, or None for anything unexpected."""
    if isinstance(error, LakeloadError):
        return error
    if isinstance(error, MemoryError):
        return MachineNotReady(
            "a Python worker ran out of memory while it encoded the data",
            hint="give `spark.master` fewer cores, for example `local[2]`, or use a larger machine",
        )
    return disk_full(error)


@contextmanager
def failures_for_driver(stage: Stage) -> Iterator[None]:
    """Raise expected failures of a task as `TaskFailed`; `stage` is that of the load."""
    try:
        yield
    except BaseException as error:
        failure = expected_failure(error)
        if failure is None:
            raise
        raise TaskFailed(ErrorInfo.of(failure, stage)) from error


def failure_in(text: str) -> ErrorInfo | None:
    """Return the failure that a worker wrote into the text of its traceback, if it did."""
    found = _LINE.search(text)
    return from_json(ErrorInfo, json.loads(found[1])) if found else None
