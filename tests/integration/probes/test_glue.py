"""The probes of Glue: every action a role may lack, and the policies of published guides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeload.checks import CheckStatus
from lakeload_jobs.contract.spec import ParquetSpec
from tests.integration.probes.glue_permissions import (
    ALL_ACTIONS,
    CATALOG,
    DATABASE,
    DENIALS,
    FUNCTION,
    GLUE_PROBES,
    TABLE,
    Denial,
    airbyte_statement,
    allow,
    glue_arn,
    supaflow_statements,
    use,
)
from tests.integration.probes.glue_world import (
    GLUE,
    ask,
    assert_nothing_left,
    problems,
    statuses,
)
from tests.integration.probes.world import World

READS = {"GetDatabase", "GetTable", "GetPartition"}


def test_every_glue_probe_passes_with_all_permissions_and_leaves_nothing(glue_world: World) -> None:
    verdict = ask(glue_world)
    assert problems(verdict) == {}
    assert list(statuses(verdict)) == GLUE_PROBES
    assert_nothing_left(glue_world, verdict)
    # Each call was made for real: none of the questions was asked about nothing.
    assert not [r.detail for r in verdict.results if "not done" in r.detail]
    bodies = [r.body for r in glue_world.proxy.requests if r.operation == "UpdateTable"]
    assert len(bodies) == 1
    assert b'"VersionId": "1"' in bodies[0]
    assert b'"SkipArchive": true' in bodies[0]


@pytest.mark.parametrize("denial", DENIALS, ids=lambda denial: denial.action)
def test_missing_action_fails_its_own_check_only(denial: Denial, glue_world: World) -> None:
    others = [action for action in ALL_ACTIONS if action != denial.action]
    use(glue_world.lake, allow(others, CATALOG, DATABASE, TABLE, FUNCTION))
    verdict = ask(glue_world)
    status = "warning" if denial.warning else "failed"
    skipped = dict.fromkeys(denial.skips, "skipped")
    assert problems(verdict) == {denial.probe: status, **skipped}
    assert verdict.passed is denial.warning
    result = next(r for r in verdict.results if r.failure)
    assert result.failure is not None
    assert (result.failure.code, result.failure.status) == ("AccessDeniedException", 403)
    assert result.probe.action == f"glue:{denial.action}"
    assert result.probe.resource == ", ".join(glue_arn(name) for name in denial.resources)
    assert result.failure.causes
    assert result.failure.hint
    assert_nothing_left(glue_world, verdict)


def test_every_glue_request_has_a_known_denial(glue_world: World) -> None:
    ask(glue_world)
    sent = {r.operation for r in glue_world.proxy.requests if r.service == "glue"}
    assert sent == set(ALL_ACTIONS)


@pytest.mark.parametrize("legacy", [False, True], ids=["current", "legacy"])
def test_a_published_policy_passes(legacy: bool, glue_world: World) -> None:
    use(glue_world.lake, *supaflow_statements(legacy=legacy))
    verdict = ask(glue_world)
    assert verdict.passed
    assert problems(verdict) == {"glue-update-partitions": "warning"}
    assert_nothing_left(glue_world, verdict)


def test_published_policy_without_delete_rights_passes(glue_world: World) -> None:
    """AWS wants functions for DeleteDatabase, which the published policies do not name."""
    use(
        glue_world.lake,
        *supaflow_statements(),
        {"Effect": "Deny", "Action": "glue:DeleteDatabase", "Resource": "*"},
    )
    verdict = ask(glue_world)
    assert verdict.passed
    assert problems(verdict) == {
        "glue-delete-database": "warning",
        "glue-create-database": "skipped",
        "glue-update-partitions": "warning",
    }
    details = {r.probe.name: r.detail for r in verdict.results}
    assert details["glue-create-database"] == "needs `glue-delete-database`"
    assert details["glue-create-table"] == "allowed, but not done: no database"
    assert details["glue-update-table"] == "allowed, but not done: no table"
    assert glue_world.proxy.count("CreateDatabase") == 0
    assert_nothing_left(glue_world, verdict)


def test_glue_actions_on_s3_resources_are_reported_as_ineffective(glue_world: World) -> None:
    use(glue_world.lake, airbyte_statement(glue_world.lake.seeded.bucket))
    verdict = ask(glue_world)
    failed = [result.probe.name for result in verdict.with_status(CheckStatus.FAILED)]
    assert failed == [
        *("glue-get-database", "glue-get-table", "glue-get-partition"),
        *("glue-create-table", "glue-add-partitions"),
    ]
    assert statuses(verdict)["glue"] == "passed"
    assert glue_world.proxy.count("CreateDatabase") == 0


def test_role_without_create_database_gets_a_hint(
    glue_world: World,
) -> None:
    filling = [a for a in ALL_ACTIONS if not a.startswith("Delete") and a != "CreateDatabase"]
    use(glue_world.lake, allow(filling, CATALOG, DATABASE, TABLE))
    verdict = ask(glue_world)
    assert verdict.passed
    assert problems(verdict) == {
        "glue-delete-table": "warning",
        "glue-delete-database": "warning",
        "glue-create-database": "skipped",
    }
    use(
        glue_world.lake,
        allow([*filling, *("DeleteTable", "DeleteDatabase")], CATALOG, DATABASE, TABLE),
    )
    denied = ask(glue_world)
    assert problems(denied) == {"glue-create-database": "failed"}
    failure = denied.with_status(CheckStatus.FAILED)[0].failure
    assert failure is not None
    assert "--skip glue-create-database" in (failure.hint or "")
    assert ask(glue_world, skip=frozenset({"glue-create-database"})).passed


def test_read_only_check_sends_only_the_glue_reads_of_a_load(glue_world: World) -> None:
    use(glue_world.lake, allow(sorted(READS), CATALOG, DATABASE, TABLE))
    verdict = ask(glue_world, read_only=True)
    assert statuses(verdict) == dict.fromkeys(GLUE_PROBES[:4], "passed")
    assert {r.operation for r in glue_world.proxy.requests if r.service == "glue"} == READS


def test_destination_without_glue_sends_no_glue_request(glue_world: World) -> None:
    glue_world.change(parquet=ParquetSpec())
    assert statuses(ask(glue_world)) == {}
    assert not [r for r in glue_world.proxy.requests if r.service == "glue"]


@pytest.mark.parametrize(
    "parquet",
    [replace(GLUE, partition_strategy="NONE"), replace(GLUE, partition_projection=True)],
    ids=["none", "projection"],
)
def test_partition_check_without_registered_partitions_is_skipped(
    parquet: ParquetSpec, glue_world: World
) -> None:
    glue_world.change(parquet=parquet)
    of_partitions = ("GetPartition", "BatchCreatePartition", "BatchUpdatePartition")
    others = [action for action in ALL_ACTIONS if action not in of_partitions]
    use(glue_world.lake, allow(others, CATALOG, DATABASE, TABLE, FUNCTION))
    skipped = dict.fromkeys(d.probe for d in DENIALS if d.action in of_partitions)
    assert problems(ask(glue_world)) == dict.fromkeys(skipped, "skipped")
    assert not [r for r in glue_world.proxy.requests if r.operation in of_partitions]
