"""policy ⇔ probes ⇔ load: each grants, asks and sends the same, shown by taking actions away."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lakeload.probes.runner import Probe
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import RejectLimit
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import schema_name
from tests.integration.jobs.conftest import Job
from tests.integration.permissions.shapes import SHAPES, SOURCE, actions, example_policies
from tests.integration.permissions.world import World, dependents, problems, skipped, without

NOT_ENFORCED: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("not_enforced.toml").read_text(encoding="utf-8")
)["actions"]

TAKEN_FROM = {
    "prefix": "",
    # The whole bucket is listed, without a condition.
    "no-prefix": "s3:List",
    "glue": "glue:",
    "kms": "kms:",
    # The key is known by its alias alone.
    "kms-alias-glue": "kms:",
    # Its catalog asks in other ways.
    "iceberg-glue": "",
}
"""Shapes, with how the actions begin that are taken from each. The same checks ask for all others,
as they do in a shape before, and the other shapes have the same actions on resources of other
names."""
EVERY_ACTION = [
    pytest.param(name, action, id=f"{name}-{action}")
    for name, begin in TAKEN_FROM.items()
    for action in actions(example_policies(SHAPES[name]))
    if action.startswith(begin)
]


ICEBERG_LOADS = {
    *("s3:GetObject", "s3:PutObject"),
    *("glue:GetDatabase", "glue:CreateDatabase"),
    *("glue:GetTable", "glue:CreateTable", "glue:UpdateTable"),
}
"""What loads ask for that need no Java."""


@pytest.mark.parametrize("world", SHAPES, indirect=True)
def test_generated_policy_grants_exactly_the_actions_of_checks_loads_and_recovery(
    world: World, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    verdict = world.record("probes", world.ask)
    assert (problems(verdict), skipped(verdict)) == ({}, set())
    assert verdict.left_behind == ()
    assert [r.detail for r in verdict.results if "not done" in r.detail] == []
    if world.shape.loads:
        job = Job(request.getfixturevalue("spark"), world.lake, tmp_path)
        for text in ("ID,Name\n1,a\n", "ID,Name,Added\n2,b,x\n"):
            result = world.record("load", partial(_load, world, job, text))
            assert (result.status, result.error, result.warnings) == ("LOADED", None, ())
        text = "ID,Name,Added\n3,c,z\n4,d,e,f\n"
        bad = world.record("quarantine", partial(_load, world, job, text))
        assert (bad.status, bad.error, bad.rejected) == ("LOADED", None, 1)
        assert len(bad.warnings) == 1
        # The side table is stored below the same prefix, and in the same database.
        assert world.seen["quarantine"] <= world.seen["probes"]
        _leave_an_upload(world)
        for table in world.record("recover", world.recover):
            assert (table.status, table.errors, table.warnings) == ("RECOVERED", (), ())
        assert world.lake.uploads() == []
    if world.destination.table_format == "ICEBERG":
        job = Job(request.getfixturevalue("spark"), world.lake, tmp_path)
        for text in ("ID,Name\n1,a\n", "ID,Name,Added\n2,b,x\n"):
            result = world.record("load", partial(_load, world, job, text))
            assert (result.status, result.error, result.writer) == ("LOADED", None, "direct")
        assert world.seen["load"] == ICEBERG_LOADS
    granted = set(actions(world.policies))
    # S3 asks for the key in the caller's name: no request of ours says so.
    direct = {action for action in granted if not action.startswith("kms:")}
    assert set().union(*world.seen.values()) == direct
    assert world.seen.get("load", set()) <= granted


def _load(world: World, job: Job, text: str) -> TableResult:
    """Load a file of one row, from the bucket itself where the shape says so."""
    name = f"{len(text)}.csv"
    path = job.file(name, text)
    if world.shape.source:
        bucket, key = world.destination.bucket, SOURCE.replace("*.csv", name)
        world.lake.server.s3.put_object(Bucket=bucket, Key=key, Body=text.encode())
        path = f"s3://{bucket}/{key}"
    table = replace(job.table(path), schema=_schema(world))
    return job.load_one(
        table,
        destination=world.destination,
        on_bad_value="QUARANTINE",
        max_rejected=RejectLimit(percent=100),
    )


def _schema(world: World) -> str:
    return schema_name(
        glue_prefix=world.destination.glue_database_prefix,
        destination_prefix=f"shop_{world.destination.bucket[-6:]}",  # Glue is all shapes' own
        source_schema=None,
        lower=world.destination.parquet.update_glue_catalog,
    )


def _leave_an_upload(world: World) -> None:
    """Leave what a killed run leaves."""
    location = TableLocation(world.destination.prefix, _schema(world), "orders")
    key = f"{location.data_path}2026/11/21/10/part-dead-00000.gzip.parquet"
    world.lake.server.s3.create_multipart_upload(Bucket=world.destination.bucket, Key=key)


@pytest.mark.parametrize(("world", "action"), EVERY_ACTION, indirect=["world"])
def test_removed_action_fails_its_own_check(world: World, action: str) -> None:
    world.attach(without(world.policies, action))
    verdict = world.ask()
    failed = problems(verdict)
    if action in NOT_ENFORCED:
        assert failed == {}, f"the emulator enforces {action}: take it off not_enforced.toml"
        return
    assert failed, f"no probe misses {action}"
    results = [one for one in verdict.results if one.failure is not None]
    assert {one.failure.denied for one in results if one.failure} == {action}
    # A catalog's client reads and writes metadata as well: such a probe names what it was denied.
    own = [one for one in results if action in _asked(one.probe)]
    assert own
    assert all(one in own or world.destination.table_format == "ICEBERG" for one in results)
    assert skipped(verdict) == dependents(verdict, failed)
    assert verdict.left_behind == ()


def _asked(probe: Probe) -> set[str]:
    return {probe.action, *(permission.action for permission in probe.also)}


def test_every_granted_action_has_a_removal_test() -> None:
    granted = {action for shape in SHAPES.values() for action in actions(example_policies(shape))}
    taken = {param.values[1] for param in EVERY_ACTION}
    assert taken == granted


def test_actions_not_enforced_by_the_emulator_are_granted() -> None:
    granted = {action for shape in SHAPES.values() for action in actions(example_policies(shape))}
    assert set(NOT_ENFORCED) <= granted
    assert all(NOT_ENFORCED.values()), "each with its reason"
