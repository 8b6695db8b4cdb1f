"""Names and ARNs of the Glue probes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lakeload.probes.glue import ProbeTables, denied_causes, resources
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec

PLAIN = DestinationSpec(bucket="lake", region="eu-central-1", glue_database_prefix="supaflow")


@pytest.mark.parametrize(
    ("prefix", "begins"),
    [
        ("supaflow", "supaflow_lakeload_probe_"),
        ("Supa Flow_", "supa_flow_lakeload_probe_"),
        ("", "lakeload_probe_"),
        ("p" * 300, "p" * 200),
    ],
)
def test_the_database_lies_below_the_prefix_and_is_the_tests_own(prefix: str, begins: str) -> None:
    destination = replace(PLAIN, glue_database_prefix=prefix)
    names = {ProbeTables(destination, AwsSession(destination)).database for _ in range(20)}
    assert len(names) == 20
    for name in names:
        assert name.startswith(begins)
        assert re.fullmatch(r"[a-z0-9_]{1,255}", name)
        assert re.search(r"_?lakeload_probe_[0-9a-f]{12}$", name)


@pytest.mark.parametrize(
    ("region", "role", "arn"),
    [
        (
            "eu-central-1",
            "arn:aws:iam::123456789012:role/x",
            "arn:aws:glue:eu-central-1:123456789012:",
        ),
        ("eu-central-1", None, "arn:aws:glue:eu-central-1:*:"),
        ("cn-north-1", None, "arn:aws-cn:glue:cn-north-1:*:"),
        ("us-gov-west-1", None, "arn:aws-us-gov:glue:us-gov-west-1:*:"),
    ],
)
def test_resources_are_those_of_a_policy_for_the_prefix(
    region: str, role: str | None, arn: str
) -> None:
    destination = replace(PLAIN, region=region, credentials=CredentialsSpec(role_arn=role))
    assert resources("GetCatalog", "catalog", destination) == f"{arn}catalog"
    assert resources("CreateTable", "table", destination).split(", ") == [
        *(f"{arn}table/supaflow*/*", f"{arn}database/supaflow*", f"{arn}catalog")
    ]
    everything = replace(destination, glue_database_prefix="")
    assert f"{arn}database/*, " in resources("GetDatabase", "database", everything)


@pytest.mark.parametrize(
    ("role", "account"),
    [(None, "another account"), ("arn:aws:iam::12:role/x", "another account than 12")],
)
def test_a_policy_for_another_region_or_account_is_a_cause(role: str | None, account: str) -> None:
    destination = replace(PLAIN, credentials=CredentialsSpec(role_arn=role))
    causes = denied_causes("probe", "GetTable", "table", destination, "supaflow_x")
    assert f"the policy is for another region than eu-central-1, or for {account}" in causes


def test_a_policy_without_functions_is_a_cause_for_deleting_databases_alone() -> None:
    def causes(operation: str) -> str:
        return "\n".join(denied_causes("probe", operation, "database", PLAIN, "supaflow_x"))

    assert "userDefinedFunction" in causes("DeleteDatabase")
    assert "userDefinedFunction" not in causes("CreateDatabase")
