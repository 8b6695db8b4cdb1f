"""What all looks at tables before Spark starts have in common, whatever their format."""

from __future__ import annotations

from dataclasses import dataclass

from lakeload.launch.spec import Attempt
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import NO_OPTIONS, DestinationSpec, RunOptions

AT_ONCE = 8
"""Tables that are looked at at once."""


@dataclass(frozen=True)
class Look:
    """What all tables of one look have in common."""

    destination: DestinationSpec
    pipeline: str
    attempt: Attempt
    options: RunOptions = NO_OPTIONS
    loads: bool = False
    """A load follows: what only a commit can tell is asked too."""


def session_before_spark(destination: DestinationSpec, attempt: Attempt) -> AwsSession:
    """Return a session with enough connections for `AT_ONCE` tables. Nothing is called yet."""
    return AwsSession(
        destination,
        label=attempt.attempt_id,
        read_timeout=10,
        max_attempts=3,
        max_connections=AT_ONCE,
    )
