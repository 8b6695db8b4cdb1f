"""Glue's optimizers, against the service's own model: no emulator has them."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from botocore.stub import Stubber

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec, IcebergSpec
from lakeload_jobs.formats.iceberg.glue_optimizers import (
    OPTIMIZERS,
    GlueOptimizers,
    Optimizer,
    OptimizerSettings,
    configuration,
)

ACCOUNT = "123456789012"
SETTINGS = OptimizerSettings(f"arn:aws:iam::{ACCOUNT}:role/optimizer", snapshot_days=7)


@cache
def _session() -> Any:
    """Return the session of all clients: it reads the description of a service once."""
    return boto3.Session("x", "x", region_name="us-east-1")


class Glue:
    """A client whose answers are given beforehand, and checked as AWS's own."""

    def __init__(self, **catalog: Any) -> None:
        client: Any = _session().client("glue")
        sts: Any = _session().client("sts")
        self.stub, self.sts = Stubber(client), Stubber(sts)
        self.stub.activate()
        self.sts.activate()
        spec = IcebergSpec(CatalogSpec(**{"glue_id": ACCOUNT, **catalog}))
        destination = DestinationSpec("lake", "us-east-1", table_format="ICEBERG", iceberg=spec)
        session = SimpleNamespace(glue=client, sts=sts)
        self.optimizers = GlueOptimizers(cast(AwsSession, session), destination)

    def expect_get(self, kind: Optimizer, present: dict[str, Any] | None) -> None:
        given = {
            "CatalogId": ACCOUNT,
            "DatabaseName": "shop",
            "TableName": "orders",
            "Type": kind,
        }
        if present is None:
            self.stub.add_client_error(
                "get_table_optimizer", "EntityNotFoundException", expected_params=given
            )
        else:
            answer = {"TableOptimizer": {"type": kind, "configuration": present}}
            self.stub.add_response("get_table_optimizer", answer, given)

    def expect(self, operation: str, kind: Optimizer) -> None:
        given = {
            "CatalogId": ACCOUNT,
            "DatabaseName": "shop",
            "TableName": "orders",
            "Type": kind,
            "TableOptimizerConfiguration": configuration(kind, SETTINGS),
        }
        self.stub.add_response(operation, {}, given)

    def register(self, kind: Optimizer, *, apply: bool = True) -> str:
        change = self.optimizers.register("shop", "orders", kind, SETTINGS, apply=apply)
        self.stub.assert_no_pending_responses()
        return change


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_optimizer_that_is_missing_is_created(kind: Optimizer) -> None:
    glue = Glue()
    glue.expect_get(kind, None)
    glue.expect("create_table_optimizer", kind)
    assert glue.register(kind) == "create"


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_optimizer_is_updated_only_where_it_differs(kind: Optimizer) -> None:
    wanted: dict[str, Any] = dict(configuration(kind, SETTINGS))
    glue = Glue()
    glue.expect_get(kind, {**wanted, "enabled": False})
    glue.expect("update_table_optimizer", kind)
    assert glue.register(kind) == "update"
    glue.expect_get(kind, {**wanted, "vpcConfiguration": {"glueConnectionName": "vpc"}})
    assert glue.register(kind) == "none"


def test_without_apply_nothing_is_written() -> None:
    glue = Glue()
    glue.expect_get("compaction", None)
    assert glue.register("compaction", apply=False) == "create"


def test_the_account_is_the_roles_own_where_none_is_named() -> None:
    glue = Glue(glue_id=None)
    glue.sts.add_response("get_caller_identity", {"Account": ACCOUNT})
    glue.expect_get("retention", dict(configuration("retention", SETTINGS)))
    assert glue.register("retention") == "none"


def test_optimizer_denied_by_glue_is_reported() -> None:
    glue = Glue()
    glue.stub.add_client_error("get_table_optimizer", "AccessDeniedException")
    with pytest.raises(AwsError, match="the optimizer compaction"):
        glue.register("compaction")


def test_optimizer_of_another_catalog_is_not_created() -> None:
    with pytest.raises(InvalidInput, match="tables of the Glue catalog only"):
        Glue(type="REST", glue_id=None)
