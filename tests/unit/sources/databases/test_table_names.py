"""Which table a name that the database does not have was meant to be."""

from __future__ import annotations

import pytest

from lakeload_jobs.sources.databases.columns import CatalogTable
from lakeload_jobs.sources.databases.table_names import table_meant

TABLES = tuple(
    CatalogTable(schema, name, "table")
    for schema, name in (
        ("public", "orders"),
        ("public", "Customers"),
        ("sales", "order"),
        ("sales", "a.b"),
        ("archive", "invoices"),
    )
)


@pytest.mark.parametrize(
    ("schema", "table", "meant"),
    [
        ("public", "ordrs", "public.orders"),
        ("public", "customers", "public.Customers"),
        ("public", "order", "sales.order"),
        ("public", "invoices", "archive.invoices"),
        ("publik", "orders", "public.orders"),
        ("public", "a.b", 'sales."a.b"'),
        ("sale", "ordr", "sales.order"),
        ("", "invoice", "archive.invoices"),
        ("public", "zebra", None),
        ("Public", "zebra", None),
        ("Public", "parent", None),
    ],
)
def test_the_nearest_table_is_written_as_the_setting_has_it(
    schema: str, table: str, meant: str | None
) -> None:
    assert table_meant(schema, table, TABLES) == (meant and f"did you mean `{meant}`?")
