"""What catalogs enforce of a commit, as it was seen of each (docs/protocol-iceberg.md).

The publish of a job rests on a compare-and-set: a commit that was overtaken is refused whole.
tests/integration/iceberg/proof asks each catalog for it.
"""

from __future__ import annotations

from enum import Enum

from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.rules.catalog_uris import native_nessie


class Compares(Enum):
    """What a catalog compares a commit with before it takes it."""

    TABLE = "TABLE"
    """The whole metadata: any commit that came in between refuses ours."""
    REFERENCES = "REFERENCES"
    """The branches that the commit sets, and nothing else (Iceberg's REST protocol): removing a
    branch, or setting a property, is compared with nothing."""
    NOTHING = "NOTHING"
    """Tables have no branches there, and a commit to one goes to `main`."""


def compares(catalog: CatalogSpec) -> Compares:
    """Return what a catalog compares a commit with."""
    if catalog.type == "GLUE" or native_nessie(catalog):
        return Compares.TABLE
    return Compares.NOTHING if catalog.type == "NESSIE" else Compares.REFERENCES


def loading_problem(catalog: CatalogSpec) -> str | None:
    """Return why no table of a catalog can be loaded, for people; None when they can be."""
    if compares(catalog) is not Compares.NOTHING:
        return None
    return (
        "Nessie's REST interface keeps no branches of a table, and what is written to one is in "
        "`main` at once: no job could be loaded exactly once"
    )
