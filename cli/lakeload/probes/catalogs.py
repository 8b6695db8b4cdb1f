"""Which catalog a destination has, and so which probes ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakeload.policy.iam.glue import uses_glue
from lakeload.probes.glue import glue_probes
from lakeload.probes.probe_tables import ProbeTables
from lakeload.probes.runner import Deadline, Probe
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import Interface, catalog_of, catalog_traits

if TYPE_CHECKING:
    from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts


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
    catalog = catalog_of(destination)
    if catalog is None:
        if not uses_glue(destination):
            return CatalogPart()
        return _glue(destination, ProbeTables(destination, session))
    # pyiceberg takes a second or two to import: for destinations that need it only.
    from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts

    patience = HttpTimeouts(connect_timeout, read_timeout, attempts)
    return _PARTS[catalog_traits(catalog).interface](destination, session, patience)


def _iceberg_in_glue(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts
) -> CatalogPart:
    from lakeload.probes.probe_tables import ProbeIcebergTables

    return _glue(destination, ProbeIcebergTables(destination, session))


def _rest(destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts) -> CatalogPart:
    from lakeload.probes.iceberg import catalog_probes
    from lakeload.probes.probe_catalog import ProbeCatalog

    catalog = ProbeCatalog(destination, session, patience)
    return CatalogPart(tuple(catalog_probes(destination, catalog)), catalog.remove_all)


def _nessie(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts
) -> CatalogPart:
    from lakeload.probes.iceberg import nessie_probes
    from lakeload.probes.probe_catalog import ProbeNessie

    nessie = ProbeNessie(destination, session, patience)
    return CatalogPart(tuple(nessie_probes(destination, nessie)), nessie.remove_all)


_PARTS: Mapping[Interface, Callable[[DestinationSpec, AwsSession, HttpTimeouts], CatalogPart]] = {
    Interface.GLUE: _iceberg_in_glue,
    Interface.REST: _rest,
    Interface.NESSIE: _nessie,
}


def _glue(destination: DestinationSpec, tables: ProbeTables) -> CatalogPart:
    return CatalogPart(tuple(glue_probes(destination, tables)), tables.remove_all)
