"""FILE and --table → a lake that answers, and the tables meant: for commands after the load."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.traits import catalog_traits

if TYPE_CHECKING:
    from lakeload.documents.load import DestinationDocument, PipelineDocument
    from lakeload.formats.tables import UpkeepTable
    from lakeload_jobs.aws import AwsSession
    from lakeload_jobs.contract.spec import DestinationSpec
    from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog
    from lakeload_jobs.storage.objects import Objects

EitherFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A pipeline, for its tables, or a destination, for all that have been loaded there.",
    ),
]


_WITHOUT_A_CLIENT = {
    "runs": "query `lake.<schema>.<table>.snapshots` in Spark: the summaries tell job, rows and "
    "mode; `lakeload runs --local` lists this machine's runs",
    "recover": "nothing of a dead run is visible; `lakeload maintain PIPELINE --only branches "
    "--apply` drops its branch, and so does the next `lakeload sync` of the table",
    "reset": "drop the table in Spark: `DROP TABLE lake.<schema>.<table> PURGE`",
}
"""What to do instead, by command."""


@dataclass(frozen=True)
class LakeTables:
    """The tables a command is about, and the way to them. `pipeline` None: of all pipelines."""

    destination: DestinationSpec
    session: AwsSession
    objects: Objects
    tables: list[UpkeepTable]
    pipeline: str | None


@dataclass(frozen=True)
class IcebergTables:
    """The Iceberg tables of a pipeline that a command is about, and their catalog."""

    destination: DestinationSpec
    session: AwsSession
    catalog: IcebergCatalog
    tables: list[UpkeepTable]
    pipeline: str


def is_iceberg(document: PipelineDocument | DestinationDocument) -> bool:
    """Whether the tables meant are Iceberg tables."""
    from lakeload.documents.load import DestinationDocument

    found = document if isinstance(document, DestinationDocument) else document.destination
    return found.model.table_format == "ICEBERG"


def open_iceberg(
    document: PipelineDocument | DestinationDocument,
    globs: Sequence[str],
    label: str,
    option: str = "--table",
) -> IcebergTables:
    """Open the catalog of a pipeline's tables; `option` is what the globs were given with.

    Raises `InvalidDocuments`; `InvalidInput` for a glob without a match, for a destination, whose
    catalog may hold tables of others beside ours, and for a catalog that Spark alone has a client
    for; `Refused`.
    """
    from lakeload.documents.load import DestinationDocument
    from lakeload.documents.spec import destination_spec, table_specs
    from lakeload.formats.tables import of_pipeline, open_session
    from lakeload.launch.spec import select_tables

    if isinstance(document, DestinationDocument):
        raise InvalidInput(
            f"`lakeload {label}` finds Iceberg tables by the pipeline that loads them: a catalog "
            "holds tables of others too",
            hint="give it the pipeline document",
        )
    destination = destination_spec(document.destination)
    if catalog_traits(destination.iceberg.catalog).spark_only:
        raise InvalidInput(
            f"`lakeload {label}` cannot ask Nessie's native interface: Spark alone has a client "
            "for it",
            hint=_WITHOUT_A_CLIENT[label],
        )
    chosen = select_tables(table_specs(document), globs, option)
    from lakeload.probes.preflight import preflight
    from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog

    preflight(destination)
    session = open_session(destination, label)
    catalog = open_catalog(destination, session)
    tables = of_pipeline(destination, chosen)
    return IcebergTables(destination, session, catalog, tables, document.model.name)


def read_document(file: Path) -> PipelineDocument | DestinationDocument:
    """Read FILE, whichever it is. Raises `InvalidDocuments`."""
    from lakeload.documents.load import load_either

    return load_either(file, os.environ)


def open_document(
    document: PipelineDocument | DestinationDocument,
    globs: Sequence[str],
    label: str,
    option: str = "--table",
) -> LakeTables:
    """Become the identity that writes, and find Parquet tables.

    Of a pipeline: its tables by the names it gives them; of a destination: every table with a log,
    as `schema.table`. `option` is what the globs were given with. Raises `InvalidDocuments`,
    `InvalidInput` for a glob without a match, `Refused`.
    """
    from lakeload.documents.load import DestinationDocument
    from lakeload.documents.spec import destination_spec, table_specs
    from lakeload.launch.spec import select_tables

    if isinstance(document, DestinationDocument):
        destination, chosen, pipeline = destination_spec(document), None, None
    else:
        destination = destination_spec(document.destination)
        # Before the network: a typing error is told at once.
        chosen = select_tables(table_specs(document), globs, option)
        pipeline = document.model.name
    from lakeload.formats.tables import of_destination, of_pipeline, open_session
    from lakeload.probes.preflight import preflight
    from lakeload_jobs.storage.objects import Objects

    preflight(destination)
    session = open_session(destination, label)
    objects = Objects(session, destination)
    if chosen is None:
        tables = of_destination(objects, destination.prefix, globs)
    else:
        tables = of_pipeline(destination, chosen)
    return LakeTables(destination, session, objects, tables, pipeline)
