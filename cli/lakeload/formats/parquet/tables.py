"""The Parquet tables that a command is about: those of a pipeline, or all that have a log."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from lakeload.config.document import quoted
from lakeload.documents.load import DestinationDocument
from lakeload.documents.spec import destination_spec
from lakeload.formats.tables import TableRef, TablesRequest, enter, open_pipeline
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.formats.parquet.glue import GlueCatalog
from lakeload_jobs.formats.parquet.log.commit_log import find_tables
from lakeload_jobs.formats.parquet.log.publish import Notify
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class ParquetTables:
    """Tables with a log, and what work on them needs. `pipeline` None: of all pipelines.

    `parallelism` counts requests for one table at once.
    """

    objects: Objects
    catalog: GlueCatalog | None
    parallelism: int
    notify: Notify
    tables: Sequence[TableRef] = ()
    pipeline: str | None = None


def open_tables(request: TablesRequest) -> ParquetTables:
    """Become the identity that writes, and find the tables.

    Of a pipeline: its tables by the names it gives them; of a destination: every table with a log,
    as `schema.table`. Raises `InvalidDocuments`, `InvalidInput` for a glob without a match,
    `Refused`.
    """
    document, pipeline = request.document, None
    tables: Sequence[TableRef]
    if isinstance(document, DestinationDocument):
        destination = destination_spec(document)
        session = enter(destination, request)
        tables = of_destination(Objects(session, destination), destination.prefix, request.globs)
    else:
        destination, session, tables = open_pipeline(document, request)
        pipeline = document.model.name
    return ParquetTables(
        Objects(session, destination),
        GlueCatalog(session, destination),
        destination.parquet.upload_parallelism,
        request.notify,
        tables,
        pipeline,
    )


def of_destination(objects: Objects, prefix: str, globs: Sequence[str]) -> list[TableRef]:
    """Return every table with a log whose `schema.table` matches one of the globs, or all.

    Raises `InvalidInput` for a glob without a match, `AwsError`.
    """
    tables = [TableRef(found.name, found) for found in find_tables(objects, prefix)]
    names = [table.target for table in tables]
    there = f"there are {quoted(names, 10)}" if names else "no table has been loaded there yet"
    for glob in globs:
        if not any(fnmatch.fnmatchcase(name, glob) for name in names):
            root = objects.url(prefix)
            raise InvalidInput(
                f"`--table {glob}` matches no table with a log in `{root}`",
                hint=did_you_mean(glob, names) or there,
            )
    return [
        table
        for table in tables
        if not globs or any(fnmatch.fnmatchcase(table.target, glob) for glob in globs)
    ]
