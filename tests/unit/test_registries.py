"""Every table that is asked by a format, a catalog or an interface has an entry for each.

mypy does not look for missing keys: a further member would be found by its first user.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from typing import get_args

import pytest

from lakeload.documents.destination import Destination
from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.iceberg_rules import CATALOG_SETTINGS
from lakeload.probes import connection as catalogs
from lakeload.probes.causes import known_causes
from lakeload_jobs.contract.spec import CatalogType, TableFormat
from lakeload_jobs.contract.traits import CATALOGS, FORMATS, Interface
from lakeload_jobs.formats.iceberg.catalogs import opening
from lakeload_jobs.formats.iceberg.load import catalog_settings


@pytest.mark.parametrize("registry", [FORMATS, FORMAT_RULES])
def test_every_format_has_an_entry(registry: Collection[str]) -> None:
    assert set(registry) == set(get_args(TableFormat))


@pytest.mark.parametrize("registry", [CATALOGS, CATALOG_SETTINGS, known_causes().catalog_types])
def test_every_type_of_catalog_has_an_entry(registry: Collection[str]) -> None:
    assert set(registry) == set(get_args(CatalogType))


@pytest.mark.parametrize(
    "registry",
    [catalogs._CATALOGS, opening._OPENERS, catalog_settings._SETTINGS],
)
def test_every_interface_of_a_catalog_has_an_entry(registry: Collection[Interface]) -> None:
    assert set(registry) == set(Interface)


def test_blocks_of_formats_are_settings_of_a_destination() -> None:
    blocks = [rules.BLOCK for rules in FORMAT_RULES.values() if rules.BLOCK]
    assert len(set(blocks)) == len(blocks)
    assert set(blocks) <= set(Destination.model_fields)


def test_init_has_a_template_for_the_block_of_every_format() -> None:
    templates = files("lakeload.init")
    blocks = [rules.BLOCK for rules in FORMAT_RULES.values() if rules.BLOCK]
    assert all((templates / f"{block}.yml.jinja").is_file() for block in blocks)
