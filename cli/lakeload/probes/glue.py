"""Checks of AWS Glue, permission by permission."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, cast

from lakeload.policy.iam import PROBE_MARK_LENGTH, database_prefix
from lakeload.policy.model import place
from lakeload.probes.causes import grant_hint, likely_causes
from lakeload.probes.runner import (
    Deadline,
    Level,
    Probe,
    ProbeFailed,
    Writing,
    probes_of,
    succeeds,
    within,
)
from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.aws.glue_calls import GlueCalls, PartitionProblem
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import format_of
from lakeload_jobs.core.layout import probe_path
from lakeload_jobs.core.names import PARTITION_KEY, schema_name
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.parquet.glue.tables import (
    WantedTable,
    partition_input,
    table_input,
    united,
)

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import DatabaseInputTypeDef, PartitionInputTypeDef

    from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog


Scope = Literal["catalog", "database", "table"]
"""What a call is about."""


def resources(operation: str, scope: Scope, destination: DestinationSpec) -> str:
    """Return every ARN that AWS checks the call against, as a policy for the prefix has them.

    https://docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html: a call needs all
    that is above its resource, a deletion also all that is below.
    """
    arn, named = _arn(destination), f"{database_prefix(destination)}*"
    below: dict[Scope, list[str]] = {
        "catalog": [],
        "database": [f"{arn}:database/{named}"],
        "table": [f"{arn}:table/{named}/*", f"{arn}:database/{named}"],
    }
    found = [*below[scope], f"{arn}:catalog"]
    if operation == "DeleteDatabase":
        found[:0] = [f"{arn}:table/{named}/*", f"{arn}:userDefinedFunction/{named}/*"]
    return ", ".join(found)


def denied_causes(
    name: str, operation: str, scope: Scope, destination: DestinationSpec, database: str
) -> tuple[str, ...]:
    """Return why Glue denies the probe `name`, the likeliest cause first.

    `database` is the name of the test's own.
    """
    causes = [
        f"no policy of the role or user allows glue:{operation} on all of the resources above: "
        "Glue checks each of them"
    ]
    at = place(destination, destination.iceberg.catalog.glue_id)
    account = "another account" if at.account == "*" else f"another account than {at.account}"
    causes.append(f"the policy is for another region than {at.region}, or for {account}")
    if operation == "DeleteDatabase":
        causes.append(
            "the policy does not list `userDefinedFunction`, which this action also needs"
        )
    if scope != "catalog" and database_prefix(destination):
        causes.append(
            f"the policy is for databases of another prefix than the test's own `{database}`"
        )
    elif scope != "catalog":
        causes.append(
            "the policy is for certain databases and, without `glue_database_prefix` the test's "
            f"own `{database}` is not one of them: set the prefix, or use --skip {name}"
        )
    causes.append(
        "Lake Formation governs the database or the catalog, and the role has no grant "
        "there: its error code is that of IAM"
    )
    causes.append("a permissions boundary, an SCP or the catalog's own policy denies it")
    return tuple(causes)


def _arn(destination: DestinationSpec) -> str:
    """Return `arn:aws:glue:region:account`; without a role any account, as IAM takes it.

    `glue_id` is whose catalog it is, whoever asks.
    """
    return place(destination, destination.iceberg.catalog.glue_id).arn("glue", "")[:-1]


_OF_PARTITIONS = ("glue-get-partition", "glue-add-partitions", "glue-update-partitions")


def _probe(probe: Probe, destination: DestinationSpec, database: str) -> Probe:
    operation, scope = probe.action.partition(":")[2], cast("Scope", probe.about)
    denied = denied_causes(probe.name, operation, scope, destination, database)
    return replace(
        probe,
        run=partial(_run, probe),
        explain=partial(likely_causes, denied=denied),
        resource=resources(operation, scope, destination),
        beside_the_point=_without_partitions(destination) if probe.name in _OF_PARTITIONS else "",
    )


def _run(probe: Probe) -> str | None:
    """Ask. What a denial costs is more telling here than what a load would say of it."""
    try:
        return probe.run()
    except AwsError as error:
        if error.denied or (probe.level is Level.USEFUL and error.hint is None):
            allow = f"allow `{probe.action}` on all of these resources"
            if error.explicit_deny:
                allow = error.hint or allow
            error.hint = grant_hint(error) or probe.lost or allow
        raise


def _without_partitions(destination: DestinationSpec) -> str:
    if destination.parquet.partition_strategy == "NONE":
        return "`partition_strategy: NONE` makes no partitions"
    if destination.parquet.partition_projection:
        return "`partition_projection: true` registers no partitions"
    return ""


TABLE = "probe"
PARTITION = "probe"
_MISSING = "EntityNotFoundException"
# Both mean that a first try of the client acted and its answer was lost: nobody else writes here.
_TWICE = ("AlreadyExistsException", "ConcurrentModificationException")


@dataclass
class ProbeTables:
    """The Glue probes of one test. Its database is its own, so tests may run side by side.

    AWS looks at permissions before it looks for what a call is about. So whatever cannot be made,
    or could not be removed again, is asked for where it does not exist: "not found" then says that
    the call is allowed.
    """

    destination: DestinationSpec
    session: AwsSession
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex[:PROBE_MARK_LENGTH])
    _tried: bool = False
    """The database may be there."""
    _made: set[str] = field(default_factory=set)
    """What certainly is there: database, table, partition."""
    _unanswered: bool = False
    """The database may still come."""
    _writing: Writing = field(default_factory=Writing)

    @cached_property
    def database(self) -> str:
        """The name of the database, below `glue_database_prefix`."""
        own = f"lakeload_probe_{self._mark}"
        return schema_name(
            glue_prefix=database_prefix(self.destination),
            destination_prefix=own,
            source_schema=None,
            lower=True,
        )

    def probes(self) -> list[Probe]:
        """Return the probes of Glue, for tables of the destination's format; those that write do so
        in a database of the test's own.

        Deleting is asked first, about nothing. A role that may not delete gets no database made,
        and the other questions are then asked about nothing as well.
        """
        # Iceberg keeps its partitions in metadata of its own.
        kind = "catalog" if format_of(self.destination).has_catalog else "files"
        found = probes_of("glue", self, kind)
        return [_probe(probe, self.destination, self.database) for probe in found]

    def reach(self) -> str:
        """Glue answers; a refusal is an answer too."""
        try:
            self._calls.get_database(self.database)
        except AwsError as error:
            if not error.denied:
                raise
        return f"in {self.destination.region}"

    def get_catalog(self) -> None:
        """The account's catalog can be read."""
        role = self.destination.credentials.role_arn or ""
        with aws_call("reading the properties of Glue's catalog"):
            account = self.destination.iceberg.catalog.glue_id or ""
            account = account or (role.split(":")[4] if role else "")
            account = account or self.session.sts.get_caller_identity()["Account"]
            self.session.glue.get_catalog(CatalogId=account)

    def get_database(self) -> None:
        """A database can be looked up."""
        self._calls.get_database(self.database)

    def get_table(self) -> None:
        """A table can be looked up."""
        self._calls.get_table(self.database, TABLE)

    def get_partition(self) -> None:
        """A partition can be looked up."""
        self._calls.get_partition(self.database, TABLE, PARTITION)

    def delete_no_table(self) -> None:
        """The table may be deleted: asked before there is one, so that none stays behind."""
        self._calls.delete_table(self.database, TABLE)

    def delete_no_database(self) -> None:
        """The database may be deleted: asked before there is one, so that none stays behind."""
        self._delete_database()

    def create_database(self) -> str:
        """A database can be made."""
        with self._writing:
            self._tried = self._unanswered = True
            place = self._wanted.database_location
            database: DatabaseInputTypeDef = {"Name": self.database, "LocationUri": place}
            try:
                detail = self._ask(partial(self._calls.create_database, database), makes="database")
            except AwsError as error:
                self._unanswered = error.may_have_acted
                raise
            self._unanswered = False
            return detail

    def create_table(self) -> str:
        """A table can be made."""
        with self._writing:
            table = table_input(self._wanted)
            create = partial(self._calls.create_table, self.database, table)
            return self._ask(create, inside="database", makes="table")

    def update_table(self) -> str:
        """A column can be added to exactly the version that was read."""
        with self._writing:
            there = self._calls.get_table(self.database, TABLE)
            wider = replace(self._wanted, columns=(*self._wanted.columns, ("added", "string")))
            changed = united(there, wider) if there is not None else None
            version = there.get("VersionId") if there is not None else None
            table = changed or table_input(wider)
            return self._ask(
                partial(self._calls.update_table, self.database, table, version), inside="table"
            )

    def add_partitions(self) -> str:
        """Partitions can be registered in one call."""
        with self._writing:
            return self._ask(self._create_partition, inside="table", makes="partition")

    def update_partition(self) -> str:
        """A partition's columns can be replaced."""
        with self._writing:
            return self._ask(self._replace_partition, inside="partition")

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Remove the database and what is in it; return what could not be removed, and how to."""
        with self._writing.ended(deadline):
            if not self._tried:
                return ()
            # Glue hides a database's tables with it; one by one they are gone at once.
            succeeds(partial(self._calls.delete_table, self.database, TABLE), deadline)
            if self._remove_database(deadline):
                return ()
        unclear = ", which may have been created" if self._unanswered else ""
        place = f"--region {self.destination.region}"
        command = f"aws glue delete-database --name {self.database} {place}"
        return (f"Glue's database `{self.database}`{unclear} (`{command}`)",)

    def _remove_database(self, deadline: Deadline) -> bool:
        """Return whether the database is gone for good."""
        try:
            found = within(self._delete_database, deadline)
        except LakeloadError:
            return False
        return found or not self._unanswered

    @cached_property
    def _calls(self) -> GlueCalls:
        destination = self.destination
        return GlueCalls(self.session, destination.region, destination.credentials.role_arn)

    @cached_property
    def _wanted(self) -> WantedTable:
        destination = self.destination
        place = f"{probe_path(destination.prefix)}{self.database}/{TABLE}/"
        return WantedTable(
            database=self.database,
            name=TABLE,
            location=f"s3://{destination.bucket}/{place}",
            columns=(("id", "bigint"),),
            partition_key=PARTITION_KEY,
            strategy="SYNC_ID",
            created_by="test-connection",
        )

    def _ask(self, call: Callable[[], None], *, inside: str = "", makes: str = "") -> str:
        """Call; without what it is about (`inside`), "not found" is the answer hoped for."""
        absent = bool(inside) and inside not in self._made
        fine: Collection[str] = (*_TWICE, _MISSING) if absent else _TWICE
        try:
            call()
        except AwsError as error:
            if error.code not in fine:
                raise
        if absent:
            return f"allowed, but not done: no {inside}"
        if makes:
            self._made.add(makes)
        return ""

    def _create_partition(self) -> None:
        problems = self._calls.create_partitions(self.database, TABLE, [self._partition])
        self._check_partition(problems, "register", fine=_TWICE)

    def _replace_partition(self) -> None:
        """Replace the partition by itself. Without one, "not found" is the permission."""
        calls = self._calls
        problems = calls.update_partition(self.database, TABLE, PARTITION, self._partition)
        self._check_partition(
            problems, "change", fine=() if "partition" in self._made else (_MISSING,)
        )

    @property
    def _partition(self) -> PartitionInputTypeDef:
        place = self._wanted.partition_location(PARTITION)
        return partition_input(self._wanted.columns, PARTITION, place)

    def _check_partition(
        self, problems: list[PartitionProblem], doing: str, *, fine: Collection[str]
    ) -> None:
        """Raises `ProbeFailed` for the first problem whose code is not one of `fine`."""
        for problem in problems:
            if problem.code in fine:
                continue
            raise ProbeFailed(
                f"Glue did not {doing} a partition of its table `{self._wanted.full_name}`: "
                f"{problem.code}: {problem.message}",
                code=problem.code,
                hint="search the AWS documentation for this code",
            )

    def _delete_database(self) -> bool:
        """Return whether there was one."""
        try:
            with aws_call(f"deleting Glue's database `{self.database}`"):
                self.session.glue.delete_database(Name=self.database)
        except AwsError as error:
            if error.code != _MISSING:
                raise
            return False
        return True


_AS_GLUE_SAYS = {404: "EntityNotFoundException", 409: "AlreadyExistsException"}


class _ProbeFiles(LakeFiles):
    """Metadata files of a probe."""

    def __init__(self, session: AwsSession, destination: DestinationSpec) -> None:
        super().__init__(session, destination)
        self.left: set[str] = set()
        """Every location that was written, or may have been, and is not deleted."""

    def write(self, location: str, data: bytes) -> None:
        """Write a whole file, and remember where."""
        self.left.add(location)
        super().write(location, data)

    def delete(self, location: str) -> None:
        """Delete a file; a missing one is no error."""
        super().delete(location)
        self.left.discard(location)


class ProbeIcebergTables(ProbeTables):
    """The Glue probes of one test of an Iceberg destination."""

    def create_table(self) -> str:
        """A table can be made, and its first metadata file written."""
        with self._writing:
            return self._ask(self._create, inside="database", makes="table")

    def update_table(self) -> str:
        """A commit goes in: metadata is read, written anew, and Glue pointed to it."""
        if "table" not in self._made:
            # A commit to no table would end at reading it.
            return super().update_table()
        with self._writing:
            return self._ask(self._commit, inside="table")

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Remove the database, and the metadata files."""
        left = list(super().remove_all(deadline))
        for location in sorted(self._files.left):
            if not succeeds(partial(self._files.delete, location), deadline):
                left.append(location)
        return tuple(left)

    @cached_property
    def _files(self) -> _ProbeFiles:
        return _ProbeFiles(self.session, self.destination)

    @cached_property
    def _catalog(self) -> IcebergCatalog:
        # pyiceberg takes half a second to import: for Iceberg tables only.
        from lakeload_jobs.formats.iceberg.catalogs.opening import open_glue

        return open_glue(self.destination, self.session, self._files)

    def _create(self) -> None:
        place = f"{probe_path(self.destination.prefix)}{self.database}/{TABLE}"
        with _as_glue():
            self._catalog.create_table(
                self.database,
                TABLE,
                columns={"id": "long"},
                location=f"s3://{self.destination.bucket}/{place}",
                properties={"format-version": str(self.destination.iceberg.format_version)},
            )

    def _commit(self) -> None:
        with _as_glue():
            self._catalog.set_property(self.database, TABLE, "lakeload.probe", "committed")


@contextmanager
def _as_glue() -> Iterator[None]:
    """Say what Glue said: pyiceberg has names of its own for what is missing or there already."""
    try:
        yield
    except CatalogError as error:
        if error.status not in _AS_GLUE_SAYS:
            raise
        raise AwsError(
            error.message,
            code=_AS_GLUE_SAYS[error.status],
            status=400,
            hint=error.hint,
            retryable=error.retryable,
        ) from error
