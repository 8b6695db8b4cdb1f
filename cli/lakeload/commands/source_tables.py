"""Tables that the source of a pipeline has: the step after the documents that asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lakeload.documents.found_tables import with_tables
from lakeload.documents.load import DestinationDocument, PipelineDocument
from lakeload.documents.spec import destination_spec
from lakeload.sources.registry import SOURCES
from lakeload.ui.display import Phases

if TYPE_CHECKING:
    from lakeload_jobs.sources.readers import SourceReaders

D = TypeVar("D", bound=PipelineDocument | DestinationDocument)


def with_found_tables(
    document: D, command: str, *, keys: bool = False, phases: Phases | None = None
) -> D:
    """Return a pipeline with the tables that its globs find, and with `keys` those that the source
    has for tables without `primary_key`. Any other document stays as it is. `phases` show where the
    source is asked.

    Raises as reading the source does, and `InvalidInput` for what cannot be loaded together.
    """
    if not isinstance(document, PipelineDocument):
        return document
    model, destination = document.model, document.destination

    def readers() -> SourceReaders:
        # With boto3, which takes longer than reading the documents.
        from lakeload.connections import Connections
        from lakeload_jobs.sources.readers import SourceReaders

        if phases is not None:
            phases.begin("reading the tables of the source")
        spec = destination_spec(destination)
        return SourceReaders(spec, Connections(spec, command).before_spark)

    listed = document.listed or model.tables
    tables = SOURCES[model.source.type].find_tables(
        model.source, listed, document.path.parent, readers, keys=keys
    )
    return with_tables(document, tuple(tables), keys=keys)
