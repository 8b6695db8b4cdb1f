"""The documents of each shape, as they are written out in tests/cases/policy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakeload.policy.iam import PolicyOptions, granting, role_policies
from lakeload.policy.policy_set import DOCUMENTS, notes
from lakeload.policy.render import shell, terraform
from lakeload_jobs.contract.spec import EncryptionSpec, EndpointsSpec, SigV4Spec
from tests.unit.policy.shapes import SHAPES

CASES = Path(__file__).parents[2] / "cases" / "policy"
each_shape = pytest.mark.parametrize("name", SHAPES)


def written(name: str) -> str:
    """Return the documents of a shape and their companion text."""
    shape = SHAPES[name]
    found = shape.compose()
    reasons = {
        one.name: {statement.sid: statement.why for statement in one.statements}
        for one in found.documents
    }
    content = {
        "documents": {one.name: one.as_json() for one in found.documents},
        "reasons": reasons,
        "notes": notes(found, shape.tables),
    }
    return json.dumps(content, indent=2) + "\n"


@each_shape
def test_a_destination_gets_these_documents(name: str) -> None:
    assert written(name) == (CASES / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["parquet-glue", "iceberg-open-catalog"])
def test_commands_and_terraform_are_written_so(name: str) -> None:
    shape = SHAPES[name]
    found = shape.compose()
    for form, write in (("cli", shell), ("terraform", terraform)):
        text = write(found, notes(found, shape.tables, form=form))
        suffix = {"cli": "sh", "terraform": "tf"}[form]
        assert text == (CASES / f"{name}.{suffix}").read_text(encoding="utf-8")


def test_every_policy_case_file_is_used() -> None:
    assert {path.stem for path in CASES.iterdir()} == set(SHAPES)


@each_shape
def test_statements_of_a_document_have_names_of_their_own(name: str) -> None:
    for document in SHAPES[name].compose().documents:
        sids = [statement.sid for statement in document.statements]
        assert len(sids) == len(set(sids))
        assert all(sid.isalnum() for sid in sids)


@each_shape
def test_a_document_alone_is_the_one_among_all(name: str) -> None:
    shape = SHAPES[name]
    every = {one.name: one for one in shape.compose().documents}
    assert set(every) <= set(DOCUMENTS)
    for wanted, document in every.items():
        assert shape.compose(wanted).documents == (document,)


def test_every_granted_action_has_a_use() -> None:
    granted = {
        action
        for document in role_policies(SHAPES["parquet-glue"].destination)
        for statement in document.statements
        for action in statement.actions
    }
    assert granted == {
        *("s3:ListBucket", "s3:ListBucketMultipartUploads", "s3:GetObject", "s3:PutObject"),
        *("s3:AbortMultipartUpload", "s3:DeleteObject"),
        *("glue:GetDatabase", "glue:CreateDatabase", "glue:GetTable", "glue:CreateTable"),
        *("glue:UpdateTable", "glue:GetPartition", "glue:BatchCreatePartition"),
        "glue:BatchUpdatePartition",
        *("glue:DeleteTable", "glue:DeleteDatabase"),
    }


def test_only_the_reset_policy_allows_deleting_data() -> None:
    destination = SHAPES["parquet-glue"].destination
    probe = granting(destination, "s3:DeleteObject")
    assert probe is not None
    assert probe.resources == ("arn:aws:s3:::my-data-lake/data-lake/production/_lakeload/probe/*",)
    dropping = granting(destination, "glue:DeleteTable")
    assert dropping is not None
    assert all("catalog" in arn or "_lakeload_probe_" in arn for arn in dropping.resources)
    assert [one.name for one in role_policies(destination, PolicyOptions(reset=True))] == [
        *("s3", "glue", "reset")
    ]


def test_the_statement_that_grants_an_action_names_it_alone() -> None:
    found = granting(SHAPES["parquet-glue"].destination, "glue:GetPartition")
    assert found is not None
    assert found.actions == ("glue:GetPartition",)
    assert found.as_json()["Resource"] == [
        "arn:aws:glue:us-east-1:123456789012:catalog",
        "arn:aws:glue:us-east-1:123456789012:database/supaflow*",
        "arn:aws:glue:us-east-1:123456789012:table/supaflow*/*",
    ]


def test_actions_unused_by_loads_are_not_granted() -> None:
    assert granting(SHAPES["parquet-glue"].destination, "glue:GetCatalog") is None
    assert granting(SHAPES["iceberg-glue"].destination, "glue:GetCatalog") is not None
    assert granting(SHAPES["parquet"].destination, "glue:GetTable") is None


@pytest.mark.parametrize(
    ("key", "resource", "alias"),
    [
        ("mrk-1234", "arn:aws:kms:us-east-1:123456789012:key/mrk-1234", None),
        ("alias/lake", "arn:aws:kms:us-east-1:123456789012:key/*", "alias/lake"),
        ("arn:aws:kms:us-east-1:999988887777:key/k", None, None),
        (
            "arn:aws:kms:us-east-1:999988887777:alias/team/lake",
            "arn:aws:kms:us-east-1:999988887777:key/*",
            "alias/team/lake",
        ),
    ],
)
def test_a_key_is_named_by_its_arn_or_by_a_condition(
    key: str, resource: str | None, alias: str | None
) -> None:
    destination = replace(SHAPES["parquet"].destination, encryption=EncryptionSpec("SSE_KMS", key))
    found = granting(destination, "kms:GenerateDataKey")
    assert found is not None
    assert found.resources == (resource or key,)
    assert found.conditions.get("ForAnyValue:StringEquals", {}).get("kms:ResourceAliases") == alias


def test_signed_catalog_policy_names_its_service() -> None:
    destination = SHAPES["iceberg-glue-over-rest"].destination
    catalog = replace(
        destination.iceberg.catalog,
        warehouse="555566667777:s3tablescatalog/lake",
        sigv4=SigV4Spec("glue", "eu-central-1"),
    )
    destination = replace(destination, iceberg=replace(destination.iceberg, catalog=catalog))
    found = granting(destination, "glue:GetCatalog")
    assert found is not None
    assert found.resources == ("arn:aws:glue:eu-central-1:555566667777:catalog",)


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("https://bucket.vpce-1a2b.s3.us-east-1.vpce.amazonaws.com", False),
        ("https://s3.cn-north-1.amazonaws.com.cn", False),
        ("https://minio.example.com:9000", True),
    ],
)
def test_aws_endpoint_is_not_another_store(endpoint: str, told: bool) -> None:
    shape = SHAPES["parquet"]
    destination = replace(shape.destination, endpoints=EndpointsSpec(s3=endpoint))
    said = notes(replace(shape, destination=destination).compose())
    assert any("not AWS's own" in note for note in said) is told


@pytest.mark.parametrize(
    "prefix",
    [
        "a: b",
        "#c",
        "{d}",
        "% if e",
        "on",
        '"q"\\u',
        "tab\t",
        "\x7f\x85\u2028",
        "ü/é/emoji😀",
        "f = g",
    ],
)
def test_a_prefix_of_any_letters_stands_in_the_documents_as_it_is(prefix: str) -> None:
    destination = replace(SHAPES["parquet"].destination, prefix=prefix)
    found = granting(destination, "s3:ListBucket")
    assert found is not None
    assert found.conditions == {"StringLike": {"s3:prefix": f"{prefix}/*"}}
    composed = replace(SHAPES["parquet"], destination=destination).compose()
    assert json.dumps(f"arn:aws:s3:::my-data-lake/{prefix}/*")[1:-1] in shell(composed)


def test_account_option_overrides_the_account_of_the_role() -> None:
    destination = SHAPES["parquet-glue"].destination
    (_, glue) = role_policies(destination, PolicyOptions(account="555566667777"))
    assert all(
        ":555566667777:" in arn for statement in glue.statements for arn in statement.resources
    )
