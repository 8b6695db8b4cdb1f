"""Readers in Spark open the catalog as loads do, but for their identity."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeload.policy.recipes import RecipeRequest, recipes
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CatalogSpec, CredentialsSpec, DestinationSpec
from lakeload_jobs.formats.iceberg.load.catalog_settings import catalog_settings
from tests.unit.policy.iceberg_cases import AUDITED, NATIVE, NOBODY, SIGNED
from tests.unit.policy.recipe_cases import ICEBERG, NOW, OPEN_CATALOG, REST, with_catalog

DESTINATIONS = {
    "GLUE": ICEBERG,
    "GLUE of another account": with_catalog(CatalogSpec(glue_id="123456789012")),
    "REST": with_catalog(REST),
    "REST, signed": SIGNED,
    "REST, nobody": NOBODY,
    "SNOWFLAKE_OPEN_CATALOG": with_catalog(OPEN_CATALOG),
    "NESSIE": with_catalog(
        CatalogSpec("NESSIE", uri="https://n", api="REST", token=SecretReference("env", "T"))
    ),
    "NESSIE, native": NATIVE,
    "another branch": AUDITED,
}
SECRETS = ("credential", "token", "authentication.token", "header.X-Tenant")
WRITERS = (
    *("cache-enabled", "use-nullable-query-schema", "s3.path-style-access", "io-impl", "scope"),
    *("rest.client.connection-timeout-ms", "rest.client.socket-timeout-ms", "rest.auth.type"),
)
"""What only who commits needs, or what is the default when it is left out."""


def reading(destination: DestinationSpec) -> dict[str, str]:
    """Return the catalog's properties in the file for Spark."""
    (file,) = recipes(destination, "spark", RecipeRequest(NOW))
    given = dict(line.split("=", 1) for line in file.text.splitlines())
    return {key: value for key, value in given.items() if ".catalog.lake" in key}


@pytest.mark.parametrize("name", DESTINATIONS)
def test_reader_settings_equal_load_settings(name: str) -> None:
    destination = replace(DESTINATIONS[name], credentials=CredentialsSpec())
    readers, loads = reading(destination), catalog_settings(destination)
    start = "spark.sql.catalog.lake."
    assert {key: loads[key] for key in readers if key in loads} == {
        key: value for key, value in readers.items() if key in loads
    }
    assert {key.removeprefix(start) for key in set(readers) - set(loads)} <= set(SECRETS)
    assert {key.removeprefix(start) for key in set(loads) - set(readers)} <= set(WRITERS)
