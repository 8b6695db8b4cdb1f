"""Each misconfiguration is found by its own probe, named with its code, and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from lakeload.checks import CheckStatus
from lakeload.connections import Connections
from lakeload.probes.connection import NAMES, ConnectionOptions, ConnectionTest, preflight
from lakeload.probes.runner import ConnectionVerdict
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, Refused
from tests.integration.probes.misconfigurations import CASES
from tests.integration.probes.world import Case, World
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake

ALL_PROBES = [
    *("credentials", "identity", "assume-role", "external-id-enforced"),
    *("bucket", "clock", "list", "bucket-owner", "list-uploads"),
    *("delete", "put", "put-again", "get", "job-history"),
    *("abort-upload", "upload", "complete-upload"),
]


@pytest.fixture
def world(
    base_identity: Lake, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[World]:
    with ExitStack() as cleanup:
        yield World(base_identity, fault_proxy, monkeypatch, tmp_path, cleanup)


def test_valid_destination_passes_every_check_and_leaves_nothing(world: World) -> None:
    verdict = _test(world)
    asked = [one for one in verdict.results if one.status is not CheckStatus.SKIPPED]
    assert [(one.probe.name, str(one.status)) for one in asked] == [
        (name, "passed") for name in ALL_PROBES
    ]
    assert [one.probe.name for one in verdict.with_status(CheckStatus.SKIPPED)] == ["encryption"]
    assert verdict.seconds < 10
    _assert_nothing_left(world, verdict)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_misconfiguration_fails_the_check_that_names_it(case: Case, world: World) -> None:
    case.bend(world)
    verdict = _test_until_it_fails(world, case.timeout)
    problem = verdict.results[-1]
    failure = problem.failure
    assert failure is not None
    told = "\n".join([failure.message, *failure.causes, failure.hint or ""])
    assert (problem.probe.name, failure.code) == (case.probe, case.code), told
    assert case.says in told
    assert problem.status is (CheckStatus.WARNING if case.warning else CheckStatus.FAILED)
    assert failure.causes, "a failure names its likely causes"
    assert verdict.seconds < case.timeout + 1
    _assert_nothing_left(world, verdict)


def _first_of_each_probe() -> list[Case]:
    first = {case.probe: case for case in reversed(CASES) if case.probe in NAMES}
    return [first[name] for name in sorted(first)]


@pytest.mark.parametrize("case", _first_of_each_probe(), ids=lambda case: case.name)
def test_preflight_rejects_failures_of_reading_checks(case: Case, world: World) -> None:
    case.bend(world)
    # A secret that is missing on this machine is refused by its own name, not AWS.
    kind = InvalidInput if case.code == InvalidInput.__name__ else Refused
    with pytest.raises(kind) as caught:
        preflight(Connections(world.destination, "test"))
    assert caught.value.hint
    assert "lakeload test-connection" in caught.value.hint
    assert world.proxy.count("PutObject") == world.proxy.count("CreateMultipartUpload") == 0


def test_preflight_of_a_readable_destination_passes(world: World) -> None:
    world.deny("s3:DeleteObject", "s3:ListBucketMultipartUploads")
    preflight(Connections(world.destination, "test"))


def _test(world: World, timeout: float = 15) -> ConnectionVerdict:
    test = ConnectionTest(world.destination, ConnectionOptions(timeout=timeout))
    try:
        for _ in test.run():
            pass
    except LakeloadError as error:
        pytest.fail(f"the test itself failed: {error}")
    return test.verdict()


def _test_until_it_fails(world: World, timeout: float) -> ConnectionVerdict:
    test = ConnectionTest(world.destination, ConnectionOptions(timeout=timeout))
    with closing(test.run()) as results:
        for result in results:
            if result.failure is not None:
                break
    return test.verdict()


def _assert_nothing_left(world: World, verdict: ConnectionVerdict) -> None:
    assert verdict.left_behind == ()
    assert world.lake.keys() == []
    assert world.lake.uploads() == []
