"""What catalogs are relied on for. tests/integration/formats/iceberg/proof asks them."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.contract.traits import Compares, catalog_traits
from lakeload_jobs.formats.iceberg.rules.catalogs import loading_problem


@pytest.mark.parametrize(
    ("catalog", "expected"),
    [
        (CatalogSpec(type="GLUE"), Compares.TABLE),
        (CatalogSpec(type="REST"), Compares.REFERENCES),
        (CatalogSpec(type="SNOWFLAKE_OPEN_CATALOG"), Compares.REFERENCES),
        (CatalogSpec(type="NESSIE"), Compares.TABLE),
        (CatalogSpec(type="NESSIE", api="REST"), Compares.NOTHING),
    ],
)
def test_commit_validation_of_each_catalog_is_as_observed(
    catalog: CatalogSpec, expected: Compares
) -> None:
    assert catalog_traits(catalog).compares is expected


def test_only_a_catalog_without_commit_validation_is_rejected() -> None:
    assert "not keep branches" in (loading_problem(CatalogSpec(type="NESSIE", api="REST")) or "")
    assert loading_problem(CatalogSpec(type="NESSIE")) is None
    assert loading_problem(CatalogSpec(type="REST")) is None
