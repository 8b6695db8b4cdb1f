"""docs/migrating.md: every setting of the products replaced has a home, and the homes exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from lakeload.app import COMMANDS
from lakeload.documents.load import inspect_all
from tests.unit.documents.documents import validator

PAGE = Path(__file__).parents[3] / "docs" / "migrating.md"

SETTINGS = {
    "Supaflow S3 Data Lake": (
        "S3 Bucket Name",
        "Bucket Region",
        "S3 Path Prefix",
        "IAM Role ARN",
        "External ID",
        "Custom S3 Endpoint",
        "Table Format",
        "Iceberg Catalog",
        "Catalog endpoint",
        "Catalog Name",
        "Client ID",
        "Client Secret",
        "Principal Role",
        "Update AWS Glue Catalog",
        "Partition Strategy",
        "File Name Pattern",
        "Glue Database Prefix",
        "Test & Save",
        "Destination Prefix",
        "Destination Table Handling",
    ),
    "Supaflow S3 (legacy)": (
        "S3 Bucket Name",
        "Bucket Region",
        "S3 Path Prefix",
        "IAM Role ARN",
        "External ID",
        "Sync Schema with AWS Glue Catalog",
        "Glue Database Prefix",
        "Partition Strategy",
        "File Name Pattern",
        "Upload Parallelism",
        "Custom S3 Endpoint",
        "Destination Table Handling",
    ),
    "Airbyte S3 Data Lake": (
        "AWS Access Key ID",
        "AWS Secret Access Key",
        "Role ARN",
        "External ID",
        "S3 Bucket Name",
        "S3 Bucket Region",
        "S3 Endpoint",
        "Warehouse Location",
        "Main Branch Name",
        "Catalog type",
        "Glue ID",
        "Database Name",
        "REST: Server URI",
        "REST: Namespace",
        "Nessie: Server URI",
        "Nessie: Access Token",
        "Nessie: Namespace",
        "Polaris: Server URI",
        "Polaris: Client ID",
        "Polaris: Scope",
        "Polaris: OAuth Server URI",
        "Flush batch size",
        "Normalize column names",
        "Full Refresh - Append",
        "Full Refresh - Overwrite",
        "Full Refresh - Overwrite + Deduped",
        "Incremental - Append",
        "Incremental - Append + Deduped",
        "Primary key",
        "Cursor field",
    ),
    "Estuary materialize-s3-iceberg": (
        "/aws_access_key_id",
        "/aws_secret_access_key",
        "/bucket",
        "/prefix",
        "/region",
        "/namespace",
        "/upload_interval",
        "/catalog/catalog_type",
        "/catalog/uri",
        "/catalog/credential",
        "/catalog/token",
        "/catalog/warehouse",
        "/table",
        "/delta_updates",
    ),
}


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text below a heading of the second level."""
    return page().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def paths(node: Any, definitions: dict[str, Any], at: str) -> Iterator[str]:
    """Yield every key path of a JSON Schema; `[]` stands for the items of a list."""
    if "$ref" in node:
        yield from paths(definitions[node["$ref"].rpartition("/")[2]], definitions, at)
    for part in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from paths(part, definitions, at)
    if isinstance(node.get("items"), dict):
        yield from paths(node["items"], definitions, f"{at}[]")
    for name, child in node.get("properties", {}).items():
        yield f"{at}.{name}"
        yield from paths(child, definitions, f"{at}.{name}")


def known(kind: Literal["destination", "pipeline"]) -> set[str]:
    schema: Any = validator(kind).schema
    return set(paths(schema, schema.get("$defs", {}), kind))


def test_every_key_that_the_page_names_is_one_of_the_models() -> None:
    named = set(re.findall(r"`((?:destination|pipeline)\.(?!yml)[^`…]+)`", page()))
    assert len(named) > 50
    assert named <= known("destination") | known("pipeline")


@pytest.mark.parametrize("product", SETTINGS)
def test_every_setting_of_a_product_has_a_row(product: str) -> None:
    lines = [line for line in section(product).splitlines() if line.startswith("|")]
    rows = [line.strip("|").split("|") for line in lines]
    theirs = [row[0] for row in rows]
    for setting in SETTINGS[product]:
        assert any(setting in cell for cell in theirs), setting
    assert all(len(row) in (2, 4) for row in rows), "a cell too many or too few"


def test_the_commands_that_the_page_names_exist() -> None:
    assert set(re.findall(r"`lakeload ([a-z-]+)", page())) <= set(COMMANDS)


def test_the_documents_on_the_page_are_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", page(), re.MULTILINE | re.DOTALL)
    assert [name for name, _ in blocks].count("destination.yml") == 3
    for i, (name, text) in enumerate(blocks):
        folder = tmp_path / str(i)
        folder.mkdir()
        if name == "pipeline.yml":
            before = blocks[i - 1]
            (folder / before[0]).write_text(before[1], encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")
        (inspection,) = inspect_all([folder / name], {})
        assert inspection.problems == ()


def test_migrating_page_gives_a_reason_for_each_difference() -> None:
    told = [line for line in section("Intended differences").splitlines() if "|" in line][2:]
    decided = [line for line in told if "[reasons](" in line]
    assert len(decided) == 8
    for page in ("0100", "0101", "0103", "0104", "design-notes.md#iceberg-tables"):
        assert any(page in line for line in decided)
