"""The probes of Glue when something else is wrong, and what they leave whatever happens."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakeload.checks import CheckStatus
from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from tests.integration.commands.test_connection import _run
from tests.integration.probes.glue_permissions import (
    CATALOG,
    DATABASE,
    PREFIX,
    TABLE,
    allow,
    glue_arn,
    use,
)
from tests.integration.probes.glue_world import (
    ask,
    assert_nothing_left,
    probe_databases,
    problems,
)
from tests.integration.probes.world import Case, World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import (
    Action,
    Forward,
    Response,
    answer,
    delay,
    drop_answer,
    drop_request,
)


def _case(name: str, bend: Any, probe: str, code: str, says: str, **more: Any) -> Case:
    return Case(name, bend, probe, code, says, **{"timeout": 20, **more})


def _blank_prefix(world: World) -> None:
    world.change(glue_database_prefix="")


def _say(status: int, code: str, text: str = "injected") -> Any:
    action: Action = answer(status, code, text)
    return lambda world: world.proxy.on("GetDatabase", action)


CASES = [
    _case(
        "databases of another prefix",
        lambda world: world.change(glue_database_prefix="analytics"),
        *("glue-get-database", "AccessDeniedException", "of another prefix"),
    ),
    _case(
        "a policy for certain databases and no prefix",
        _blank_prefix,
        *("glue-get-database", "AccessDeniedException", "set the prefix, or use --skip"),
    ),
    _case(
        "nobody listens at the Glue endpoint",
        lambda world: world.endpoints(glue="http://127.0.0.1:9"),
        *("glue", "EndpointConnectionError", "the region does not exist"),
    ),
    _case(
        "credentials that expired before Glue",
        _say(400, "ExpiredTokenException"),
        *("glue", "ExpiredTokenException", "sign in again"),
    ),
    _case(
        "clock that is wrong, as Glue says it",
        _say(400, "InvalidSignatureException", "Signature expired: 1 is now earlier than 2"),
        *("glue", "InvalidSignatureException", "compare `date -u`"),
    ),
    _case(
        "Glue that is busy all the time",
        _say(400, "ThrottlingException"),
        *("glue", "ThrottlingException", "busy"),
    ),
    _case(
        "encrypted catalog without its key",
        lambda world: world.proxy.on("CreateTable", answer(400, "GlueEncryptionException")),
        *("glue-create-table", "GlueEncryptionException", "kms:Decrypt"),
    ),
    _case(
        "quota of databases used up",
        lambda world: world.proxy.on(
            "CreateDatabase", answer(400, "ResourceNumberLimitExceededException")
        ),
        *("glue-create-database", "ResourceNumberLimitExceededException", "quota"),
    ),
    _case(
        "partition that Glue does not make",
        lambda world: world.proxy.on("BatchCreatePartition", _partition_problem),
        *("glue-add-partitions", "InvalidInputException", "did not register a partition"),
    ),
    _case(
        "partition that Glue does not change",
        lambda world: world.proxy.on("BatchUpdatePartition", _partition_problem),
        *("glue-update-partitions", "InvalidInputException", "did not change a partition"),
        warning=True,
    ),
    _case(
        "database whose making is never answered",
        lambda world: world.proxy.on("CreateDatabase", drop_answer),
        *("glue-create-database", "ConnectionClosedError", "cuts the connection"),
    ),
]


def _partition_problem(request: Request, forward: Forward) -> Response:
    detail = '{"ErrorCode": "InvalidInputException", "ErrorMessage": "no"}'
    body = f'{{"Errors": [{{"PartitionValues": ["probe"], "ErrorDetail": {detail}}}]}}'
    return replace(forward(request), body=body.encode())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_glue_misconfiguration_fails_the_check_that_names_it(case: Case, glue_world: World) -> None:
    case.bend(glue_world)
    verdict = ask(glue_world, timeout=case.timeout)
    problem = next(result for result in verdict.results if result.failure is not None)
    failure = problem.failure
    assert failure is not None
    told = "\n".join([failure.message, *failure.causes, failure.hint or ""])
    assert (problem.probe.name, failure.code) == (case.probe, case.code), told
    assert case.says in told
    assert problem.status is (CheckStatus.WARNING if case.warning else CheckStatus.FAILED)
    assert verdict.seconds < case.timeout + 1
    assert_nothing_left(glue_world, verdict)


def test_glue_response_lost_once_is_no_failure(glue_world: World) -> None:
    for operation in ("CreateDatabase", "CreateTable", "UpdateTable", "BatchCreatePartition"):
        glue_world.proxy.on(operation, drop_answer, times=1)
    verdict = ask(glue_world)
    assert problems(verdict) == {}
    assert_nothing_left(glue_world, verdict)


def test_glue_leftover_is_named_with_the_command_that_removes_it(glue_world: World) -> None:
    glue_world.proxy.on("DeleteDatabase", answer(500, "InternalServiceException"), skip=1)
    verdict = ask(glue_world)
    (name,) = probe_databases(glue_world.lake)
    assert re.fullmatch(r"supaflow_lakeload_probe_[0-9a-f]{12}", name)
    (told,) = verdict.left_behind
    assert f"`aws glue delete-database --name {name} --region us-east-1`" in told


def test_glue_database_with_unknown_creation_is_reported(glue_world: World) -> None:
    glue_world.proxy.on("CreateDatabase", drop_request)
    (told,) = ask(glue_world).left_behind
    assert "which may have been created (`aws glue delete-database" in told


def test_glue_check_that_times_out_removes_its_objects(glue_world: World) -> None:
    test = ConnectionTest(glue_world.destination, ConnectionOptions(timeout=15))
    with closing(test.run()) as results:
        for result in results:
            if result.probe.name == "glue-create-table":
                assert probe_databases(glue_world.lake)
                break
    assert_nothing_left(glue_world, test.verdict())


def test_two_concurrent_connection_tests_do_not_collide(glue_world: World) -> None:
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda _: ask(glue_world), range(2)))
    assert [problems(verdict) for verdict in verdicts] == [{}, {}]
    made = [r.body for r in glue_world.proxy.requests if r.operation == "CreateDatabase"]
    assert len(set(made)) == 2
    assert_nothing_left(glue_world, verdicts[0])


def _settings(glue_world: World) -> dict[str, Any]:
    place = glue_world.proxy.endpoint
    return {
        "endpoints": {"s3": place, "sts": place, "glue": place},
        "parquet": {"update_glue_catalog": True},
        "glue_database_prefix": PREFIX,
    }


def test_connection_test_prints_missing_glue_permissions(glue_world: World, tmp_path: Path) -> None:
    use(glue_world.lake, allow(["GetDatabase", "GetTable"], CATALOG, DATABASE, TABLE))
    file = glue_world.lake.write_destination(tmp_path, **_settings(glue_world))
    done = _run(file)
    assert (done.returncode, done.stderr) == (3, "")
    # Wherever the lines are broken.
    told = " ".join(done.stdout.split())
    assert f"IAM action: glue:CreateTable on {glue_arn(TABLE)}, " in told
    assert "hint: allow `glue:CreateTable` on all of these resources" in told
    assert "connection failed at glue-get-partition" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_connection_test_interrupted_removes_its_objects(
    number: signal.Signals, glue_world: World, tmp_path: Path
) -> None:
    arrived = threading.Event()

    def slowly(request: Request, forward: Forward) -> Response:
        arrived.set()
        return delay(1)(request, forward)

    glue_world.proxy.on("CreateDatabase", slowly)
    file = glue_world.lake.write_destination(tmp_path, **_settings(glue_world))
    program = [sys.executable, "-m", "lakeload", "test-connection", str(file)]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert arrived.wait(60)
        run.send_signal(number)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "left behind" not in out + err
    assert glue_world.proxy.count("CreateDatabase") == 1
    assert probe_databases(glue_world.lake) == []
