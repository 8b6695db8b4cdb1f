"""Passwords of databases, on the driver and inside the tasks."""

from __future__ import annotations

from dataclasses import dataclass

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import DestinationSpec, JdbcInput
from lakeload_jobs.core.aws_partitions import rds_region


def password_of(aws: AwsSession, read: JdbcInput) -> Secret | None:
    """Return the password of a new connection, None where the document has none. Raises as
    `AwsSession` does."""
    if read.iam_authentication:
        return aws.database_token(read.host, read.port, read.user or "", rds_region(read.host))
    return None if read.password is None else aws.resolve(read.password)


@dataclass(frozen=True)
class TaskIdentity:
    """Who reads inside the tasks: references that each task resolves, never a secret."""

    destination: DestinationSpec
    label: str
    on_executor: bool

    def password(self, read: JdbcInput) -> Secret | None:
        """Return the password of a new connection. Raises as `password_of` does."""
        aws = AwsSession(self.destination, label=self.label, on_executor=self.on_executor)
        return password_of(aws, read)
