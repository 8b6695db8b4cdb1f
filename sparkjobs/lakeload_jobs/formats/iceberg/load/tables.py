"""Access to Iceberg's Java API from Python: table names and translated exceptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed, Refused
from lakeload_jobs.contract.secrets import Secret, without_secrets
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import advice

CATALOG = "lake"
"""The name of the catalog in Spark: `` lake.`schema`.`table` ``."""

Java: TypeAlias = Any
"""An object of the JVM: py4j types none of them."""

_MAX_CAUSES = 16

LOST = ("CommitFailedException",)
"""A clear answer: somebody else's commit came first, and ours did not happen."""

UNSURE = (
    "CommitStateUnknownException",
    "RESTException",
    "ServiceFailureException",
    "ServiceUnavailableException",
    "NessieInternalServerException",
    "NessieUnavailableException",
)
"""No answer, or one that says nothing: ours happened, or it did not (docs/protocol-iceberg.md)."""


def jvm(spark: SparkSession) -> Java:
    """Return py4j's view of the JVM."""
    return spark._jvm


def active(spark: SparkSession) -> None:
    """Make this session the active one of the thread."""
    sessions = jvm(spark).org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(spark._jsparkSession)


def java_catalog(spark: SparkSession) -> Java:
    """Return Iceberg's own catalog behind Spark's."""
    return jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(
        spark._jsparkSession, CATALOG
    )


def identifier(spark: SparkSession, schema: str, table: str) -> Java:
    """Return the identifier of a table, in a namespace of one level."""
    gateway: Java = spark.sparkContext._gateway
    levels = gateway.new_array(jvm(spark).java.lang.String, 1)
    levels[0] = schema
    catalog = jvm(spark).org.apache.iceberg.catalog
    return catalog.TableIdentifier.of(catalog.Namespace.of(levels), table)


def spark_name(
    schema: str, table: str, branch: str | None = None, *, catalog: str = CATALOG
) -> str:
    """Return how SQL calls a table, or one branch of it."""
    parts = [schema, table, *([f"branch_{branch}"] if branch else [])]
    return ".".join([catalog, *(f"`{part}`" for part in parts)])


def causes(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield class and text of each Java exception of a chain, the outermost first.

    Nothing when the JVM no longer answers or no Java exception is behind it.
    """
    java: Java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        for _ in range(_MAX_CAUSES):
            if java is None:
                return
            yield str(java.getClass().getSimpleName()), str(java.getMessage() or "").strip()
            java = java.getCause()
    except (Py4JError, OSError):
        return


def caused_by(error: BaseException, *classes: str) -> bool:
    """Return whether one of the Java exceptions behind `error` is of one of these classes."""
    return any(name in classes for name, _ in causes(error))


def sentence(error: BaseException) -> str:
    """Return what the innermost Java exception says, in one line of at most 300 characters."""
    found = list(causes(error))
    name, text = found[-1] if found else (type(error).__name__, str(error))
    flat = " ".join(f"{name}: {text}".split())
    return flat if len(flat) <= 300 else flat[:299] + "…"


_TEST = "run `lakeload test-connection`, which shows the missing privilege"

_NO_TABLE = (
    "NoSuchTableException",
    "NoSuchIcebergTableException",
    "NoSuchNamespaceException",
)
_REFUSALS = (
    "NotAuthorizedException",
    "ForbiddenException",
    "AccessDeniedException",
    "StsException",
    "BadRequestException",
)
"""Clear answers: what was asked for did not happen."""

CONNECTION_LOST = ("NoHttpResponseException", "SocketException", "ConnectionClosedException")
"""The connection ended before the whole answer arrived."""


def opening_refused(
    error: BaseException, destination: DestinationSpec, hidden: Sequence[Secret]
) -> LakeloadError:
    """Return the failure to open the catalog, without any of the secrets."""
    kind = destination.iceberg.catalog.type
    said = _without(sentence(error), hidden)
    message = f"Spark cannot open the {kind} catalog: {said}"
    if caused_by(error, *CONNECTION_LOST):
        hint = "check the catalog and the proxies on the way to it, then run again"
        return LoadFailed(message, hint=hint, retryable=True)
    return Refused(message, hint=_hint(said))


def _rejection(error: BaseException, doing: str) -> LakeloadError | None:
    """Return the failure of a call the catalog has clearly refused; None for any other."""
    if not caused_by(error, *_REFUSALS):
        return None
    said = sentence(error)
    return LoadFailed(f"{doing}: the catalog rejects it: {said}", hint=_hint(said))


def _hint(said: str) -> str:
    known = advice(said)
    return f"{known}; {_TEST}" if known else _TEST


def _without(text: str, hidden: Sequence[Secret]) -> str:
    values = [secret.reveal() for secret in hidden]
    return without_secrets(
        text, (*values, *(part for value in values for part in value.split(":")))
    )


def load(spark: SparkSession, schema: str, table: str) -> Java | None:
    """Return Iceberg's table, read now; None when there is none.

    Raises `LoadFailed` for what the catalog refuses.
    """
    try:
        return java_catalog(spark).loadTable(identifier(spark, schema, table))
    except Py4JJavaError as error:
        if caused_by(error, *_NO_TABLE):
            return None
        if failure := _rejection(error, f"reading the table `{schema}.{table}`"):
            raise failure from None
        raise
