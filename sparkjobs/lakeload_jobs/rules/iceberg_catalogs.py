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


NOT_COMPARED = "CommitNotCompared"
"""The code of a catalog that took a commit it has to refuse."""


def took_false_commit(target: str, branch: str) -> tuple[str, str]:
    """Return message and hint of a catalog that compares nothing, though its kind does.

    It was sent a commit that asserts what is not so of a branch (docs/decisions/0107).
    """
    return (
        f"it answered with success to a commit to `{target}` that it has to refuse, for the commit "
        f"asserts what is not so of the branch `{branch}`: of two commits at once one would take "
        "rows away, or bring them twice, and nobody would be told",
        "use a catalog that checks the `requirements` of a commit, as Iceberg's REST protocol asks "
        "for: another version of this one, or look for a proxy before it that changes requests",
    )


def loading_problem(catalog: CatalogSpec) -> str | None:
    """Return why no table of a catalog can be loaded, for people; None when they can be."""
    if compares(catalog) is not Compares.NOTHING:
        return None
    return (
        "Nessie's REST interface keeps no branches of a table, and what is written to one is in "
        "`main` at once: no job could be loaded exactly once"
    )
