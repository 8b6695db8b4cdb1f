"""The calls of Glue that lakeload makes, one method each: answers as data, errors as `AwsError`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakeload_jobs.aws import AwsError, AwsSession, aws_call

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import (
        DatabaseInputTypeDef,
        DatabaseTypeDef,
        PartitionInputTypeDef,
        PartitionTypeDef,
        TableInputTypeDef,
        TableTypeDef,
    )

MAX_BATCH = 100
"""Glue's limit of partitions in one BatchCreatePartition."""

_ROLE = re.compile(r"arn:([^:]+):iam::(\d{12}):role/")


def is_iceberg(parameters: Mapping[str, str]) -> bool:
    """Return whether a table with these parameters is an Iceberg table."""
    return parameters.get("table_type", "").upper() == "ICEBERG"


@dataclass(frozen=True)
class PartitionProblem:
    """One partition that Glue did not make, or change."""

    value: str
    code: str
    message: str


class GlueCalls:
    """Glue's API for the tables of one destination. Every method may raise `AwsError`.

    A missing entity is None, never an error. What Glue denies says which action on which resources
    has to be allowed: a call on a table is checked against catalog, database and table.
    """

    def __init__(
        self, session: AwsSession, region: str, role_arn: str | None, owner: str | None = None
    ) -> None:
        """`owner` is the account whose catalog it is, where that is not the role's."""
        self._session = session
        # Without a role the account is known to AWS alone; IAM takes the wildcard as well.
        found = _ROLE.match(role_arn or "")
        partition, account = found.groups() if found else ("aws", "*")
        self._arn = f"arn:{partition}:glue:{region}:{owner or account}"

    def get_database(self, database: str) -> DatabaseTypeDef | None:
        """GetDatabase."""
        doing = f"reading Glue's database `{database}`"
        with _none_if_missing(), self._call(doing, "GetDatabase", database):
            return self._session.glue.get_database(Name=database)["Database"]
        return None

    def create_database(self, database: DatabaseInputTypeDef) -> None:
        """CreateDatabase."""
        name = database["Name"]
        with self._call(f"creating Glue's database `{name}`", "CreateDatabase", name):
            self._session.glue.create_database(DatabaseInput=database)

    def get_table(self, database: str, table: str) -> TableTypeDef | None:
        """GetTable; None when the table or its database is missing."""
        doing = f"reading Glue's table `{database}.{table}`"
        with _none_if_missing(), self._call(doing, "GetTable", database, table):
            return self._session.glue.get_table(DatabaseName=database, Name=table)["Table"]
        return None

    def create_table(self, database: str, table: TableInputTypeDef) -> None:
        """CreateTable."""
        name = table["Name"]
        with self._call(
            f"creating Glue's table `{database}.{name}`", "CreateTable", database, name
        ):
            self._session.glue.create_table(DatabaseName=database, TableInput=table)

    def update_table(self, database: str, table: TableInputTypeDef, version: str | None) -> None:
        """UpdateTable, of exactly this version where Glue told one, without keeping the old one.

        Each kept version counts against a quota of the account.
        """
        name = table["Name"]
        with self._call(
            f"changing Glue's table `{database}.{name}`", "UpdateTable", database, name
        ):
            glue = self._session.glue
            if version is None:
                glue.update_table(DatabaseName=database, TableInput=table, SkipArchive=True)
            else:
                glue.update_table(
                    DatabaseName=database, TableInput=table, SkipArchive=True, VersionId=version
                )

    def delete_table(self, database: str, table: str) -> None:
        """DeleteTable; Glue deletes its partitions with it. One that is gone is fine."""
        doing = f"deleting Glue's table `{database}.{table}`"
        with _none_if_missing(), self._call(doing, "DeleteTable", database, table):
            self._session.glue.delete_table(DatabaseName=database, Name=table)

    def get_partition(self, database: str, table: str, value: str) -> PartitionTypeDef | None:
        """GetPartition by the value of the one partition key."""
        doing = f"reading the partition `{value}` of Glue's table `{database}.{table}`"
        with _none_if_missing(), self._call(doing, "GetPartition", database, table):
            return self._session.glue.get_partition(
                DatabaseName=database, TableName=table, PartitionValues=[value]
            )["Partition"]
        return None

    def create_partitions(
        self, database: str, table: str, partitions: Sequence[PartitionInputTypeDef]
    ) -> list[PartitionProblem]:
        """BatchCreatePartition of at most `MAX_BATCH`; return those that were not made."""
        doing = f"registering {len(partitions)} partitions of Glue's table `{database}.{table}`"
        with self._call(doing, "BatchCreatePartition", database, table):
            answer = self._session.glue.batch_create_partition(
                DatabaseName=database, TableName=table, PartitionInputList=partitions
            )
        return [
            _problem("/".join(item.get("PartitionValues", [])), item)
            for item in answer.get("Errors", [])
        ]

    def update_partition(
        self, database: str, table: str, value: str, partition: PartitionInputTypeDef
    ) -> list[PartitionProblem]:
        """BatchUpdatePartition of one, which replaces all of it; return why that was not done."""
        doing = f"changing the partition `{value}` of Glue's table `{database}.{table}`"
        with self._call(doing, "BatchUpdatePartition", database, table):
            answer = self._session.glue.batch_update_partition(
                DatabaseName=database,
                TableName=table,
                Entries=[{"PartitionValueList": [value], "PartitionInput": partition}],
            )
        return [_problem(value, item) for item in answer.get("Errors", [])]

    @contextmanager
    def _call(self, doing: str, operation: str, database: str, table: str = "") -> Iterator[None]:
        try:
            with aws_call(doing):
                yield
        except AwsError as error:
            if not error.denied or error.explicit_deny:
                raise
            raise self._denied(error, operation, database, table) from error

    def _denied(self, error: AwsError, operation: str, database: str, table: str) -> AwsError:
        resources = [f"{self._arn}:table/{database}/{table}"] if table else []
        resources += [f"{self._arn}:database/{database}", f"{self._arn}:catalog"]
        shown = ", ".join(f"`{resource}`" for resource in resources)
        return AwsError(
            error.message,
            code=error.code,
            status=error.status,
            request_id=error.request_id,
            operation=operation,
            hint=f"allow `glue:{operation}` on {shown} in the policy of the role or user; where "
            "Lake Formation governs the database, grant the role its permissions there as well "
            "(IAM and Lake Formation use the same error code)",
        )


@contextmanager
def _none_if_missing() -> Iterator[None]:
    """Pass over an error which says that the entity does not exist."""
    try:
        yield
    except AwsError as error:
        if error.code != "EntityNotFoundException":
            raise


def _problem(value: str, item: Mapping[str, Any]) -> PartitionProblem:
    detail = item.get("ErrorDetail", {})
    return PartitionProblem(
        value, detail.get("ErrorCode", "Unknown"), detail.get("ErrorMessage", "")
    )
