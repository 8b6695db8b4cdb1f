"""What catalogs enforce of a commit, as it was seen of each (docs/protocol-iceberg.md).

The publish of a job rests on a compare-and-set: a commit that was overtaken is refused whole.
tests/integration/iceberg/proof asks each catalog for it.
"""

from __future__ import annotations

from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.contract.traits import Compares, catalog_traits

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
    if catalog_traits(catalog).compares is not Compares.NOTHING:
        return None
    return (
        "Nessie's REST interface keeps no branches of a table, and what is written to one is in "
        "`main` at once: no job could be loaded exactly once"
    )
