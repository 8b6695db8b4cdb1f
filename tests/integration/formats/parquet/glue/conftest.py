"""Loaders of one test, each a process of its own, with a database that ends with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.formats.parquet.glue.loader import Loader
from tests.servers.fault_proxy import FaultProxy
from tests.servers.glue import allow_glue, glue_of
from tests.servers.ministack import Lake


@pytest.fixture
def glue_lake(base_identity: Lake) -> Iterator[Lake]:
    """A lake whose role may use Glue, without any database of ours yet."""
    allow_glue(base_identity)
    yield base_identity
    glue = glue_of(base_identity)
    for database in glue.get_databases()["DatabaseList"]:
        if database["Name"].startswith("supaflow"):
            glue.delete_database(Name=database["Name"])


@pytest.fixture
def loader(glue_lake: Lake) -> Loader:
    """A process that loads `orders` by the hour."""
    return Loader(glue_lake)


@pytest.fixture
def proxied(glue_lake: Lake, fault_proxy: FaultProxy) -> Loader:
    """The same through the fault proxy."""
    return Loader(glue_lake, fault_proxy.endpoint)
