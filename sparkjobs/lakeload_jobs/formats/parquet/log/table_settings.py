"""What all loads of one table must agree on, because its readers could not cope otherwise
(DESIGN section 7, "Collisions")."""

from __future__ import annotations

from dataclasses import dataclass

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec, PartitionStrategy
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.glue_target import glue_target
from lakeload_jobs.formats.parquet.log.history import History
from lakeload_jobs.formats.parquet.log.records import GlueTarget, LoadRecord

_ANEW = (
    "or keep this table as it is and begin a new one: give the pipeline another `name` and another "
    "`namespace`; or restore the setting, remove the table with `lakeload reset`, and load it anew"
)


@dataclass(frozen=True)
class TableSettings:
    """How one load lays out its table and lists it in Glue."""

    glue: GlueTarget | None
    partition_strategy: PartitionStrategy


@dataclass(frozen=True)
class _Before:
    """The settings of the table's newest load, and whose it was."""

    settings: TableSettings
    pipeline: str
    number: int | None = None

    def __str__(self) -> str:
        record = "" if self.number is None else f", record {self.number}"
        return f"pipeline `{self.pipeline}`{record}"


def table_settings(destination: DestinationSpec, location: TableLocation) -> TableSettings:
    """Return the settings of the destination for one of its tables."""
    strategy = destination.parquet.partition_strategy
    return TableSettings(glue_target(destination, location), strategy)


def check_settings(history: History, settings: TableSettings, target: str) -> None:
    """Raise `InvalidInput` when the table was last loaded under settings that exclude these.

    Whichever pipeline it was: Glue has one table for all of them.
    """
    loaded = [(known.latest, name) for name, known in history.pipelines.items() if known.latest]
    if not loaded:
        return
    number, name = max(loaded)
    known = history.pipelines[name]
    strategy = known.partition_strategy or settings.partition_strategy
    _compare(_Before(TableSettings(known.glue, strategy), name, number), settings, target)


def check_settings_of(other: LoadRecord, settings: TableSettings, target: str) -> None:
    """The same against a record that came in while we were loading."""
    before = TableSettings(other.glue, other.partition_strategy)
    _compare(_Before(before, other.pipeline), settings, target)


def _compare(before: _Before, now: TableSettings, target: str) -> None:
    was = before.settings
    if was.glue is None and now.glue is None:
        return
    if now.glue is None:
        raise InvalidInput(
            f"`{target}` is loaded with AWS Glue ({before}), and `update_glue_catalog` is false "
            "now: Glue would not show what is loaded from now on",
            hint=f"restore `update_glue_catalog: true`; {_ANEW}",
        )
    if was.glue is None:
        raise InvalidInput(
            f"`{target}` is loaded without AWS Glue ({before}), and `update_glue_catalog` is true "
            "now: Glue would not show what the table has already",
            hint=f"restore `update_glue_catalog: false`; {_ANEW}",
        )
    if was.partition_strategy != now.partition_strategy:
        raise InvalidInput(
            f"`{target}` has partitions by {was.partition_strategy} in AWS Glue ({before}), and "
            f"`partition_strategy` is {now.partition_strategy} now: folders of both would lie "
            "within each other, and Athena would read rows twice",
            hint=f"restore `partition_strategy: {was.partition_strategy}`; {_ANEW}",
        )
    if was.glue.projection != now.glue.projection:
        raise InvalidInput(
            f"the partitions of `{target}` are {_kind(was.glue)} in AWS Glue ({before}), and would "
            f"be {_kind(now.glue)} now: queries would miss those of one kind",
            hint=f"restore `partition_projection: {str(was.glue.projection).lower()}`; {_ANEW}",
        )


def _kind(glue: GlueTarget) -> str:
    return "computed by Athena" if glue.projection else "registered"
