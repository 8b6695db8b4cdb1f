"""Tables of the lake on this machine, by name, and their rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

from lakeload.config.document import quoted
from lakeload.lake.query import Answer, names_in, query
from lakeload.lake.server import Lake
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady
from lakeload_jobs.contract.spec import DestinationSpec, TableFormat
from lakeload_jobs.contract.traits import format_of
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.formats.parquet.log.commit_log import find_tables
from lakeload_jobs.formats.parquet.log.run_history import read_runs, recent
from lakeload_jobs.storage.objects import Objects

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

_ALL_RECORDS = 1_000_000
_PUBLISHED = ("done", "partial")


def ask(lake: Lake, sql: str, table_format: TableFormat | None = None) -> Answer:
    """Run SQL over the tables of the lake that it names, each `schema.table`, or `table` where only
    one schema has it. Raises `InvalidInput`, `MachineNotReady`, `AwsError`, `CatalogError`."""
    names = names_in(sql)
    if lake.pid() is None:
        raise MachineNotReady("the lake is not running", hint="start it: `lakeload lake up`")
    formats = (table_format,) if table_format else get_args(TableFormat)
    there = [(one, table) for one in formats for table in tables(lake, one)] if names else []
    rows: dict[str, pa.Table | ds.Dataset] = {}
    for name in names:
        found_format, table = chosen(name, there)
        rows[name] = _rows(lake.destination(found_format), table)
    return query(rows, sql)


def tables(lake: Lake, table_format: TableFormat) -> tuple[TableLocation, ...]:
    """Return the tables of a format. Raises `AwsError`, `CatalogError`."""
    destination = lake.destination(table_format)
    session = _session(destination)
    if not format_of(destination).has_catalog:
        return find_tables(Objects(session, destination), "")
    from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog

    catalog = open_catalog(destination, session)
    return tuple(
        TableLocation("", namespace, name)
        for namespace in catalog.namespaces()
        for name in catalog.tables(namespace)
    )


def chosen(
    name: str, there: list[tuple[TableFormat, TableLocation]]
) -> tuple[TableFormat, TableLocation]:
    """Return the table that a query names. Raises `InvalidInput` for none and for several."""
    own = name.lower()
    fitting = [
        (table_format, table)
        for table_format, table in there
        if own in (table.name.lower(), table.table.lower())
    ]
    if len(fitting) == 1:
        return fitting[0]
    names = [table.name for _, table in fitting or there]
    if not fitting:
        listed = (
            f"there are {quoted(sorted(set(names)), 10)}"
            if names
            else "no table has been loaded yet: `lakeload sync pipeline.yml`"
        )
        raise InvalidInput(
            f"the lake has no table `{name}`", hint=did_you_mean(name, names) or listed
        )
    if len({table.name for _, table in fitting}) > 1:
        raise InvalidInput(
            f"several schemas have a table `{name}`", hint=f"name one: {quoted(sorted(set(names)))}"
        )
    raise InvalidInput(
        f"`{name}` is a Parquet table and an Iceberg table",
        hint="choose one: `--table-format PARQUET` or `--table-format ICEBERG`",
    )


def _rows(destination: DestinationSpec, table: TableLocation) -> pa.Table | ds.Dataset:
    """Return the rows of a table: those of Parquet files are read when a query needs them."""
    session = _session(destination)
    if not format_of(destination).has_catalog:
        return _dataset(destination, session, table)
    from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog
    from lakeload_jobs.formats.iceberg.catalogs.rows import read_rows

    opened = open_catalog(destination, session).load_table(table.schema, table.table)
    return read_rows(opened, destination, session)


def _dataset(destination: DestinationSpec, session: AwsSession, table: TableLocation) -> ds.Dataset:
    """Return the files that the records of a table name, with the columns of all of them."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow.fs import S3FileSystem

    objects = Objects(session, destination)
    runs, _ = read_runs(
        objects, recent(objects, table, _ALL_RECORDS), datetime.min.replace(tzinfo=UTC)
    )
    keys = [
        f"{destination.bucket}/{file.key}"
        for run in runs
        if run.state in _PUBLISHED
        for file in run.record.files
    ]
    if not keys:
        raise InvalidInput(
            f"no load of `{table.name}` has brought rows", hint="load it: `lakeload sync`"
        )
    own = session.keys()
    store = S3FileSystem(
        access_key=own.access_key_id,
        secret_key=own.secret_access_key.reveal(),
        endpoint_override=destination.endpoints.s3,
        region=destination.region,
    )
    schemas = [ds.dataset(key, filesystem=store, format="parquet").schema for key in keys]
    # Columns came and became wider from load to load.
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    return ds.dataset(keys, schema, format="parquet", filesystem=store)


def _session(destination: DestinationSpec) -> AwsSession:
    return AwsSession(destination, label="lake").waiting(read_timeout=30, max_attempts=2)
