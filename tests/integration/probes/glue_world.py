"""A destination that uses Glue, its probes, and what they leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakeload.checks import CheckStatus
from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.runner import ConnectionVerdict
from lakeload_jobs.contract.spec import ParquetSpec
from tests.integration.probes.glue_permissions import GLUE_PROBES
from tests.integration.probes.world import World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, Response
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake

GLUE = ParquetSpec(update_glue_catalog=True)
ABOUT_GLUE = frozenset({"credentials", "assume-role", "glue-catalog", *GLUE_PROBES})
"""What these tests ask: the other probes have tests of their own, and take their time."""


def know_every_call(proxy: FaultProxy) -> None:
    """Answer the call that the emulator allows or denies, and does not know."""

    def stand_in(request: Request, forward: Forward) -> Response:
        response = forward(request)
        unknown = b"InvalidAction" in response.body
        return replace(response, status=200, body=b"{}") if unknown else response

    proxy.on("GetCatalog", stand_in)


def probe_databases(lake: Lake) -> list[str]:
    """Return the names of databases that tests of the connection made."""
    found = glue_of(lake).get_databases()["DatabaseList"]
    return [database["Name"] for database in found if "lakeload_probe" in database["Name"]]


def ask(world: World, **options: Any) -> ConnectionVerdict:
    """Run the Glue probes, and what they need, to the end."""
    chosen = {"timeout": 20, "only": ABOUT_GLUE, **options}
    test = ConnectionTest(world.destination, ConnectionOptions(**chosen))
    for _ in test.run():
        pass
    return test.verdict()


def statuses(verdict: ConnectionVerdict) -> dict[str, str]:
    """Return what became of each Glue probe."""
    return {
        result.probe.name: str(result.status)
        for result in verdict.results
        if result.probe.name.startswith("glue")
    }


def problems(verdict: ConnectionVerdict) -> dict[str, str]:
    """Return what did not pass, of all probes."""
    return {
        result.probe.name: str(result.status)
        for result in verdict.results
        if result.status is not CheckStatus.PASSED
    }


def assert_nothing_left(world: World, verdict: ConnectionVerdict) -> None:
    """Nothing of the test is in Glue, and nothing is told to be."""
    assert verdict.left_behind == ()
    assert probe_databases(world.lake) == []
