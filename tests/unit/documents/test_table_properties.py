"""Which table properties a document may set."""

from __future__ import annotations

import pytest

from lakeload.documents.table_properties import property_problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.compression-codec", "zstd"),
        ("write.delete.mode", "merge-on-read"),
        ("write.object-storage.enabled", "true"),
        ("write.metadata.metrics.column.token", "none"),
        ("write.metadata.delete-after-commit.enabled", "true"),
        ("history.expire.max-snapshot-age-ms", "432000000"),
        ("commit.retry.num-retries", "10"),
        ("read.split.target-size", "134217728"),
        ("gc.enabled", "false"),
        ("comment", "orders, see https://wiki.example.com/orders"),
        ("owner.team", "shop"),
    ],
)
def test_properties_of_tables_are_allowed(name: str, value: str) -> None:
    assert property_problem(name, value) is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lakeload.jobs", "", "is reserved"),
        ("LakeLoad.x", "", "is reserved"),
        ("format-version", "3", "is the setting `format_version`"),
        ("location", "s3://other", "follows from bucket, prefix"),
        ("write.data.path", "s3://other", "outside its own folder"),
        ("write.metadata.path", "s3://other", "outside its own folder"),
        ("write.object-storage.path", "s3://other", "outside its own folder"),
        ("write.location-provider.impl", "com.example.Provider", "outside of its location"),
        ("write.wap.enabled", "true", "lakeload stages each load by itself"),
        ("write.spark.accept-any-schema", "true", "switches off checks of columns"),
        ("current-snapshot-id", "7", "is set by Iceberg itself"),
        ("provider", "hudi", "is set by Spark itself"),
        ("s3.endpoint", "http://x", "is a property of catalogs"),
        ("warehouse", "s3://x", "is a property of catalogs"),
        ("client.region", "us-east-1", "is a property of catalogs"),
        ("", "x", "is not the name of a table property"),
        (" comment", "x", "is not the name of a table property"),
        ("x" * 256, "x", "is not the name of a table property"),
    ],
)
def test_table_property_reserved_by_lakeload_is_rejected_with_a_hint(
    name: str, value: str, message: str
) -> None:
    problem = property_problem(name, value)
    assert problem is not None
    assert message in problem[0]
    assert problem[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s3.secret-access-key", "CANARY"),
        ("my.password", "CANARY"),
        ("x-api-key", "CANARY"),
        ("client.assume-role.external-id", "CANARY"),
        ("comment", "https://user:CANARY@example.com"),
        ("write.parquet.bloom-filter-enabled.column.x", "AKIAIOSFODNN7CANARYX"),
    ],
)
def test_secrets_are_refused_and_never_shown(name: str, value: str) -> None:
    problem = property_problem(name, value)
    assert problem is not None
    assert "looks like a secret" in problem[0]
    assert "CANARY" not in " ".join(problem)
