"""Checks of Iceberg catalogs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lakeload.policy.iam import PROBE_MARK_LENGTH
from lakeload.probes.causes import known_causes, likely_causes
from lakeload.probes.runner import (
    CheckSkipped,
    Deadline,
    Probe,
    ProbeFailed,
    Writing,
    failed,
    probes_of,
    succeeds,
    within,
)
from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.aws.vended_credentials import HandedKeys, s3_with
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec
from lakeload_jobs.contract.traits import CATALOGS, vends
from lakeload_jobs.core.layout import probe_path
from lakeload_jobs.formats.iceberg.catalogs.errors import (
    NOT_A_CATALOG,
    REDIRECTED,
    CatalogError,
    Said,
    missing_privilege,
)
from lakeload_jobs.formats.iceberg.catalogs.files import bucket_and_key
from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts
from lakeload_jobs.formats.iceberg.catalogs.nessie import NessieApi
from lakeload_jobs.formats.iceberg.catalogs.reading import refuses_overtaken
from lakeload_jobs.formats.iceberg.catalogs.rest import RestConnection
from lakeload_jobs.formats.iceberg.catalogs.rest_tables import RestTables
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.catalogs.vended_files import vended_keys
from lakeload_jobs.formats.iceberg.rules.catalogs import NOT_COMPARED, took_false_commit
from lakeload_jobs.storage.objects import encryption_headers

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog


_CLIENT_REFUSED = ("unauthorized_client", "invalid_client", "invalid_grant")


def catalog_causes(error: Exception, catalog: CatalogSpec) -> tuple[str, ...]:
    """Return the likely causes of what a probe of the catalog raised."""
    known = known_causes()
    own = known.catalog_types[catalog.type]
    if not isinstance(error, CatalogError):
        return likely_causes(error, denied=known.denied["vended" if vends(catalog) else "own"])
    for text in Said:
        if text.in_(error):
            return known.said[text.name]
    no_branch = f"the branch `{catalog.ref}` in `ref` does not exist"
    if error.code in _CLIENT_REFUSED:
        return (*known.client_refused, *own.client_refused)
    if error.code == "invalid_scope":
        return own.scope_refused
    if error.code in (NOT_A_CATALOG, REDIRECTED):
        return _other_server(own.other_path, error)
    if error.status == 401:
        return _not_accepted(catalog)
    if error.denied:
        return _denied(catalog, error, own.denied)
    if error.missing:
        return (*((no_branch,) if CATALOGS[catalog.type].branched else ()), *own.unknown_warehouse)
    if error.code == "NoSuchReferenceException":
        return (no_branch,)
    if error.status is not None and error.status >= 500:
        fails = "the catalog has an internal error: check its log, and try again later"
        return (*own.failing, fails)
    return known.catalog.get(error.code) or likely_causes(error)


def _other_server(path: str, error: CatalogError) -> tuple[str, ...]:
    if error.status == 404:
        return (path, "the host is another server: a console, or a proxy in front of the catalog")
    scheme = "`uri` begins with http, but the server uses https"
    return (scheme, path, "a login page or a proxy responds instead of the catalog")


def _not_accepted(catalog: CatalogSpec) -> tuple[str, ...]:
    if catalog.token:
        signed = "token"
    elif catalog.sigv4:
        signed = "sigv4"
    else:
        signed = "client" if catalog.credential or catalog.client_id else "nothing"
    return known_causes().not_accepted[signed]


def _denied(catalog: CatalogSpec, error: CatalogError, own: tuple[str, ...]) -> tuple[str, ...]:
    causes = list(own)
    privilege = missing_privilege(error)
    if privilege:
        named = f"no catalog role of this principal has {privilege} (or CATALOG_MANAGE_CONTENT)"
        causes.insert(0, named)
    if not causes:
        causes.append("the catalog does not allow this identity to do it")
        causes.append("the privilege is for another warehouse, catalog or namespace")
    if catalog.sigv4:
        causes.append("the signature is that of another service or region: see `sigv4`")
    if vends(catalog) and not privilege.startswith("NAMESPACE"):
        causes.append("vended credentials need privileges on the data of a table as well")
    return tuple(causes)


def _probe(probe: Probe, catalog: CatalogSpec, beside_the_point: str = "") -> Probe:
    # Only Open Catalog certainly calls its privileges so.
    named = CATALOGS[catalog.type].polaris and probe.action
    return replace(
        probe,
        action=named or "",
        explain=partial(catalog_causes, catalog=catalog),
        resource=f"catalog {catalog.warehouse}" if named else "",
        beside_the_point=beside_the_point,
    )


BODY = b"written by lakeload test-connection; safe to delete\n"


@dataclass
class ProbeStorage:
    """One object below the table's location, and what the catalog left of the table there."""

    destination: DestinationSpec
    session: AwsSession
    patience: HttpTimeouts
    mark: str
    place: str = ""
    """The table's location, once there is a table."""
    left: list[str] = field(default_factory=list)
    """What could not be removed."""
    _client: S3Client | None = None
    _written: str = ""

    def __post_init__(self) -> None:
        """Look up what every upload has to carry."""
        self._encryption = encryption_headers(self.destination.encryption)

    def write(self, table: ReadTable | None) -> str:
        """Write an object as a load would: with the keys vended for `table`, or our own.

        Raises `AwsError`, `ProbeFailed`.
        """
        if table is None:
            return self._write_as_ourselves()
        keys = vended_keys(table.config or {}, self.destination.region)
        if keys is None:
            raise failed("no-vended-credentials")
        self._client = self._vended(keys)
        self._put(self._client)
        return "with credentials that the catalog vended"

    def remove_all(self) -> None:
        """Remove the object, and files that the catalog left of the dropped table."""
        if self._client is None or not self.place:
            return
        bucket, prefix = bucket_and_key(self.place)
        if self.mark not in prefix:
            # Only what certainly is the test's own.
            return
        with aws_call(f"removing the test's files below `{self.place}/`"):
            answer = self._client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/")
            for entry in answer.get("Contents", []):
                self._client.delete_object(Bucket=bucket, Key=entry["Key"])
        self.left = [place for place in self.left if place != self._written]

    def _write_as_ourselves(self) -> str:
        bucket, prefix = bucket_and_key(self.place)
        if not prefix.startswith(probe_path(self.destination.prefix)):
            self._ask_for_deletion(bucket, prefix)
        self._client = self.session.s3
        self._put(self._client)
        own = "with the destination's own credentials"
        if bucket == self.destination.bucket:
            return own
        return f"{own}, in the bucket `{bucket}`, where the catalog puts its tables"

    def _ask_for_deletion(self, bucket: str, prefix: str) -> None:
        """Delete nothing: what could not be removed again is not written."""
        place = f"s3://{bucket}/{prefix}/"
        try:
            with aws_call(f"deleting below `{place}`"):
                absent = f"{prefix}/data/{self.mark}-absent"
                self.session.s3.delete_object(Bucket=bucket, Key=absent)
        except AwsError as error:
            if not error.denied:
                raise
            raise CheckSkipped(
                f"skipped: what is written below `{place}` could not be removed (s3:DeleteObject)"
            ) from error

    def _put(self, client: S3Client) -> None:
        bucket, prefix = bucket_and_key(self.place)
        key = f"{prefix}/data/{self.mark}-object"
        self._written = f"s3://{bucket}/{key}"
        self.left.append(self._written)
        with aws_call(f"writing `{self._written}`"):
            client.put_object(Bucket=bucket, Key=key, Body=BODY, **self._encryption)
        with aws_call(f"deleting `{self._written}`"):
            client.delete_object(Bucket=bucket, Key=key)
        self.left.remove(self._written)

    def _vended(self, keys: HandedKeys) -> S3Client:
        """A catalog that says nothing of its store leaves that to the destination."""
        endpoint = self.destination.endpoints.s3
        if keys.endpoint is None and endpoint:
            keys = replace(keys, endpoint=endpoint, path_style=True)
        patience = self.patience
        return s3_with(keys, connect_timeout=patience.connect, read_timeout=patience.read)


@dataclass
class ProbeNessie:
    """The probes of one test."""

    destination: DestinationSpec
    session: AwsSession
    patience: HttpTimeouts
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex[:PROBE_MARK_LENGTH])
    _head: str = ""
    _tried: bool = False
    _writing: Writing = field(default_factory=Writing)

    @property
    def branch(self) -> str:
        """The name of the test's branch."""
        return f"lakeload_probe_{self._mark}"

    @cached_property
    def api(self) -> NessieApi:
        """The way to Nessie."""
        return NessieApi(self.destination.iceberg.catalog, self.session, self.patience)

    def probes(self) -> list[Probe]:
        """Return the probes of Nessie's native interface: what plain HTTP can ask."""
        spec = self.destination.iceberg.catalog
        return [_probe(probe, spec) for probe in probes_of("nessie", self)]

    def reach(self) -> str:
        """Nessie answers."""
        return f"its default branch is `{self.api.reach()}`"

    def find(self) -> None:
        """The branch is there."""
        self._head = self.api.head(self.destination.iceberg.catalog.ref)

    def commit(self) -> str:
        """A commit goes in."""
        source = self.destination.iceberg.catalog.ref
        head = self._head or self.api.head(source)
        with self._writing:
            self._tried = True
            self.api.create_branch(self.branch, source, head)
            self.api.commit_namespace(self.branch, head, self.branch)
        return f"on the branch `{self.branch}`; commits to `{source}` itself were not tested"

    def drop(self) -> None:
        """The branch can be deleted."""
        try:
            self.api.delete_branch(self.branch, self.api.head(self.branch))
        except CatalogError as error:
            if not error.missing:
                raise
        self._tried = False

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Delete the branch; return what could not be removed."""
        with self._writing.ended(deadline):
            if not self._tried or succeeds(self.drop, deadline):
                return ()
        return (f"Nessie's branch `{self.branch}`",)


TABLE = "probe"
_NO_PURGE = (400, 403, 405, 406, 501)
"""How catalogs say that they drop tables, and leave the files to others."""


@dataclass
class ProbeCatalog:
    """The probes of one test. Namespace and table are its own, so tests may run side by side."""

    destination: DestinationSpec
    session: AwsSession
    patience: HttpTimeouts
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
    def tables(self) -> RestTables:
        """The tables, as loads read them and commit to them."""
        return self.connection.tables()

    @cached_property
    def catalog(self) -> IcebergCatalog:
        """The open catalog."""
        # pyiceberg takes half a second to import: what a load checks does without.
        from lakeload_jobs.formats.iceberg.catalogs.opening import open_rest

        return open_rest(self.connection)

    @cached_property
    def storage(self) -> ProbeStorage:
        """Where the table's data would lie."""
        return ProbeStorage(self.destination, self.session, self.patience, self._mark)

    def probes(self) -> list[Probe]:
        """Return the probes of a catalog that speaks Iceberg's REST protocol.

        Dropping is asked first, about nothing: a catalog that refuses it gets no namespace made.
        Many look for the thing before the privilege, so that the real drops come at the end too.
        """
        spec = self.destination.iceberg.catalog
        client = spec.credential or spec.client_id
        beside_the_point = {
            "catalog-region": "" if spec.catalog_region else "no `catalog_region` to compare",
            "catalog-token": "" if client else "no OAuth2 client is configured",
        }
        # Only a signature needs AWS to say who asks.
        signer = {"catalog-warehouse": ("credentials", "assume-role")} if spec.sigv4 else {}
        probes = (
            _probe(probe, spec, beside_the_point.get(probe.name, ""))
            for probe in probes_of("rest", self, "vended" if vends(spec) else "own")
        )
        return [replace(one, needs=(*one.needs, *signer.get(one.name, ()))) for one in probes]

    def reach(self) -> None:
        """A catalog answers."""
        self.connection.reach()

    def same_region(self) -> str:
        """Catalog and bucket lie in one region."""
        region = self.destination.iceberg.catalog.catalog_region
        if region != self.destination.region:
            raise failed("catalog-region", region=region, own=self.destination.region)
        return f"in {region}"

    def token(self) -> None:
        """The client gets a token."""
        self.connection.token()

    def open(self) -> None:
        """The identity is accepted and the warehouse is known."""
        self.tables.open()

    def list_namespaces(self) -> str:
        """Namespaces can be listed."""
        return f"{len(self.catalog.namespaces())} found"

    def may_drop(self) -> None:
        """Dropping is not refused: asked before there is something to drop."""
        try:
            self.catalog.drop_namespace(self.namespace)
        except CatalogError as error:
            if not error.missing:
                raise

    def create_namespace(self) -> None:
        """A namespace can be made."""
        with self._making():
            self._namespace_tried = True
            location = f"{self._place}{self.namespace}" if self._place else None
            self.catalog.create_namespace(self.namespace, location)

    def create_table(self) -> str:
        """A table can be made."""
        with self._making():
            self._table_tried = True
            location = f"{self._place}{self.namespace}/{TABLE}" if self._place else None
            version = str(self.destination.iceberg.format_version)
            place = self.catalog.create_table(
                self.namespace,
                TABLE,
                columns={"id": "long"},
                location=location,
                properties={"format-version": version},
            )
            self.storage.place = place
        return f"at {place}"

    def load_table(self) -> None:
        """A table can be read."""
        self._load()

    def commit(self) -> None:
        """A commit goes in, and is there afterwards."""
        with self._writing:
            self.catalog.set_property(self.namespace, TABLE, "lakeload.probe", self._mark)
        if self._load().properties.get("lakeload.probe") != self._mark:
            raise failed("commit")

    def compare(self) -> str:
        """A commit that was overtaken is refused."""
        branch = self.destination.iceberg.branch
        with self._writing:
            if refuses_overtaken(self.tables, self.namespace, TABLE, branch):
                return ""
        message, hint = took_false_commit(f"{self.namespace}.{TABLE}", branch)
        raise ProbeFailed(
            f"the catalog `{self.catalog.place}`: {message}", code=NOT_COMPARED, hint=hint
        )

    def write_data(self) -> str:
        """Data can be written where the table lies, with the keys that a load would use."""
        with self._writing:
            return self.storage.write(self._load() if self.connection.vended else None)

    def drop_namespace(self) -> None:
        """The namespace can be dropped."""
        self.catalog.drop_namespace(self.namespace)
        self._namespace_tried = False

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Remove table and namespace; return what could not be removed."""
        left = []
        with self._writing.ended(deadline):
            unclear = ", which may have been created" if self._unanswered else ""
            if self._table_tried and not self._gone(self.drop_table, deadline):
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

    def drop_table(self) -> None:
        """Drop it with its files where the catalog can, and otherwise remove them by ourselves."""
        try:
            self.catalog.drop_table(self.namespace, TABLE, purge=True)
        except CatalogError as error:
            if error.status not in _NO_PURGE:
                raise
            self.catalog.drop_table(self.namespace, TABLE)
        self._table_tried = False

    def _gone(self, drop: Callable[[], str | None], deadline: Deadline) -> bool:
        try:
            within(drop, deadline)
        except CatalogError as error:
            return error.missing and not self._unanswered
        except LakeloadError:
            return False
        return True

    def _load(self) -> ReadTable:
        return self.catalog.load_table(self.namespace, TABLE)

    @property
    def _place(self) -> str:
        """Where the test's files lie, where a location may be given; else ''."""
        if not CATALOGS[self.destination.iceberg.catalog.type].located:
            return ""
        return f"s3://{self.destination.bucket}/{probe_path(self.destination.prefix)}"
