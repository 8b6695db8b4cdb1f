"""The probes of Glue as the catalog of Iceberg tables: with metadata files, and no partitions."""

from __future__ import annotations

import pytest

from lakeload.checks import CheckStatus
from lakeload.demo.aws import ACCOUNT_ID
from lakeload_jobs.contract.spec import CatalogSpec, IcebergSpec
from tests.integration.probes.glue_permissions import (
    CATALOG,
    DATABASE,
    DENIALS,
    FUNCTION,
    TABLE,
    Denial,
    allow,
    glue_arn,
    supaflow_statements,
    use,
)
from tests.integration.probes.glue_world import (
    ABOUT_GLUE,
    ask,
    assert_nothing_left,
    probe_databases,
    problems,
    statuses,
)
from tests.integration.probes.world import World
from tests.servers.fault_proxy import answer

_PARTITIONS = ("GetPartition", "BatchCreatePartition", "BatchUpdatePartition")
ICEBERG = [
    Denial("GetCatalog", "glue-catalog", (CATALOG,), warning=True),
    Denial("GetDatabase", "glue-get-database", (DATABASE, CATALOG), skips=("glue-create-table",)),
    *(denial for denial in DENIALS if denial.action not in (*_PARTITIONS, "GetDatabase")),
]
ACTIONS = [denial.action for denial in ICEBERG]
PROBES = ["glue", *(denial.probe for denial in ICEBERG)]
ASKED = frozenset({*ABOUT_GLUE, "bucket", "delete"})


@pytest.fixture
def iceberg_world(glue_world: World) -> World:
    """The world of Glue, with Iceberg tables and every permission."""
    glue_world.change(table_format="ICEBERG")
    use(glue_world.lake, allow(ACTIONS, CATALOG, DATABASE, TABLE, FUNCTION))
    return glue_world


def test_every_probe_passes_and_no_metadata_file_is_left(iceberg_world: World) -> None:
    verdict = ask(iceberg_world, only=ASKED)
    assert problems(verdict) == {}
    assert list(statuses(verdict)) == PROBES
    assert not [r.detail for r in verdict.results if "not done" in r.detail]
    sent = {r.operation for r in iceberg_world.proxy.requests if r.service == "glue"}
    assert sent == set(ACTIONS)
    written = [r for r in iceberg_world.proxy.requests if r.operation == "PutObject"]
    assert len(written) == 2, "a metadata file for the table, one for the commit"
    (changed,) = [r.body for r in iceberg_world.proxy.requests if r.operation == "UpdateTable"]
    assert b'"VersionId": "1"' in changed
    assert b'"previous_metadata_location"' in changed
    assert iceberg_world.lake.keys() == []
    assert_nothing_left(iceberg_world, verdict)


@pytest.mark.parametrize("denial", ICEBERG, ids=lambda denial: denial.action)
def test_missing_action_fails_its_own_check_only(denial: Denial, iceberg_world: World) -> None:
    others = [action for action in ACTIONS if action != denial.action]
    use(iceberg_world.lake, allow(others, CATALOG, DATABASE, TABLE, FUNCTION))
    verdict = ask(iceberg_world, only=ASKED)
    status = "warning" if denial.warning else "failed"
    assert problems(verdict) == {denial.probe: status, **dict.fromkeys(denial.skips, "skipped")}
    result = next(r for r in verdict.results if r.failure)
    assert result.failure is not None
    assert (result.failure.code, result.failure.status) == ("AccessDeniedException", 403)
    assert result.probe.action == f"glue:{denial.action}"
    assert result.probe.resource == ", ".join(glue_arn(name) for name in denial.resources)
    assert iceberg_world.lake.keys() == []
    assert_nothing_left(iceberg_world, verdict)


def test_older_published_policy_lacks_the_glue_catalog_resource(
    iceberg_world: World,
) -> None:
    use(iceberg_world.lake, *supaflow_statements())
    assert problems(ask(iceberg_world, only=ASKED)) == {}
    use(iceberg_world.lake, *supaflow_statements(legacy=True))
    verdict = ask(iceberg_world, only=ASKED)
    assert problems(verdict) == {"glue-catalog": "warning"}
    (warning,) = verdict.with_status(CheckStatus.WARNING)
    assert warning.failure is not None
    assert "older published policies" in (warning.failure.hint or "")


def test_check_without_delete_permission_creates_no_table(iceberg_world: World) -> None:
    iceberg_world.deny("s3:DeleteObject", "glue:NothingAtAll")
    verdict = ask(iceberg_world, only=ASKED)
    assert problems(verdict)["delete"] == "failed"
    assert problems(verdict)["glue-create-table"] == "skipped"
    assert iceberg_world.lake.keys() == []


def test_unsupported_glue_fails_the_catalog_checks_only(iceberg_world: World) -> None:
    iceberg_world.proxy.rules.clear()
    verdict = ask(iceberg_world, only=ASKED)
    assert problems(verdict) == {"glue-catalog": "warning"}
    (warning,) = verdict.with_status(CheckStatus.WARNING)
    assert warning.failure is not None
    assert warning.failure.code == "InvalidAction"


def test_unwritable_metadata_file_is_reported(iceberg_world: World) -> None:
    iceberg_world.proxy.on("PutObject", answer(403, "AccessDenied"))
    verdict = ask(iceberg_world, only=ASKED)
    (failed, *_) = verdict.with_status(CheckStatus.FAILED)
    assert failed.failure is not None
    assert (failed.probe.name, failed.failure.code) == ("glue-create-table", "AccessDenied")
    assert "/_lakeload/probe/" in failed.failure.message
    assert probe_databases(iceberg_world.lake) == []


def test_glue_calls_use_the_account_of_glue_id(iceberg_world: World) -> None:
    iceberg_world.change(iceberg=IcebergSpec(catalog=CatalogSpec(glue_id=ACCOUNT_ID)))
    assert problems(ask(iceberg_world, only=ASKED)) == {}
    asked = [r.body for r in iceberg_world.proxy.requests if r.service == "glue"]
    assert all(ACCOUNT_ID.encode() in body for body in asked)


def test_glue_check_without_a_role_reads_the_account_from_sts(iceberg_world: World) -> None:
    iceberg_world.administrator()
    assert problems(ask(iceberg_world, only=ASKED)) == {"assume-role": "skipped"}
    (asked,) = [r.body for r in iceberg_world.proxy.requests if r.operation == "GetCatalog"]
    assert ACCOUNT_ID.encode() in asked


def test_read_only_check_creates_nothing(iceberg_world: World) -> None:
    verdict = ask(iceberg_world, only=ASKED, read_only=True)
    assert list(statuses(verdict)) == [
        "glue",
        "glue-catalog",
        "glue-get-database",
        "glue-get-table",
    ]
    writes = {"CreateDatabase", "CreateTable", "UpdateTable", "PutObject"}
    assert not writes & {r.operation for r in iceberg_world.proxy.requests}
