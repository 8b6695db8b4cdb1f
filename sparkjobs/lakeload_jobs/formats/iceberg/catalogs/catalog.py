"""Tables of a catalog, read before Spark starts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import requests
from pyiceberg import exceptions as iceberg_errors
from pyiceberg.catalog import Catalog

from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import NO_STATE, NOT_ICEBERG, CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.http import error_from, http_call, not_a_catalog, origin
from lakeload_jobs.formats.iceberg.catalogs.reading import refuses_overtaken, unsupported
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore, now_ms
from lakeload_jobs.formats.iceberg.catalogs.vended_files import files_for
from lakeload_jobs.formats.iceberg.commits.errors import (
    CommitRejected,
    CommitUnknown,
    Unsupported,
)
from lakeload_jobs.formats.iceberg.commits.manifests import (
    MetadataFiles,
    read_list,
    read_paths,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    NewTable,
    add_snapshot,
    assert_ref,
    ref,
    remove_properties,
    remove_ref,
    set_branch,
    set_properties,
    snapshot_of,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import new_snapshot_id, without_partition
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts, table_facts

_NAMES: dict[type[Exception], tuple[str, int | None, str]] = {
    iceberg_errors.NoSuchTableError: ("NoSuchTableException", 404, "the table does not exist"),
    iceberg_errors.NoSuchNamespaceError: (
        "NoSuchNamespaceException",
        404,
        "the namespace does not exist",
    ),
    iceberg_errors.TableAlreadyExistsError: (
        "AlreadyExistsException",
        409,
        "the table exists already",
    ),
    iceberg_errors.NamespaceAlreadyExistsError: (
        "AlreadyExistsException",
        409,
        "the namespace exists already",
    ),
    iceberg_errors.NamespaceNotEmptyError: (
        "NamespaceNotEmptyException",
        409,
        "the namespace is not empty",
    ),
}
# What pyiceberg lets through of Glue's own: it looks at a database before it drops it.
_GLUE = {
    "EntityNotFoundException": ("NoSuchNamespaceException", 404),
    "AlreadyExistsException": ("AlreadyExistsException", 409),
}


@contextmanager
def catalog_call(doing: str, uri: str, hidden: Sequence[Secret] = ()) -> Iterator[None]:
    """Translate what pyiceberg raises in the block; the message begins with `doing`.

    `hidden` are removed from what the catalog said. Raises `CatalogError`, `AwsError`.
    """
    try:
        with aws_call(doing), http_call(doing, uri):
            yield
    except AwsError as error:
        if error.code not in _GLUE:
            raise
        code, status = _GLUE[error.code]
        raise CatalogError(error.message, code=code, status=status, hint=error.hint) from error
    except (iceberg_errors.NoSuchIcebergTableError, iceberg_errors.NoSuchPropertyException):
        raise CatalogError(
            f"{doing}: this table of Glue is not an Iceberg table",
            code=NOT_ICEBERG,
            hint="drop it in Glue with all its versions, or load into another table",
        ) from None
    except tuple(_NAMES) as error:
        # A server may repeat a secret, and pyiceberg repeats the server: not even as a cause.
        raise _answered(doing, error, hidden) or _named(doing, error) from None
    except iceberg_errors.RESTError as error:
        raise _answered(doing, error, hidden) or not_a_catalog(doing) from None
    except NotImplementedError:
        raise CatalogError(
            f"{doing}: the catalog does not support this call",
            code="NotImplemented",
            hint="update the catalog, or check its documentation",
        ) from None
    except ValueError:
        # pydantic's and json's errors show what they could not read: not even as a cause.
        raise not_a_catalog(doing) from None


def _answered(doing: str, error: Exception, hidden: Sequence[Secret]) -> CatalogError | None:
    """Return the error of a catalog's answer; None when the error is pyiceberg's own."""
    response = getattr(error.__cause__, "response", None)
    if not isinstance(response, requests.Response):
        return None
    return error_from(doing, response, hidden)


def _named(doing: str, error: Exception) -> CatalogError:
    code, status, meaning = next(_NAMES[kind] for kind in type(error).__mro__ if kind in _NAMES)
    return CatalogError(f"{doing}: {meaning}", code=code, status=status)


@dataclass(frozen=True)
class IcebergCatalog:
    """An open catalog. Namespaces have one level. Every method raises `CatalogError` for what the
    catalog refuses and `AwsError` for what Glue or S3 does."""

    _catalog: Catalog
    _tables: TableStore
    _uri: str
    _hidden: Sequence[Secret] = ()
    files: LakeFiles | None = None
    """Where metadata is written from here; None where the catalog does that itself."""

    def namespaces(self) -> tuple[str, ...]:
        """Return the names of the top namespaces."""
        with self._call("listing the namespaces"):
            return tuple(".".join(name) for name in self._catalog.list_namespaces())

    def tables(self, namespace: str) -> tuple[str, ...]:
        """Return the names of the tables of a namespace."""
        with self._call(f"listing the tables of the namespace `{namespace}`"):
            return tuple(name[-1] for name in self._catalog.list_tables((namespace,)))

    def create_namespace(self, name: str, location: str | None = None) -> None:
        """Make a namespace; 409 when there is one."""
        properties = {"location": location} if location else {}
        with self._call(f"creating the namespace `{name}`"):
            self._catalog.create_namespace((name,), properties)

    def drop_namespace(self, name: str) -> None:
        """Drop an empty namespace; 404 when there is none."""
        with self._call(f"dropping the namespace `{name}`"):
            self._catalog.drop_namespace((name,))

    def create_table(
        self,
        namespace: str,
        name: str,
        *,
        columns: Mapping[str, str],
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> str:
        """Make a table of optional columns with the types as Iceberg writes them (`long`); return
        where its files lie, without a final slash."""
        fields = [
            {"id": number, "name": column, "type": kind, "required": False}
            for number, (column, kind) in enumerate(columns.items(), start=1)
        ]
        rest = dict(properties or {})
        version = int(rest.pop("format-version", 2))
        schema: Json = {"type": "struct", "schema-id": 0, "fields": fields}
        new = NewTable(schema, UNPARTITIONED, UNSORTED, rest, version)
        with self._call(f"creating the table `{namespace}.{name}`") as doing:
            try:
                made = self._tables.create(namespace, name, new, location)
            except CommitRejected:
                raise CatalogError(
                    f"{doing}: the table exists already", code="AlreadyExistsException", status=409
                ) from None
        return str(made.metadata["location"]).rstrip("/")

    def load_table(self, namespace: str, name: str) -> ReadTable:
        """Read a table; 404 when there is none."""
        with self._call(f"reading the table `{namespace}.{name}`") as doing:
            return self._read(namespace, name, doing)

    def set_property(self, namespace: str, name: str, key: str, value: str) -> None:
        """Commit a change of one property; 409 when another commit came first."""
        with self._call(f"committing to the table `{namespace}.{name}`") as doing:
            self._commit(
                self._read(namespace, name, doing),
                [set_properties({key: value})],
                lambda now: now.metadata["properties"].get(key) == value,
            )

    def refuses_overtaken(self, namespace: str, name: str, branch: str) -> bool:
        """Return whether a commit is refused that asserts a snapshot which `branch` is not at.

        A REST catalog is asked so, since Glue's client compares by itself. A commit that is taken
        changes nothing of the table. Raises `CatalogError` for an answer that says nothing of it,
        such as a missing privilege.
        """
        doing = f"checking whether the catalog validates commits to the table `{namespace}.{name}`"
        with self._call(doing):
            return refuses_overtaken(self._tables, namespace, name, branch)

    def drop_branches(
        self, namespace: str, name: str, branches: Collection[str]
    ) -> tuple[str, ...]:
        """Drop those of the branches that are there, in one commit that asserts each; return them.

        409 when another commit came first: look again.
        """
        with self._call(f"dropping branches of the table `{namespace}.{name}`") as doing:
            table = self._read(namespace, name, doing)
            refs = table.metadata.get("refs", {})
            there = tuple(branch for branch in branches if branch in refs)
            if there:
                self._commit(
                    table,
                    [remove_ref(branch) for branch in there],
                    lambda now: not any(one in now.metadata.get("refs", {}) for one in there),
                    [assert_ref(branch, ref(table.metadata, branch)) for branch in there],
                )
            return there

    def settle_partition(
        self,
        namespace: str,
        name: str,
        files: MetadataFiles,
        partition: tuple[str, str] | None,
        *,
        summary: Mapping[str, str],
        forget: str | None,
    ) -> bool:
        """Remove a partition, given its column and value, and the property `forget`, in one commit;
        None leaves either. Return whether there was anything of it.

        409 when another commit came first: look again.
        """
        with self._call(f"committing to the table `{namespace}.{name}`") as doing:
            table = self._read(namespace, name, doing)
            updates: list[Json] = []
            left, number = None, new_snapshot_id()
            if partition is not None:
                left = without_partition(
                    files, table.metadata, partition, number, summary, now_ms=now_ms()
                )
            if left is not None:
                updates += [add_snapshot(left), set_branch(MAIN, number)]
            if forget is not None and forget in table.metadata["properties"]:
                updates.append(remove_properties([forget]))

            def is_in(now: ReadTable) -> bool:
                if left is not None:
                    return snapshot_of(now.metadata, number) is not None
                return forget not in now.metadata["properties"]

            if updates:
                head = ref(table.metadata, MAIN)
                self._commit(table, updates, is_in, [assert_ref(MAIN, head)])
            return bool(updates)

    def _read(self, namespace: str, name: str, doing: str) -> ReadTable:
        table = self._tables.load(namespace, name)
        if table is None:
            code, status, meaning = _NAMES[iceberg_errors.NoSuchTableError]
            raise CatalogError(f"{doing}: {meaning}", code=code, status=status)
        return table

    def _commit(
        self,
        table: ReadTable,
        updates: Sequence[Json],
        is_in: Callable[[ReadTable], bool],
        requirements: Sequence[Json] = (),
    ) -> None:
        """Send a commit once. Where only a read can tell, `is_in` says by the table, read again,
        whether it is in."""
        try:
            self._tables.commit(table, requirements, updates)
        except CommitUnknown as error:
            now = self._tables.load(table.namespace, table.name)
            if now is not None and is_in(now):
                return
            if error.overtaken:
                raise CommitRejected(str(error)) from error
            raise

    def files_for(
        self, table: ReadTable, destination: DestinationSpec, session: AwsSession
    ) -> LakeFiles:
        """Return the files of a table, with the credentials that the catalog has vended with it,
        else with the destination's own."""
        return files_for(table, destination, session, self._tables)

    def drop_table(self, namespace: str, name: str, *, purge: bool = False) -> None:
        """Drop a table; 404 when there is none. With `purge` its files go too, where the catalog
        has that."""
        with self._call(f"dropping the table `{namespace}.{name}`"):
            drop = self._catalog.purge_table if purge else self._catalog.drop_table
            drop((namespace, name))

    @property
    def place(self) -> str:
        """Where it is, as far as that may be shown."""
        return origin(self._uri) if "://" in self._uri else self._uri

    @contextmanager
    def _call(self, doing: str) -> Iterator[str]:
        """Translate what the block raises, in sentences that begin with the text it is given."""
        place = f"{doing} in the catalog `{self.place}`"
        try:
            with catalog_call(place, self._uri, self._hidden):
                yield place
        except CommitRejected as error:
            if error.busy and isinstance(error.__cause__, LakeloadError):
                raise error.__cause__ from None
            raise CatalogError(
                f"{place}: another commit came first",
                code="CommitFailedException",
                status=HTTPStatus.CONFLICT,
                retryable=True,
            ) from error
        except CommitUnknown as error:
            if isinstance(error.__cause__, LakeloadError):
                raise error.__cause__ from None
            raise CatalogError(f"{place}: commit state unknown", code=NO_STATE) from error
        except Unsupported as error:
            raise unsupported(place, error) from error


UNPARTITIONED: Json = {"spec-id": 0, "fields": []}
UNSORTED: Json = {"order-id": 0, "fields": []}

AT_ONCE = 8
"""Files read or removed at once."""


@dataclass(frozen=True)
class TableFiles:
    """Locations of files below the table's own location, and `elsewhere` those that are not.

    `data` are data and delete files with their bytes; `metadata` manifests, their lists, statistics
    and the metadata files that the table still remembers.
    """

    data: dict[str, int]
    metadata: tuple[str, ...]
    elsewhere: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """The bytes of data and delete files."""
        return sum(self.data.values())

    @property
    def all(self) -> tuple[str, ...]:
        """Everything that goes with the table, data first."""
        return (*self.data, *self.metadata)


def data_files(table: ReadTable, files: LakeFiles) -> dict[str, int]:
    """Read the locations of the data and delete files that any snapshot the table still has names,
    with their bytes. Costs and raises as `table_files`."""
    return _data_of(_manifests(table, files), files)


def table_files(table: ReadTable, files: LakeFiles) -> TableFiles:
    """Read which files belong to any snapshot the table still has: a GET for each manifest and each
    list of manifests. Raises `AwsError` when one cannot be read."""
    metadata = table.metadata
    manifests = _manifests(table, files)
    data = _data_of(manifests, files)
    known = [
        *(row["manifest_path"] for row in manifests),
        *(one["manifest-list"] for one in metadata.get("snapshots", ()) if "manifest-list" in one),
        *(one["statistics-path"] for one in metadata.get("statistics", ())),
        *(one["statistics-path"] for one in metadata.get("partition-statistics", ())),
        *(one["metadata-file"] for one in metadata.get("metadata-log", ())),
        table.metadata_location,
    ]
    inside = f"{table.location}/"
    return TableFiles(
        data={place: size for place, size in data.items() if place.startswith(inside)},
        metadata=tuple(dict.fromkeys(place for place in known if place.startswith(inside))),
        elsewhere=tuple(place for place in (*data, *known) if not place.startswith(inside)),
    )


@dataclass(frozen=True)
class Removal:
    """What became of files: how many went, which are still there and why the first one is."""

    removed: int
    left: tuple[str, ...] = ()
    error: LakeloadError | None = None


def remove_files(files: LakeFiles, places: Sequence[str]) -> Removal:
    """Delete files; a missing one is no error.

    Raises nothing: the table that named them is gone already, so all that can be done is done.
    """

    def remove(place: str) -> tuple[str, LakeloadError] | None:
        try:
            files.delete(place)
        except AwsError as error:
            return place, error
        return None

    refused = [found for found in _together(remove, places) if found is not None]
    left = tuple(place for place, _ in refused)
    return Removal(len(places) - len(left), left, refused[0][1] if refused else None)


def _manifests(table: ReadTable, files: LakeFiles) -> list[Json]:
    """Return what lists say of each manifest of the table."""
    listed = _together(partial(_listed, files), table.metadata.get("snapshots", ()))
    return list({row["manifest_path"]: row for rows in listed for row in rows}.values())


def _listed(files: LakeFiles, snapshot: Json) -> list[Json]:
    # Version 1 of the format knows snapshots without a list.
    named = snapshot.get("manifests")
    return [{"manifest_path": place} for place in named] if named else read_list(files, snapshot)


def _data_of(manifests: Sequence[Json], files: LakeFiles) -> dict[str, int]:
    found = _together(partial(read_paths, files), manifests)
    return {place: size for paths in found for place, size in paths.items()}


def _together(work: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="table-files") as pool:
        return list(pool.map(work, things))


def find_table(catalog: IcebergCatalog, namespace: str, name: str) -> ReadTable | None:
    """Return a table; None where there is none. One or two requests.

    Raises `CatalogError` for what the catalog refuses, and for a table of Glue that is not one of
    Iceberg; `AwsError` for what Glue and S3 refuse.
    """
    try:
        return catalog.load_table(namespace, name)
    except CatalogError as error:
        if error.missing:
            return None
        raise


def read_facts(catalog: IcebergCatalog, namespace: str, name: str) -> TableFacts | None:
    """Return the facts of a table; None where there is none. Costs and raises as `find_table`."""
    table = find_table(catalog, namespace, name)
    return facts_of(table) if table else None


def facts_of(table: ReadTable) -> TableFacts:
    """Return the facts of a table that has been read. Asks nobody."""
    return table_facts(table.metadata, table.metadata_location)
