"""A destination that uses Glue, with everything allowed, behind the fault proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.probes.glue_permissions import (
    ALL_ACTIONS,
    CATALOG,
    DATABASE,
    FUNCTION,
    PREFIX,
    TABLE,
    allow,
    use,
)
from tests.integration.probes.glue_world import GLUE, know_every_call, probe_databases
from tests.integration.probes.world import World
from tests.servers.fault_proxy import FaultProxy
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake


@pytest.fixture
def glue_world(
    base_identity: Lake, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[World]:
    """The world of misconfigurations with Glue, its own role and nothing wrong."""
    with ExitStack() as cleanup:
        world = World(base_identity, fault_proxy, monkeypatch, tmp_path, cleanup)
        world.change(parquet=GLUE, glue_database_prefix=PREFIX)
        world.endpoints(glue=fault_proxy.endpoint)
        know_every_call(fault_proxy)
        use(base_identity, allow(ALL_ACTIONS, CATALOG, DATABASE, TABLE, FUNCTION))
        yield world
        for name in probe_databases(base_identity):
            glue_of(base_identity).delete_database(Name=name)
