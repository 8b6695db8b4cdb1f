"""What `sync` asks before it starts Spark must not fail where a retry would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.connections import Connections
from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from lakeload.probes.connection import preflight
from tests.servers.fault_proxy import FaultProxy, answer
from tests.servers.ministack import Lake


@pytest.mark.parametrize("operation", ["AssumeRole", "HeadBucket", "ListObjectsV2"])
def test_preflight_two_server_errors_are_not_a_denial(
    base_identity: Lake, fault_proxy: FaultProxy, tmp_path: Path, operation: str
) -> None:
    path = base_identity.write_destination(tmp_path, endpoint=fault_proxy.endpoint)
    destination = destination_spec(load_destination(path, base_identity.environment))
    rule = fault_proxy.on(operation, answer(500, "InternalError"), times=2)
    preflight(Connections(destination, "test"))
    assert rule.hits > 2
