"""pyiceberg's exceptions, translated once into `CatalogError` or, from Glue and S3, `AwsError`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import requests
from pyiceberg import exceptions as iceberg_errors

from lakeload_jobs.aws import AwsError, aws_call
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.formats.iceberg.catalogs.errors import NO_STATE, CatalogError
from lakeload_jobs.formats.iceberg.catalogs.http import error_from, http_call, not_a_catalog

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
    iceberg_errors.CommitFailedException: (
        "CommitFailedException",
        409,
        "another commit came first",
    ),
    iceberg_errors.CommitStateUnknownException: (
        NO_STATE,
        None,
        "nobody knows whether the commit happened",
    ),
}
# What pyiceberg lets through of Glue's own: it looks at a database before it drops it.
_GLUE = {
    "EntityNotFoundException": ("NoSuchNamespaceException", 404),
    "AlreadyExistsException": ("AlreadyExistsException", 409),
}
NOT_ICEBERG = "NotAnIcebergTable"
"""The code of a Glue table of another kind (F27)."""


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
            f"{doing}: the catalog does not know this call",
            code="NotImplemented",
            hint="update the catalog, or see in its documentation what it can do",
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
    return CatalogError(
        f"{doing}: {meaning}",
        code=code,
        status=status,
        retryable=isinstance(error, iceberg_errors.CommitFailedException),
    )
