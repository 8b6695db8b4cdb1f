"""The page on the connection test says what there is: probes, JSON, published guides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakeload.checks import CheckStatus
from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.runner import ConnectionVerdict, Failure, ProbeResult
from lakeload.ui.checks import verdict_json
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    IcebergSpec,
    ParquetSpec,
)
from tests.published_policies import CASES, Guide

DOCS = Path(__file__).parents[3] / "docs"
ID = SecretReference("env", "ID")
GLUE = DestinationSpec(
    "lake",
    "eu-central-1",
    credentials=CredentialsSpec("arn:aws:iam::123456789012:role/x", ID),
    encryption=EncryptionSpec("SSE_KMS", "key"),
    parquet=ParquetSpec(update_glue_catalog=True),
    glue_database_prefix="supaflow",
)
REST = DestinationSpec(
    "lake",
    "eu-central-1",
    table_format="ICEBERG",
    iceberg=IcebergSpec(
        CatalogSpec(
            type="SNOWFLAKE_OPEN_CATALOG",
            uri="https://catalog.example.com",
            warehouse="lake",
            client_id=ID,
            client_secret=ID,
        )
    ),
)


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading; '' is the top of the page."""
    text = (DOCS / page).read_text(encoding="utf-8").split(heading, 1)[1]
    table = re.findall(r"^\|.*\|$", text.split("\n\n|", 1)[1].split("\n\n", 1)[0], re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1:]]


def test_every_probe_is_in_its_table_with_level_and_action() -> None:
    probes = ConnectionTest(GLUE, ConnectionOptions()).probes
    told = [*rows("test-connection.md", "# The"), *rows("test-connection.md", "## Glue")]
    assert [row[0] for row in told] == [f"`{probe.name}`" for probe in probes]
    for probe, (name, _, level, action, *_) in zip(probes, told, strict=True):
        assert level.startswith(probe.level), name
        assert action.startswith(probe.action or "–"), name


def test_every_probe_of_a_rest_catalog_is_in_its_table_with_its_privilege() -> None:
    every = ConnectionTest(REST, ConnectionOptions()).probes
    probes = [probe for probe in every if probe.name.startswith("catalog")]
    told = rows("catalogs.md", "## Checks of the connection test")
    assert [row[0] for row in told] == [f"`{probe.name}`" for probe in probes]
    for probe, (name, _, level, privilege) in zip(probes, told, strict=True):
        assert level == probe.level, name
        assert probe.action in privilege, name


def test_every_field_of_the_json_is_described() -> None:
    (probe, *_) = ConnectionTest(GLUE, ConnectionOptions()).probes
    failure = Failure("m", "c", 403, "id", (), None, statement={})
    result = ProbeResult(probe, CheckStatus.FAILED, failure=failure)
    document = verdict_json(ConnectionVerdict((result,), 1.0), GLUE)
    described = (DOCS / "test-connection.md").read_text(encoding="utf-8").partition("## JSON")[2]
    (shown,) = document["probes"]
    for names in (set(document), set(shown), set(shown["failure"] or {})):
        for name in names:
            assert re.search(rf"`(?:[a-z_\[\]]+\.)*{name}(?:\[\])?`", described), name


@pytest.mark.parametrize("name", CASES)
def test_page_lists_the_warnings_of_a_published_policy(name: str) -> None:
    case = CASES[name]
    source = Guide.read(case.guide).source
    (row,) = [
        row
        for row in rows("test-connection.md", "## Roles made after published guides")
        if re.match(rf"{re.escape(row[0])}\b", source)
    ]
    lists = [", ".join(f"`{probe}`" for probe in probes) for probes in (case.warns, case.skips)]
    yes = {True: "yes", False: "no"}
    assert row[1:] == [yes[bool(case.prefix)], yes[case.glue], *lists]
