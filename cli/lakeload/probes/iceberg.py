"""Probes of Iceberg catalogs that are not Glue: REST, Open Catalog, Nessie (F17-F25, F82, F83).

Glue's are in `glue`: it is asked for databases and tables there, of either format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lakeload.probes.iceberg_causes import catalog_causes
from lakeload.probes.model import Level, Probe
from lakeload.probes.probe_catalog import ProbeCatalog
from lakeload.probes.probe_nessie import ProbeNessie
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import CATALOGS, vends

_OPENED = ("catalog-warehouse",)
_IDENTITY = ("credentials", "assume-role")


@dataclass(frozen=True)
class _Question:
    """A probe but for what follows from the destination."""

    name: str
    proves: str
    run: Callable[[], str]
    needs: tuple[str, ...]
    privilege: str = ""
    """Polaris's name for it (F25); other catalogs have names of their own."""
    level: Level = Level.REQUIRED
    writes: bool = False
    beside_the_point: str = ""


def catalog_probes(destination: DestinationSpec, catalog: ProbeCatalog) -> list[Probe]:
    """Return the probes of a catalog that speaks Iceberg's REST protocol.

    Dropping is asked first, about nothing: a catalog that refuses it gets no namespace made. Many
    catalogs look for the thing before the privilege, so that the real drops come at the end too.
    """
    questions = (
        *_identity(destination, catalog),
        *_making(catalog),
        *_using(destination, catalog),
        *_dropping(catalog),
    )
    return [_probe(question, destination) for question in questions]


def nessie_probes(destination: DestinationSpec, nessie: ProbeNessie) -> list[Probe]:
    """Return the probes of Nessie's native interface: what plain HTTP can ask."""
    needs = ("catalog-warehouse",)
    made = ("catalog-create-namespace",)
    questions = (
        _Question("catalog", "Nessie answers at `uri`", nessie.reach, ()),
        _Question("catalog-warehouse", "the branch in `ref` exists", nessie.find, ("catalog",)),
        _Question(
            "catalog-create-namespace",
            "a commit goes in, on a branch of the test's own",
            nessie.commit,
            needs,
            writes=True,
        ),
        _Question(
            "catalog-drop-namespace",
            "the branch of this test can be deleted",
            nessie.drop,
            made,
            level=Level.USEFUL,
            writes=True,
        ),
    )
    return [_probe(question, destination) for question in questions]


def _identity(destination: DestinationSpec, catalog: ProbeCatalog) -> tuple[_Question, ...]:
    spec = destination.iceberg.catalog
    client = spec.credential or spec.client_id
    # Only a signature needs AWS to say who asks.
    signer = _IDENTITY if spec.sigv4 else ()
    return (
        _Question("catalog", "an Iceberg REST catalog answers at `uri`", catalog.reach, ()),
        _Question(
            "catalog-region",
            "catalog and bucket are in the same AWS region",
            catalog.same_region,
            (),
            beside_the_point="" if spec.catalog_region else "no `catalog_region` to compare",
        ),
        _Question(
            "catalog-token",
            "the client id, its secret and the scope get a token",
            catalog.token,
            ("catalog",),
            beside_the_point="" if client else "no OAuth2 client is configured",
        ),
        _Question(
            "catalog-warehouse",
            "the catalog accepts this identity and knows the warehouse",
            catalog.open,
            ("catalog", "catalog-token", *signer),
        ),
        _Question(
            "catalog-namespaces",
            "namespaces can be listed",
            catalog.list_namespaces,
            _OPENED,
            "NAMESPACE_LIST",
        ),
    )


def _making(catalog: ProbeCatalog) -> tuple[_Question, ...]:
    return (
        _Question(
            "catalog-may-drop",
            "dropping is not refused from the start, asked about nothing",
            catalog.may_drop,
            _OPENED,
            "NAMESPACE_DROP",
            level=Level.USEFUL,
            writes=True,
        ),
        _Question(
            "catalog-create-namespace",
            "a new schema gets its namespace",
            catalog.create_namespace,
            (*_OPENED, "catalog-may-drop"),
            "NAMESPACE_CREATE",
            writes=True,
        ),
        _Question(
            "catalog-create-table",
            "a new table is made",
            catalog.create_table,
            ("catalog-create-namespace",),
            "TABLE_CREATE",
            writes=True,
        ),
    )


def _using(destination: DestinationSpec, catalog: ProbeCatalog) -> tuple[_Question, ...]:
    vended = vends(destination.iceberg.catalog)
    keys = "credentials that the catalog vends" if vended else "the destination's credentials"
    return (
        _Question(
            "catalog-load-table",
            "a table can be read",
            catalog.load_table,
            ("catalog-create-table",),
            "TABLE_READ_DATA" if vended else "TABLE_READ_PROPERTIES",
            writes=True,
        ),
        _Question(
            "catalog-commit",
            "a commit goes in and is seen",
            catalog.commit,
            ("catalog-load-table",),
            "TABLE_WRITE_PROPERTIES",
            writes=True,
        ),
        _Question(
            "catalog-compare",
            "a commit that was overtaken is refused",
            catalog.compare,
            ("catalog-commit",),
            "TABLE_WRITE_PROPERTIES",
            writes=True,
        ),
        _Question(
            "catalog-data",
            f"a table's files can be written with {keys}",
            catalog.write_data,
            ("catalog-load-table",) if vended else ("catalog-load-table", *_IDENTITY),
            "TABLE_WRITE_DATA" if vended else "",
            writes=True,
        ),
    )


def _dropping(catalog: ProbeCatalog) -> tuple[_Question, ...]:
    return (
        _Question(
            "catalog-drop-table",
            "the table of this test can be dropped",
            catalog.drop_table,
            ("catalog-create-table",),
            "TABLE_DROP",
            level=Level.USEFUL,
            writes=True,
        ),
        _Question(
            "catalog-drop-namespace",
            "the namespace of this test can be dropped",
            catalog.drop_namespace,
            ("catalog-create-namespace", "catalog-drop-table"),
            "NAMESPACE_DROP",
            level=Level.USEFUL,
            writes=True,
        ),
    )


def _probe(question: _Question, destination: DestinationSpec) -> Probe:
    spec = destination.iceberg.catalog
    # Only Open Catalog certainly calls its privileges so.
    named = CATALOGS[spec.type].polaris and question.privilege
    return Probe(
        name=question.name,
        proves=question.proves,
        level=question.level,
        action=question.privilege if named else "",
        resource=f"catalog {spec.warehouse}" if named else "",
        run=question.run,
        explain=partial(catalog_causes, catalog=spec),
        needs=question.needs,
        writes=question.writes,
        beside_the_point=question.beside_the_point,
    )
