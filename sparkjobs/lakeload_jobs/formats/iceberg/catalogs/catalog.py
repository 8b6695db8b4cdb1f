"""Tables of a catalog, read before Spark starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import requests
from pyiceberg import exceptions as iceberg_errors
from pyiceberg.catalog import Catalog

from lakeload_jobs.aws import AwsError, aws_call
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.formats.iceberg.catalogs.changes import catalog_errors, commit
from lakeload_jobs.formats.iceberg.catalogs.errors import NOT_ICEBERG, CatalogError
from lakeload_jobs.formats.iceberg.catalogs.http import error_from, http_call, not_a_catalog, origin
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore
from lakeload_jobs.formats.iceberg.commits.definitions import UNSORTED
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    NewTable,
    set_properties,
)

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
            commit(
                self._tables,
                self._read(namespace, name, doing),
                [],
                [set_properties({key: value})],
                lambda now: now.properties.get(key) == value,
            )

    def _read(self, namespace: str, name: str, doing: str) -> ReadTable:
        table = self._tables.load(namespace, name)
        if table is None:
            code, status, meaning = _NAMES[iceberg_errors.NoSuchTableError]
            raise CatalogError(f"{doing}: {meaning}", code=code, status=status)
        return table

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
        with catalog_errors(place), catalog_call(place, self._uri, self._hidden):
            yield place


UNPARTITIONED: Json = {"spec-id": 0, "fields": []}
