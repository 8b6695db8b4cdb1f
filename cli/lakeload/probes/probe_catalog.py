"""What the probes of an Iceberg catalog do: a load's calls, in a namespace of the test's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property

from lakeload.policy.iam.glue import PROBE_MARK_LENGTH
from lakeload.probes.model import ProbeFailed
from lakeload.probes.probe_storage import ProbeStorage
from lakeload.probes.runner import Deadline, within
from lakeload.probes.writing import Writing
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import CATALOGS
from lakeload_jobs.core.layout import probe_path
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog, OpenTable
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.http import Patience
from lakeload_jobs.formats.iceberg.catalogs.rest import RestConnection
from lakeload_jobs.formats.iceberg.rules.catalogs import NOT_COMPARED, took_false_commit

TABLE = "probe"
_NO_PURGE = (400, 403, 405, 406, 501)
"""How catalogs say that they drop tables, and leave the files to others."""


@dataclass
class ProbeCatalog:
    """The probes of one test. Namespace and table are its own, so tests may run side by side."""

    destination: DestinationSpec
    session: AwsSession
    patience: Patience
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex[:PROBE_MARK_LENGTH])
    _namespace_tried: bool = False
    _table_tried: bool = False
    _unanswered: bool = False
    """What was asked for last may still come."""
    _writing: Writing = field(default_factory=Writing)

    @property
    def namespace(self) -> str:
        """The name of the test's namespace."""
        return f"lakeload_probe_{self._mark}"

    @cached_property
    def connection(self) -> RestConnection:
        """The way to the catalog."""
        return RestConnection(self.destination, self.session, self.patience)

    @cached_property
    def catalog(self) -> IcebergCatalog:
        """The open catalog."""
        return self.connection.open()

    @cached_property
    def storage(self) -> ProbeStorage:
        """Where the table's data would lie."""
        return ProbeStorage(self.destination, self.session, self.patience, self._mark)

    def reach(self) -> str:
        """A catalog answers."""
        self.connection.reach()
        return ""

    def token(self) -> str:
        """The client gets a token."""
        self.connection.token()
        return ""

    def open(self) -> str:
        """The identity is accepted and the warehouse is known."""
        _ = self.catalog
        return ""

    def same_region(self) -> str:
        """Catalog and bucket lie in one region (F20)."""
        region = self.destination.iceberg.catalog.catalog_region
        if region != self.destination.region:
            raise ProbeFailed(
                f"the catalog is in `{region}` and the bucket in `{self.destination.region}`: the "
                "bucket is in a different region, and Open Catalog cannot use it",
                code="RegionMismatch",
                hint="use a bucket of the catalog's region, or Glue as the catalog",
            )
        return f"in {region}"

    def list_namespaces(self) -> str:
        """Namespaces can be listed."""
        return f"{len(self.catalog.namespaces())} found"

    def may_drop(self) -> str:
        """Dropping is not refused: asked before there is something to drop."""
        try:
            self.catalog.drop_namespace(self.namespace)
        except CatalogError as error:
            if not error.missing:
                raise
        return ""

    def create_namespace(self) -> str:
        """A namespace can be made."""
        with self._making():
            self._namespace_tried = True
            location = f"{self._place}{self.namespace}" if self._place else None
            self.catalog.create_namespace(self.namespace, location)
        return ""

    def create_table(self) -> str:
        """A table can be made."""
        with self._making():
            self._table_tried = True
            location = f"{self._place}{self.namespace}/{TABLE}" if self._place else None
            version = str(self.destination.iceberg.format_version)
            table = self.catalog.create_table(
                self.namespace,
                TABLE,
                columns={"id": "long"},
                location=location,
                properties={"format-version": version},
            )
            self.storage.place = table.location
        return f"at {table.location}"

    def load_table(self) -> str:
        """A table can be read."""
        self._load()
        return ""

    def commit(self) -> str:
        """A commit goes in, and is there afterwards."""
        with self._writing:
            self.catalog.set_property(self.namespace, TABLE, "lakeload.probe", self._mark)
        if self._load().properties.get("lakeload.probe") != self._mark:
            raise ProbeFailed(
                "a commit was accepted, and the table does not show it",
                code="ContentDiffers",
                hint="something between here and the catalog keeps old answers: look for a proxy",
            )
        return ""

    def compare(self) -> str:
        """A commit that was overtaken is refused."""
        branch = self.destination.iceberg.branch
        with self._writing:
            if self.catalog.refuses_overtaken(self.namespace, TABLE, branch):
                return ""
        message, hint = took_false_commit(f"{self.namespace}.{TABLE}", branch)
        raise ProbeFailed(
            f"the catalog `{self.catalog.place}`: {message}", code=NOT_COMPARED, hint=hint
        )

    def write_data(self) -> str:
        """Data can be written where the table lies, with the keys that a load would use."""
        with self._writing:
            return self.storage.write(self._load() if self.connection.vended else None)

    def drop_table(self) -> str:
        """The table can be dropped."""
        return self._drop_table()

    def drop_namespace(self) -> str:
        """The namespace can be dropped."""
        self.catalog.drop_namespace(self.namespace)
        self._namespace_tried = False
        return ""

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Remove table and namespace; return what could not be removed."""
        left = []
        with self._writing.ended(deadline):
            unclear = ", whose making got no clear answer" if self._unanswered else ""
            if self._table_tried and not self._gone(self._drop_table, deadline):
                name = f"{self.namespace}.{TABLE}"
                left.append(f"the table `{name}` of the Iceberg catalog{unclear}")
            if self._namespace_tried and not self._gone(self.drop_namespace, deadline):
                left.append(f"the namespace `{self.namespace}` of the Iceberg catalog{unclear}")
            with suppress(LakeloadError):
                within(self.storage.remove_all, deadline)
        return (*left, *self.storage.left)

    @contextmanager
    def _making(self) -> Iterator[None]:
        with self._writing:
            self._unanswered = True
            try:
                yield
            except CatalogError as error:
                self._unanswered = error.may_have_acted
                raise
            self._unanswered = False

    def _drop_table(self) -> str:
        """Drop it with its files where the catalog can, and otherwise remove them by ourselves."""
        try:
            self.catalog.drop_table(self.namespace, TABLE, purge=True)
        except CatalogError as error:
            if error.status not in _NO_PURGE:
                raise
            self.catalog.drop_table(self.namespace, TABLE)
        self._table_tried = False
        return ""

    def _gone(self, drop: Callable[[], str], deadline: Deadline) -> bool:
        try:
            within(drop, deadline)
        except CatalogError as error:
            return error.missing and not self._unanswered
        except LakeloadError:
            return False
        return True

    def _load(self) -> OpenTable:
        return self.catalog.load_table(self.namespace, TABLE)

    @property
    def _place(self) -> str:
        """Where the test's files lie, where a location may be given; else ''."""
        if not CATALOGS[self.destination.iceberg.catalog.type].located:
            return ""
        return f"s3://{self.destination.bucket}/{probe_path(self.destination.prefix)}"
