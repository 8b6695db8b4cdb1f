"""AWS connections of one command. Imports boto3."""

from __future__ import annotations

from functools import cached_property

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec


class Connections:
    """The AWS identity of one command, assumed once however many of its parts ask.

    `label` names the command, and its attempt where it has one: CloudTrail shows it in the name of
    the role session. Nothing is called before somebody asks.
    """

    def __init__(self, destination: DestinationSpec, label: str) -> None:
        self.destination = destination
        self._session = AwsSession(destination, label=label)

    @cached_property
    def before_spark(self) -> AwsSession:
        """The session of what is looked at before Spark starts: it gives up early."""
        return self._session.waiting(read_timeout=10, max_attempts=3)

    @cached_property
    def patient(self) -> AwsSession:
        """The session of what works on tables without Spark."""
        return self._session.waiting(read_timeout=30, max_attempts=4)
