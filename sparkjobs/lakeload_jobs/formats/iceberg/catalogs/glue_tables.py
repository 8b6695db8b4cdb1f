"""Tables of AWS Glue: it holds the name of the metadata file, and compares the version of a table.

https://docs.aws.amazon.com/glue/latest/webapi/API_UpdateTable.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.glue_calls import GlueCalls, is_iceberg
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.comments import MAX_COLUMN, MAX_TABLE, one_line
from lakeload_jobs.formats.iceberg.catalogs.errors import not_iceberg
from lakeload_jobs.formats.iceberg.catalogs.table_stores import (
    MetadataWriter,
    ReadTable,
    RemovableFiles,
)
from lakeload_jobs.formats.iceberg.commits.errors import (
    CommitRejected,
    CommitUnknown,
    Unsupported,
)
from lakeload_jobs.formats.iceberg.commits.metadata import Json, Metadata, NewTable, schema_of

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import DatabaseInputTypeDef, TableInputTypeDef

_LOCATION = "metadata_location"
_PREVIOUS = "previous_metadata_location"
_TYPE = "table_type"
_COMMENT = "comment"
_TIMED_OUT = "OperationTimeoutException"
"""The code of a change that Glue did not end in time, whose status is that of a refusal."""
_KEPT = (
    "Owner",
    "Retention",
    "TargetTable",
    "LastAccessTime",
    "LastAnalyzedTime",
    "ViewOriginalText",
)
"""What Glue holds of a table that is not Iceberg's: a commit leaves it."""


class GlueTables:
    """The tables of one account and region; implements `TableStore`."""

    def __init__(
        self, session: AwsSession, destination: DestinationSpec, files: RemovableFiles
    ) -> None:
        owner = destination.iceberg.catalog.glue_id
        role = destination.credentials.role_arn
        self._calls = GlueCalls(session, destination.region, role, owner)
        self._writer = MetadataWriter(files)

    def namespace_location(self, namespace: str) -> str | None:
        """Read a database in one request."""
        database = self._calls.get_database(namespace)
        return None if database is None else database.get("LocationUri") or ""

    def create_namespace(self, namespace: str, location: str | None) -> None:
        """Create a database in one request."""
        place: DatabaseInputTypeDef = {"Name": namespace}
        if location:
            place["LocationUri"] = location
        with _outcome("the database exists already"):
            self._calls.create_database(place)

    def open(self) -> None:
        """Ask nothing: Glue has no call that every role may make."""

    def load(self, namespace: str, name: str) -> ReadTable | None:
        """Read a table: one request to Glue, one to S3."""
        found = self._calls.get_table(namespace, name)
        if found is None:
            return None
        held: Json = dict(found)
        parameters = held.get("Parameters", {})
        if not is_iceberg(parameters) or _LOCATION not in parameters:
            raise not_iceberg(namespace, name)
        place = parameters[_LOCATION]
        return ReadTable(namespace, name, self._writer.read(place), place, held)

    def create(self, namespace: str, name: str, table: NewTable, location: str | None) -> ReadTable:
        """Create a table at `location`, which Glue does not choose."""
        if location is None:
            raise Unsupported("no location")
        metadata, place = self._writer.create(table, location)
        with _outcome("the table exists already"):
            self._calls.create_table(namespace, _table_input(name, metadata, place, None))
        return ReadTable(namespace, name, metadata, place)

    def commit(
        self,
        table: ReadTable,
        requirements: Iterable[Mapping[str, Any]],
        updates: Iterable[Mapping[str, Any]],
    ) -> ReadTable:
        """Commit: the metadata file, then one request that names the version that was read."""
        metadata, place = self._writer.commit(table, requirements, updates)
        with _outcome():
            self._calls.update_table(
                table.namespace,
                _table_input(table.name, metadata, place, table),
                table.version["VersionId"],
            )
        self._writer.delete_old(table.metadata, metadata)
        return ReadTable(table.namespace, table.name, metadata, place)

    def drop(self, table: ReadTable) -> None:
        """Drop a table in one request."""
        with _outcome():
            self._calls.delete_table(table.namespace, table.name)


@contextmanager
def _outcome(exists: str = "") -> Iterator[None]:
    """Translate what became of a commit, or of what is new: `exists` is for that alone."""
    try:
        yield
    except AwsError as error:
        # The client repeats a request whose answer was lost, which then conflicts with itself.
        overtaken = error.code == "ConcurrentModificationException"
        if overtaken or error.may_have_acted or error.code == _TIMED_OUT:
            raise CommitUnknown(error.message, overtaken=overtaken) from error
        if exists and error.code == "AlreadyExistsException":
            raise CommitRejected(exists) from error
        if error.throttled and not exists:
            raise CommitRejected(error.message, busy=True) from error
        raise


def _table_input(
    name: str, metadata: Metadata, place: str, before: ReadTable | None
) -> TableInputTypeDef:
    """Return what Glue is to hold: where the metadata is, and the columns for its console."""
    held: Json = before.version if before is not None else {}
    parameters = {**held.get("Parameters", {}), _TYPE: "ICEBERG", _LOCATION: place}
    if before is not None:
        parameters[_PREVIOUS] = before.metadata_location
    columns = [
        {
            "Name": field["name"],
            "Type": _hive_type(field["type"]),
            # Glue refuses longer ones, and several lines; the metadata has them whole.
            **({"Comment": one_line(doc, MAX_COLUMN)} if (doc := field.get("doc")) else {}),
            "Parameters": {
                "iceberg.field.id": str(field["id"]),
                "iceberg.field.current": "true",
                "iceberg.field.optional": str(not field["required"]).lower(),
            },
        }
        for field in schema_of(metadata)["fields"]
    ]
    found: Any = {
        **{key: held[key] for key in _KEPT if held.get(key)},
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": parameters,
        "StorageDescriptor": {"Columns": columns, "Location": metadata["location"]},
    }
    comment = metadata.get("properties", {}).get(_COMMENT) or held.get("Description")
    if comment:
        found["Description"] = one_line(comment, MAX_TABLE)
    made: TableInputTypeDef = found
    return made


_NAMES = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp",
    "uuid": "string",
    "time": "string",
}


def _hive_type(kind: Any) -> str:
    """Return the name that Glue shows for a type."""
    if isinstance(kind, str):
        return "binary" if kind.startswith("fixed") else _NAMES.get(kind, kind.replace(" ", ""))
    if kind["type"] == "list":
        return f"array<{_hive_type(kind['element'])}>"
    if kind["type"] == "map":
        return f"map<{_hive_type(kind['key'])},{_hive_type(kind['value'])}>"
    fields = (f"{field['name']}:{_hive_type(field['type'])}" for field in kind["fields"])
    return f"struct<{','.join(fields)}>"
