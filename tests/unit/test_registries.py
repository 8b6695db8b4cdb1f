"""Every table that is asked by a format, a catalog or an interface has an entry for each.

mypy does not look for missing keys: a further member would be found by its first user.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib.resources import files
from typing import get_args

import pytest

from lakeload.data import read_toml
from lakeload.documents.destination import Destination
from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.iceberg_rules import CATALOG_SETTINGS
from lakeload.probes.causes import known_causes
from lakeload.probes.connection import ConnectionOptions, _catalog_checks
from lakeload.probes.glue import ProbeIcebergTables
from lakeload.probes.iceberg import ProbeCatalog, ProbeNessie
from lakeload.probes.s3 import ProbeBucket, ProbeObjects
from lakeload.probes.sts import ProbeIdentity
from lakeload.probes.webhook import ProbeWebhook
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CatalogType,
    DestinationSpec,
    IcebergSpec,
    TableFormat,
)
from lakeload_jobs.contract.traits import CATALOGS, FORMATS, Interface, catalog_traits
from lakeload_jobs.formats.iceberg.catalogs import opening
from lakeload_jobs.formats.iceberg.catalogs.errors import Said
from lakeload_jobs.formats.iceberg.load import catalog_settings


@pytest.mark.parametrize("registry", [FORMATS, FORMAT_RULES])
def test_every_format_has_an_entry(registry: Collection[str]) -> None:
    assert set(registry) == set(get_args(TableFormat))


@pytest.mark.parametrize("registry", [CATALOGS, CATALOG_SETTINGS, known_causes().catalog_types])
def test_every_type_of_catalog_has_an_entry(registry: Collection[str]) -> None:
    assert set(registry) == set(get_args(CatalogType))


@pytest.mark.parametrize("registry", [catalog_settings._SETTINGS, opening._OPENED_BY])
def test_every_interface_of_a_catalog_has_an_entry(registry: Collection[Interface]) -> None:
    assert set(registry) == set(Interface)


def test_each_catalog_is_checked_through_its_interface() -> None:
    checks = {
        Interface.GLUE: ProbeIcebergTables,
        Interface.REST: ProbeCatalog,
        Interface.NESSIE: ProbeNessie,
    }
    catalogs = [CatalogSpec(type_) for type_ in get_args(CatalogType)]
    for catalog in (*catalogs, CatalogSpec("NESSIE", api="REST")):
        traits = catalog_traits(catalog)
        iceberg = IcebergSpec(catalog=catalog)
        destination = DestinationSpec(
            "my-data-lake", "us-east-1", table_format="ICEBERG", iceberg=iceberg
        )
        found = _catalog_checks(destination, AwsSession(destination), ConnectionOptions())
        assert type(found) is checks[traits.interface]
        assert traits.in_glue == (traits.interface is Interface.GLUE)


def test_blocks_of_formats_are_settings_of_a_destination() -> None:
    blocks = [rules.BLOCK for rules in FORMAT_RULES.values() if rules.BLOCK]
    assert len(set(blocks)) == len(blocks)
    assert set(blocks) <= set(Destination.model_fields)


def test_init_has_a_template_for_the_block_of_every_format() -> None:
    templates = files("lakeload.init")
    blocks = [rules.BLOCK for rules in FORMAT_RULES.values() if rules.BLOCK]
    assert all((templates / f"{block}.yml.jinja").is_file() for block in blocks)


_OWNERS = {
    "sts": ProbeIdentity,
    "clock": ProbeIdentity,
    "bucket": ProbeBucket,
    "objects": ProbeObjects,
    "glue": ProbeIcebergTables,
    "rest": ProbeCatalog,
    "nessie": ProbeNessie,
    "webhook": ProbeWebhook,
}


def test_every_check_calls_a_method_and_needs_checks_that_there_are() -> None:
    rows = read_toml("lakeload.probes", "checks.toml")
    assert set(rows) == set(_OWNERS)
    names = {row["name"] for table in rows.values() for row in table}
    for table, owner in _OWNERS.items():
        for row in rows[table]:
            assert callable(getattr(owner, row["call"])), row
            assert set(row.get("needs", ())) <= names, row


def test_every_text_of_a_catalog_and_every_code_of_another_name_has_causes() -> None:
    known = known_causes()
    assert set(known.said) == {said.name for said in Said}
    assert set(known.same) <= set(known.aws)
    assert not {code for codes in known.same.values() for code in codes} & set(known.aws)


def test_every_sign_in_a_log_has_an_exit_code() -> None:
    for sign in read_toml("lakeload.launch", "log_signs.toml")["sign"]:
        assert re.compile(sign["pattern"])
        assert ExitCode(sign["exit_code"]) is not ExitCode.OK
        assert sign["message"]
