"""Which catalog a destination has, and so which probes ask it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakeload.probes.glue import glue_probes
from lakeload.probes.model import Probe
from lakeload.probes.probe_tables import ProbeTables
from lakeload.probes.runner import Deadline
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import catalog_traits


@dataclass(frozen=True)
class CatalogPart:
    """The probes of the catalog, and what removes what they made: it returns what it could not."""

    probes: tuple[Probe, ...] = ()
    remove_all: Callable[[Deadline], tuple[str, ...]] = lambda deadline: ()


def catalog_part(
    destination: DestinationSpec,
    session: AwsSession,
    *,
    connect_timeout: float,
    read_timeout: float,
    attempts: int,
) -> CatalogPart:
    """Return the part of the test that is about the catalog; times in seconds for one request."""
    if destination.table_format == "PARQUET":
        if not destination.parquet.update_glue_catalog:
            return CatalogPart()
        return _glue(destination, ProbeTables(destination, session))
    # pyiceberg takes a second or two to import: for destinations that need it only.
    from lakeload.probes.iceberg import catalog_probes, nessie_probes
    from lakeload.probes.probe_catalog import ProbeCatalog
    from lakeload.probes.probe_iceberg_tables import ProbeIcebergTables
    from lakeload.probes.probe_nessie import ProbeNessie
    from lakeload_jobs.formats.iceberg.catalogs.http import Patience

    spec = destination.iceberg.catalog
    if spec.type == "GLUE":
        return _glue(destination, ProbeIcebergTables(destination, session))
    patience = Patience(connect_timeout, read_timeout, attempts)
    if not catalog_traits(spec).spark_only:
        catalog = ProbeCatalog(destination, session, patience)
        return CatalogPart(tuple(catalog_probes(destination, catalog)), catalog.remove_all)
    nessie = ProbeNessie(destination, session, patience)
    return CatalogPart(tuple(nessie_probes(destination, nessie)), nessie.remove_all)


def _glue(destination: DestinationSpec, tables: ProbeTables) -> CatalogPart:
    return CatalogPart(tuple(glue_probes(destination, tables)), tables.remove_all)
