"""What the connection test makes is what the policy lets it remove."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

import pytest

from lakeload.policy.iam import granting
from lakeload.probes.glue import ProbeTables
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.core.layout import probe_path
from tests.unit.policy.shapes import SHAPES

GLUE = SHAPES["parquet-glue"].destination


@pytest.mark.parametrize("prefix", ["supaflow", "", "  ", "Größe 1", "_x_", "1", "p" * 300, "a*b$"])
def test_a_tests_database_is_among_those_that_may_be_deleted(prefix: str) -> None:
    destination = replace(GLUE, glue_database_prefix=prefix)
    database = ProbeTables(destination, AwsSession(destination)).database
    found = granting(destination, "glue:DeleteDatabase")
    assert found is not None
    for kind, name in (
        ("database", database),
        ("table", f"{database}/probe"),
        ("userDefinedFunction", f"{database}/f"),
    ):
        arn = f"arn:aws:glue:us-east-1:123456789012:{kind}/{name}"
        assert any(fnmatchcase(arn, pattern) for pattern in found.resources), arn
    loading = f"arn:aws:glue:us-east-1:123456789012:database/{database}"
    making = granting(destination, "glue:CreateDatabase")
    assert making is not None
    assert any(fnmatchcase(loading, pattern) for pattern in making.resources)


@pytest.mark.parametrize("prefix", ["", "data", "a/b", "with$sign"])
def test_a_tests_objects_are_among_those_that_may_be_deleted(prefix: str) -> None:
    destination = replace(GLUE, prefix=prefix)
    found = granting(destination, "s3:DeleteObject")
    assert found is not None
    (pattern,) = found.resources
    key = f"arn:aws:s3:::my-data-lake/{probe_path(prefix)}x"
    assert fnmatchcase(key, pattern.replace("${$}", "$"))
