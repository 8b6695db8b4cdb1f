"""CatalogError: a catalog, or the way to it, refused a call. Status and code decide what it is;
the few texts that carry what no code does are named here."""

from __future__ import annotations

import re
from enum import StrEnum
from http import HTTPStatus

from lakeload_jobs.contract.errors import Refused

NOT_A_CATALOG = "NotACatalog"
"""The code of an answer that no Iceberg catalog gives."""
REDIRECTED = "Redirected"
"""The code of an answer that sends us somewhere else: secrets do not follow there."""
NO_STATE = "CommitStateUnknown"
"""The code of a commit that may or may not have happened."""


NOT_ICEBERG = "NotAnIcebergTable"
"""The code of what has the name of a table and is something else."""


class CatalogError(Refused):
    """A catalog, or the way to it, refused a call.

    `code` is the catalog's own name for it (`ForbiddenException`, `invalid_client`), else the
    phrase of the HTTP status, else the kind of failure; `status` is None without an answer; `said`
    is the catalog's own sentence, '' for none, without any secret. `unanswered`: the request may
    have been sent, and there is no answer that can be read.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        said: str = "",
        hint: str | None = None,
        retryable: bool = False,
        unanswered: bool = False,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.code = code
        self.status = status
        self.said = said
        self.unanswered = unanswered

    @property
    def denied(self) -> bool:
        """True when an identity was recognised and lacks a privilege."""
        return self.status == HTTPStatus.FORBIDDEN

    @property
    def missing(self) -> bool:
        """True when what the call is about does not exist."""
        return self.status == HTTPStatus.NOT_FOUND and self.code != NOT_A_CATALOG

    @property
    def may_have_acted(self) -> bool:
        """True when the catalog may have done it although it did not say so."""
        if self.status is None:
            return self.unanswered
        if self.status < 400:
            # What it has answered says nothing of it.
            return True
        # A proxy may say 408 of a catalog that is slow.
        unclear = self.status >= 500 or self.status == HTTPStatus.REQUEST_TIMEOUT
        return unclear and self.status != HTTPStatus.NOT_IMPLEMENTED


def not_iceberg(namespace: str, name: str) -> CatalogError:
    """Return the error for a name under which the catalog has something else."""
    return CatalogError(
        f"`{namespace}.{name}` exists in the catalog and is not an Iceberg table",
        code=NOT_ICEBERG,
        hint=(
            "load into another `name`, or drop that table (in AWS Glue, dropping can take some "
            "minutes)"
        ),
    )


class Said(StrEnum):
    """The text classes: one status and one code stand for several causes, and only the text tells
    which. Each was published or seen; a text that matches none costs a hint, nothing else."""

    NO_VENDING = "Credential vending was requested for table"
    """Polaris, 400: the catalog has no way to make credentials, as without STS."""
    NO_LOCATION = "Delegate access to table with user-specified write location"
    """Snowflake Open Catalog: a table's location must be left to the catalog."""
    OTHER_REGION = "bucket is in a different region"
    """Open Catalog reaches only buckets of its own region."""
    INVALID_LOCATION = "Invalid locations"
    """Polaris, 403: the location is not among those that the catalog allows."""

    def in_(self, error: Exception) -> bool:
        """Return whether the catalog said so."""
        return isinstance(error, CatalogError) and self.value in error.said


_POLARIS_OPERATION = re.compile(r"is not authorized for op ([A-Z_]+)")

_PRIVILEGES = {
    "LIST_NAMESPACES": "NAMESPACE_LIST",
    "CREATE_NAMESPACE": "NAMESPACE_CREATE",
    "LOAD_NAMESPACE_METADATA": "NAMESPACE_READ_PROPERTIES",
    "DROP_NAMESPACE": "NAMESPACE_DROP",
    "LIST_TABLES": "TABLE_LIST",
    "CREATE_TABLE_DIRECT": "TABLE_CREATE",
    "CREATE_TABLE_DIRECT_WITH_WRITE_DELEGATION": "TABLE_CREATE and TABLE_WRITE_DATA",
    "LOAD_TABLE": "TABLE_READ_PROPERTIES",
    "LOAD_TABLE_WITH_READ_DELEGATION": "TABLE_READ_DATA",
    "LOAD_TABLE_WITH_WRITE_DELEGATION": "TABLE_WRITE_DATA",
    "UPDATE_TABLE": "TABLE_WRITE_PROPERTIES",
    "DROP_TABLE_WITHOUT_PURGE": "TABLE_DROP",
    "DROP_TABLE_WITH_PURGE": "TABLE_DROP and TABLE_WRITE_DATA",
}


def missing_privilege(error: Exception) -> str:
    """Return the privilege that Polaris, and so Open Catalog, finds missing; '' when it names none.

    It says so in the text of a 403 alone, as the name of an operation.
    https://polaris.apache.org/releases/1.4.0/managing-security/access-control/
    """
    return _privilege(error.said) if isinstance(error, CatalogError) and error.denied else ""


OWN_CREDENTIALS = "set `access_delegation: NONE`, so that the destination's own credentials write"
"""The hint where a catalog vends no credentials."""


def advice(said: str) -> str:
    """Return what to do about a refusal that Spark was told, by the catalog's own sentence; ''
    when it is none of the known ones."""
    if Said.OTHER_REGION.value in said:
        return "use a bucket of the catalog's region, or Glue as the catalog"
    if Said.NO_VENDING.value in said:
        return OWN_CREDENTIALS
    if Said.INVALID_LOCATION.value in said:
        return "allow the location in the catalog's storage configuration"
    if privilege := _privilege(said):
        return f"grant {privilege} (or CATALOG_MANAGE_CONTENT) to a catalog role of this principal"
    return ""


_REFUSALS = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def advised(error: CatalogError) -> CatalogError:
    """Return the refusal with what a user of a job can do about it."""
    if error.hint is None and error.status in _REFUSALS:
        known = advice(error.said)
        test = "run `lakeload test-connection`, which shows the missing privilege"
        error.hint = f"{known}; {test}" if known else test
    return error


_NAME = re.compile(
    r"\b(table|namespace) name (?:must|contains|cannot)\b|\binvalid (table|namespace) name\b",
    re.IGNORECASE,
)


def name_advice(said: str) -> str | None:
    """Return the setting of a name that the catalog refuses, None where it speaks of no name."""
    if (found := _NAME.search(said)) is None:
        return None
    setting = "`name` of the table" if (found[1] or found[2]).lower() == "table" else "`namespace`"
    return f"set {setting} in the pipeline, in lower-case letters, digits and `_`"


def _privilege(said: str) -> str:
    found = _POLARIS_OPERATION.search(said)
    return _PRIVILEGES.get(found[1], "") if found else ""
