"""Commits that came second: tried again, or told as such; never a failure of anybody's load."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError

from lakeload_jobs.contract.errors import FollowUpFailed
from lakeload_jobs.formats.iceberg.load.java import caused_by
from lakeload_jobs.formats.iceberg.maintain.work import Work

logger = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 3
"""Each has Iceberg's own retries of the commit in it; what is left takes the work anew."""

_RACES = ("CommitFailedException", "ValidationException")


class LostRace(FollowUpFailed):
    """Another writer changed the same files or branches first, every time."""


def until_won(work: Work, act: Callable[[], T]) -> T:
    """Return what `act` returns, trying it anew on fresh metadata when another commit came first.

    Raises `LostRace`; every other error of Java as it is.
    """
    for number in range(1, TRIES + 1):
        try:
            return act()
        except Py4JJavaError as error:
            if not caused_by(error, *_RACES):
                raise
            logger.info("try %d of %d lost a race", number, TRIES, exc_info=True)
        work.table.refresh()
    raise LostRace(
        f"other commits to `{work.target}` came first {TRIES} times",
        hint="nothing is lost: run it again when fewer loads run, or a part of it with "
        "`--where` or `--max-bytes`",
        retryable=True,
    )
