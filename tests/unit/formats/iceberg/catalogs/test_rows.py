"""Rows of tables that pyiceberg reads: what it cannot read is an error of the table."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.aws.vended_credentials import HandedKeys
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.rows import read_rows
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from tests.unit.formats.iceberg.commits.own_table import OwnTable, data_file
from tests.unit.sources.files.formats.avro.test_reader import packed


class Session:
    """An identity."""

    def keys(self) -> HandedKeys:
        return HandedKeys("key", Secret("secret"), None, "eu", None, path_style=False)


@pytest.mark.parametrize("damage", ["snappy", "text"])
def test_manifests_that_cannot_be_read_are_an_error_of_the_table(
    damage: str, tmp_path: Path
) -> None:
    table = OwnTable.new(tmp_path)
    table.append(data_file("a", 1))
    manifests = Path(table.snapshot()["manifest-list"])
    if damage == "snappy":
        packed(manifests, "snappy")
    else:
        manifests.write_bytes(b"no list of manifests")
    found = ReadTable("shop", "orders", table.metadata, str(tmp_path / "v1.metadata.json"))
    with pytest.raises(CatalogError, match="reading the rows below") as caught:
        read_rows(found, DestinationSpec("lake", "eu"), cast("AwsSession", Session()))
    assert caught.value.code == "FilesUnreadable"
