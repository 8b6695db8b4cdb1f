"""One step of maintenance: its table, its conflicts, its permissions."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import LISTED, MaintainSpec, StepResult
from lakeload_jobs.formats.base import LostRace
from lakeload_jobs.formats.iceberg.load.tables import Java, caused_by, jvm, read_facts, spark_name
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts

logger = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 3
"""Each has Iceberg's own retries of the commit in it; what is left takes the work anew."""

_RACES = ("CommitFailedException", "ValidationException")


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


_GC_ENABLED = "gc.enabled"
_NESSIE_COMMIT = "nessie.commit.id"
"""Set by Nessie's client on every table that it reads."""


@dataclass(frozen=True)
class Work:
    """One table, as Java has it, and what is to be done with it."""

    spark: SparkSession
    table: Java
    """`org.apache.iceberg.Table`."""
    schema: str
    name: str
    branch: str
    spec: MaintainSpec

    @property
    def java(self) -> Java:
        """The packages of the JVM."""
        return jvm(self.spark)

    @property
    def actions(self) -> Java:
        """Iceberg's actions, bound to the session: a new object each time."""
        actions = self.java.org.apache.iceberg.spark.actions.SparkActions
        return actions.get(self.spark._jsparkSession)

    @property
    def target(self) -> str:
        """`schema.table`, for messages."""
        return f"{self.schema}.{self.name}"

    @property
    def identifier(self) -> str:
        """The table in Spark SQL."""
        return spark_name(self.schema, self.name)

    def facts(self) -> TableFacts:
        """Read the table's metadata anew."""
        self.table.refresh()
        return read_facts(self.spark, self.table)

    def head(self) -> Java:
        """Return the newest snapshot of the branch, None when it has none."""
        return self.table.snapshot(self.branch)

    def now(self) -> datetime:
        """Return the present instant, UTC."""
        return datetime.now(UTC)


Stepper = Callable[[Work], StepResult]


def nothing(step: Step, *notes: str) -> StepResult:
    """Return the result of a step that found nothing to do."""
    return StepResult(step, "NOTHING_TO_DO", notes=notes)


def not_possible(step: Step, why: str) -> StepResult:
    """Return the result of a step that this table does not allow."""
    return StepResult(step, "NOT_POSSIBLE", notes=(why,))


def shown(items: list[str]) -> tuple[str, ...]:
    """Return the names that a result holds."""
    return tuple(items[:LISTED])


def metadata_table(work: Work, table: Java, kind: str) -> DataFrame:
    """Return the rows of a metadata table, such as `ALL_FILES`, of `table` as it is in memory."""
    iceberg = work.java.org.apache.iceberg
    of = iceberg.MetadataTableType.valueOf(kind)
    rows = iceberg.spark.SparkTableUtil.loadMetadataTable(work.spark._jsparkSession, table, of)
    return DataFrame(rows, work.spark)


def keeps_files(properties: Mapping[str, str]) -> str | None:
    """Return why no file of the table may be removed, None when it may.

    Somebody else may own them: https://iceberg.apache.org/docs/latest/configuration/. Nessie's
    client makes every table so: https://projectnessie.org/nessie-latest/gc/
    """
    if properties.get(_GC_ENABLED, "true").lower() != "false":
        return None
    if _NESSIE_COMMIT in properties:
        return (
            f"Nessie keeps files for its branches and tags (`{_GC_ENABLED}=false`): its own "
            "`nessie-gc` removes those that none of them needs"
        )
    return f"the table has `{_GC_ENABLED}=false`: its files belong to other tables as well"


def check_deleting(work: Work) -> None:
    """Raise `LoadFailed`, naming action and key, where an object of the table may not be deleted.

    The object does not exist: S3 looks at permissions first, and deleting nothing is no error. Its
    name is that of a manifest: a bucket for tables alone denies all but Iceberg's.
    """
    location = str(work.table.location()).rstrip("/")
    key = f"{location}/metadata/{uuid.uuid4()}-m0.avro"
    try:
        work.table.io().deleteFile(key)
    except Py4JJavaError as error:
        if caused_by(error, "AccessDeniedException"):
            raise denied(work.target, key, location) from error
        raise


def denied(target: str, key: str, location: str) -> LoadFailed:
    """Return the error of an identity that may not delete."""
    bucket, _, path = location.partition("://")[2].partition("/")
    return LoadFailed(
        f"removing files of `{target}`: access denied to `{key}` (`s3:DeleteObject`)",
        hint=f"allow `s3:DeleteObject` on `arn:aws:s3:::{bucket}/{path}/*`: `lakeload policy` with "
        "`--with maintain` writes the policy",
    )
