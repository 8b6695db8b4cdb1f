"""Files of tables that other writers have made: what cannot be read is one error of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_files import data_files, table_files
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from tests.unit.formats.iceberg.commits.own_table import OwnTable, data_file


def made(folder: Path) -> OwnTable:
    table = OwnTable.new(folder)
    table.append(data_file("a", 1))
    table.append(data_file("b", 2))
    return table


def read(table: OwnTable, which: Any = data_files) -> Any:
    place = str(table.folder / "v2.metadata.json")
    found = ReadTable("shop", "orders", table.metadata, place, 2)
    return which(found, cast("LakeFiles", table.files))


def test_snapshots_without_lists_name_their_manifests(tmp_path: Path) -> None:
    table = made(tmp_path)
    manifests = [row["manifest_path"] for row in table.rows()]
    last = table.snapshot()
    del last["manifest-list"]
    last["manifests"] = manifests
    assert read(table) == {"s3://lake/a.parquet": 10, "s3://lake/b.parquet": 20}
    assert set(manifests) <= set(read(table, table_files).metadata)


@pytest.mark.parametrize("which", [data_files, table_files])
@pytest.mark.parametrize("damaged", ["manifest_path", "manifest-list"])
def test_file_that_is_damaged_is_an_error_of_the_table(
    which: Any, damaged: str, tmp_path: Path
) -> None:
    table = made(tmp_path)
    place = {**table.rows()[0], **table.snapshot()}[damaged]
    Path(place).write_bytes(Path(place).read_bytes()[:-30])
    with pytest.raises(LoadFailed, match="the Avro file is damaged") as caught:
        read(table, which)
    assert place in caught.value.message


@pytest.mark.parametrize("which", [data_files, table_files])
def test_snapshot_without_manifests_is_an_error_of_the_table(which: Any, tmp_path: Path) -> None:
    table = made(tmp_path)
    del table.metadata["snapshots"][0]["manifest-list"]
    with pytest.raises(CatalogError, match="the table has a snapshot without a list") as caught:
        read(table, which)
    assert "`shop.orders`" in caught.value.message
