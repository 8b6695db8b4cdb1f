"""The identity that reads a database inside the tasks."""

from __future__ import annotations

from dataclasses import dataclass

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import DestinationSpec, JdbcInput


@dataclass(frozen=True)
class TaskIdentity:
    """Who reads inside the tasks: references that each task resolves, never a secret."""

    destination: DestinationSpec
    label: str
    on_executor: bool

    def password(self, read: JdbcInput) -> Secret | None:
        """Return the password, None where the document has none. Raises as `AwsSession` does."""
        if read.password is None:
            return None
        aws = AwsSession(self.destination, label=self.label, on_executor=self.on_executor)
        return aws.resolve(read.password)
