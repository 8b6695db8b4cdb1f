"""Datasets of a lake, as lineage names them."""

from __future__ import annotations

from lakeload.policy.iam import catalog_owner, uses_glue
from lakeload.policy.model import place
from lakeload.sources.datasets import Alias, Dataset, dataset_of_url
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import catalog_of, format_of
from lakeload_jobs.core.layout import TableLocation


def lake_dataset(
    destination: DestinationSpec, table: TableSpec, location: str | None
) -> Dataset | None:
    """Return the table as a dataset: its folder, and its name in the catalog as an alias.

    `location` is where a table lies whose catalog decides that; None: not known, so that the
    table has no name yet.
    """
    catalog = catalog_of(destination)
    if catalog is None:
        location = TableLocation(destination.prefix, table.schema, table.table).url(
            destination.bucket
        )
    if location is None:
        return None
    storage = None if catalog is None else format_of(destination).name.lower()
    return dataset_of_url(location, _aliases(destination, table), storage)


def _aliases(destination: DestinationSpec, table: TableSpec) -> tuple[Alias, ...]:
    """Return the names of the table in catalogs. A table of Glue has the account in its name, and
    none where no setting says whose catalog it is."""
    catalog = catalog_of(destination)
    found = []
    owner = place(destination, catalog_owner(destination))
    if uses_glue(destination) and owner.account != "*":
        namespace = f"arn:{owner.partition}:glue:{owner.region}:{owner.account}"
        found.append(Alias(namespace, f"table/{table.schema}/{table.table}"))
    if catalog is not None and catalog.uri is not None:
        found.append(Alias(catalog.uri, table.target))
    return tuple(found)
