"""What is known of formats and catalogs, and what follows from a catalog's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CatalogType,
    DestinationSpec,
    IcebergSpec,
    SigV4Spec,
    TableFormat,
)
from lakeload_jobs.contract.traits import (
    CATALOGS,
    FORMATS,
    Compares,
    Interface,
    catalog_of,
    catalog_traits,
    format_of,
    needs_aws_identity,
    vends,
)

DESTINATION = DestinationSpec(bucket="b", region="eu-central-1")
REST = CatalogSpec(type="REST", uri="https://catalog.example.com")


def test_every_format_and_every_catalog_has_one_entry_under_its_own_name() -> None:
    assert {name: traits.name for name, traits in FORMATS.items()} == {
        name: name for name in get_args(TableFormat)
    }
    assert {name: traits.type for name, traits in CATALOGS.items()} == {
        name: name for name in get_args(CatalogType)
    }


@pytest.mark.parametrize("name", get_args(TableFormat))
def test_a_format_commits_in_a_catalog_or_in_the_store(name: TableFormat) -> None:
    traits = FORMATS[name]
    assert traits.has_catalog is not traits.commits_in_store


def test_the_catalog_of_another_format_does_not_count() -> None:
    catalog = IcebergSpec(catalog=REST)
    assert catalog_of(replace(DESTINATION, iceberg=catalog)) is None
    iceberg = replace(DESTINATION, iceberg=catalog, table_format="ICEBERG")
    assert catalog_of(iceberg) is REST
    assert format_of(iceberg) is FORMATS["ICEBERG"]


def test_the_interface_decides_what_nessie_compares() -> None:
    own = catalog_traits(CatalogSpec(type="NESSIE"))
    rest = catalog_traits(CatalogSpec(type="NESSIE", api="REST"))
    assert (own.interface, own.compares) == (Interface.NESSIE, Compares.TABLE)
    assert (rest.interface, rest.compares) == (Interface.REST, Compares.NOTHING)
    assert rest == replace(own, interface=Interface.REST, compares=Compares.NOTHING)


@pytest.mark.parametrize("name", get_args(CatalogType))
def test_a_catalog_vends_only_where_it_chooses_the_place_of_tables(name: CatalogType) -> None:
    asked = CatalogSpec(type=name, access_delegation="VENDED_CREDENTIALS")
    assert vends(asked) is not CATALOGS[name].located
    assert not vends(replace(asked, access_delegation="NONE"))


def test_a_catalog_of_aws_vends_to_the_identity_that_signs() -> None:
    """Files are then written with vended keys, and still the load needs an identity of its own."""
    signed = replace(REST, sigv4=SigV4Spec())
    assert (vends(REST), needs_aws_identity(REST)) == (True, False)
    assert (vends(signed), needs_aws_identity(signed)) == (True, True)


@pytest.mark.parametrize("signed", [None, SigV4Spec()])
def test_without_vended_credentials_files_need_an_identity(signed: SigV4Spec | None) -> None:
    plain = replace(REST, sigv4=signed, access_delegation="NONE")
    assert not vends(plain)
    assert needs_aws_identity(plain)
