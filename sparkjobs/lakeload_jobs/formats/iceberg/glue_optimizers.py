"""Glue's own maintenance of Iceberg tables: registering its three optimizers.

https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-table-optimizers.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import catalog_of, catalog_traits

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import TableOptimizerConfigurationTypeDef

Optimizer = Literal["compaction", "retention", "orphan_file_deletion"]
OPTIMIZERS: tuple[Optimizer, ...] = get_args(Optimizer)
Change = Literal["create", "update", "none"]

SNAPSHOT_DAYS = 5
ORPHAN_DAYS = 3
"""Glue's own defaults, and the fewest days here: loads of that length stay safe."""


@dataclass(frozen=True)
class OptimizerSettings:
    """What the optimizers are told; ages in days."""

    role_arn: str
    snapshot_days: int = SNAPSHOT_DAYS
    retain_last: int = 1
    orphan_days: int = ORPHAN_DAYS


class GlueOptimizers:
    """The optimizers of the tables of one destination. Every method may raise `AwsError`."""

    def __init__(self, session: AwsSession, destination: DestinationSpec) -> None:
        catalog = catalog_of(destination)
        if catalog is None or not catalog_traits(catalog).in_glue:
            raise InvalidInput(
                "Glue's optimizers work on tables of the Glue catalog only, and this destination "
                "uses another catalog",
                hint="leave `--register-glue-optimizers` out: `lakeload maintain` without it does "
                "the same work",
            )
        self._session = session
        self._catalog = catalog.glue_id

    def register(
        self,
        database: str,
        table: str,
        optimizer: Optimizer,
        settings: OptimizerSettings,
        *,
        apply: bool,
    ) -> Change:
        """Create or update one optimizer of a table, or with `apply` False say which it would be.

        One that is there already keeps what is not set here.
        """
        wanted = configuration(optimizer, settings)
        change = self._change(database, table, optimizer, wanted)
        if not apply or change == "none":
            return change
        doing = f"registering the optimizer {optimizer} of Glue's table `{database}.{table}`"
        glue = self._session.glue
        send = glue.create_table_optimizer if change == "create" else glue.update_table_optimizer
        with aws_call(doing):
            send(
                CatalogId=self._catalog_id(),
                DatabaseName=database,
                TableName=table,
                Type=optimizer,
                TableOptimizerConfiguration=wanted,
            )
        return change

    def _change(
        self,
        database: str,
        table: str,
        optimizer: Optimizer,
        wanted: TableOptimizerConfigurationTypeDef,
    ) -> Change:
        doing = f"reading the optimizer {optimizer} of Glue's table `{database}.{table}`"
        try:
            with aws_call(doing):
                answer = self._session.glue.get_table_optimizer(
                    CatalogId=self._catalog_id(),
                    DatabaseName=database,
                    TableName=table,
                    Type=optimizer,
                )
        except AwsError as error:
            # The same code for a table that is missing: creating the optimizer then says so.
            if error.code != "EntityNotFoundException":
                raise
            return "create"
        present = answer.get("TableOptimizer", {}).get("configuration", {})
        return "none" if _holds(present, wanted) else "update"

    def _catalog_id(self) -> str:
        """Return the account whose catalog it is: the role's own where none is named."""
        if self._catalog is None:
            with aws_call("reading the account"):
                self._catalog = self._session.sts.get_caller_identity()["Account"]
        return self._catalog


def configuration(
    optimizer: Optimizer, settings: OptimizerSettings
) -> TableOptimizerConfigurationTypeDef:
    """Return what one optimizer is told."""
    if optimizer == "compaction":
        return {
            "roleArn": settings.role_arn,
            "enabled": True,
            "compactionConfiguration": {"icebergConfiguration": {"strategy": "binpack"}},
        }
    if optimizer == "retention":
        return {
            "roleArn": settings.role_arn,
            "enabled": True,
            "retentionConfiguration": {
                "icebergConfiguration": {
                    "snapshotRetentionPeriodInDays": settings.snapshot_days,
                    "numberOfSnapshotsToRetain": settings.retain_last,
                    "cleanExpiredFiles": True,
                }
            },
        }
    return {
        "roleArn": settings.role_arn,
        "enabled": True,
        "orphanFileDeletionConfiguration": {
            "icebergConfiguration": {"orphanFileRetentionPeriodInDays": settings.orphan_days}
        },
    }


def _holds(present: object, wanted: object) -> bool:
    """Return whether all that is wanted is there, whatever else Glue has filled in."""
    if isinstance(wanted, dict):
        return isinstance(present, dict) and all(
            _holds(present.get(name), value) for name, value in wanted.items()
        )
    return present == wanted
