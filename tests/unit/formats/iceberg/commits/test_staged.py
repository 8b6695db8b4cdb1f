"""Snapshots that another program has staged, as those of the table as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, Unsupported
from lakeload_jobs.formats.iceberg.commits.manifests import ADDED
from lakeload_jobs.formats.iceberg.commits.metadata import MAIN, ref, schema_of
from lakeload_jobs.formats.iceberg.commits.snapshots import (
    AddedFile,
    again,
    files_of,
    moved,
    new_snapshot_id,
)
from tests.unit.formats.iceberg.commits.own_table import (
    BY_CITY,
    NOW,
    OwnTable,
    data_file,
)

MERGING = {"commit.manifest.min-count-to-merge": "2"}
VERSIONS = pytest.mark.parametrize("version", [2, 3])


def names(table: OwnTable) -> list[str]:
    return [entry["data_file"]["file_path"][10:-8] for entry in table.entries()]


@VERSIONS
def test_staged_append_made_again_has_its_files_on_the_new_head(
    version: int, tmp_path: Path
) -> None:
    table = OwnTable.new(tmp_path, version, BY_CITY)
    table.append(data_file("a", 3, city="bern"))
    table.commit(table.addition([]), "staged")
    table.append(data_file("b", 2, city="bern"), data_file("c", 4, city=None), branch="staged")
    staged = table.snapshot("staged")
    table.append(data_file("d", 5, city="bonn"))
    number = new_snapshot_id()
    head = ref(table.metadata, MAIN)
    made = again(table.files, table.metadata, staged, head, number, {"who": "we"}, now_ms=NOW)
    assert (made["snapshot-id"], made["parent-snapshot-id"]) == (number, head)
    told = made["summary"]
    assert (told["operation"], told["who"], told["added-data-files"]) == ("append", "we", "2")
    assert (told["added-records"], told["total-records"]) == ("6", "14")
    assert told["changed-partition-count"] == "2"
    table.commit(made)
    assert names(table) == ["a", "b", "c", "d"]
    mine = [entry for entry in table.entries() if entry["snapshot_id"] == number]
    assert [entry["status"] for entry in mine] == [ADDED, ADDED]
    assert {entry["sequence_number"] for entry in mine} == {made["sequence-number"]}
    if version == 3:
        ids = [number for rows in table.row_ids().values() for number in rows]
        assert len(ids) == len(set(ids)) == 14
    else:
        assert len(table.planned()) == 4


def test_staged_append_takes_its_own_files_out_of_a_merged_manifest(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, 3, properties=MERGING)
    table.append(data_file("a", 3))
    table.commit(table.addition([]), "staged")
    table.append(data_file("b", 2), branch="staged")
    (row,) = table.rows("staged")
    assert (row["existing_files_count"], row["added_files_count"]) == (1, 1)
    staged = table.snapshot("staged")
    table.append(data_file("c", 4))
    before = table.row_ids()
    head = ref(table.metadata, MAIN)
    made = again(table.files, table.metadata, staged, head, new_snapshot_id(), {}, now_ms=NOW)
    table.commit(made)
    assert names(table) == ["a", "b", "c"]
    ids = table.row_ids()
    assert {name: ids[name] for name in before} == before
    assert ids["b"].start >= before["c"].stop


def test_staged_append_of_a_partition_transform_of_others_is_made_again(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, 2, BY_CITY)
    table.append(data_file("a", 3, city="bern"))
    table.append(data_file("b", 2, city="bonn"), branch="staged")
    (spec,) = table.metadata["partition-specs"]
    unknown = {**spec["fields"][0], "transform": "geohash[4]"}
    table.metadata["partition-specs"] = [spec | {"fields": [unknown]}]
    staged, head = table.snapshot("staged"), ref(table.metadata, MAIN)
    table.commit(
        again(table.files, table.metadata, staged, head, new_snapshot_id(), {}, now_ms=NOW)
    )
    cities = {entry["data_file"]["partition"]["city"] for entry in table.entries()}
    assert (names(table), cities) == (["a", "b"], {"bern", "bonn"})


def test_staged_snapshot_that_removes_files_is_not_made_again(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    table.append(data_file("a", 3))
    staged = table.addition([table.manifest(data_file("b", 2))], replaces=True)
    head = ref(table.metadata, MAIN)
    with pytest.raises(Unsupported, match="more than add files"):
        again(table.files, table.metadata, staged, head, new_snapshot_id(), {}, now_ms=NOW)


@VERSIONS
def test_moved_snapshot_keeps_its_list_where_the_numbers_hold(version: int, tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, version)
    table.append(data_file("a", 3))
    staged = table.copy().append(data_file("b", 2))
    written = len(table.files.written)
    made = moved(table.files, table.metadata, staged, schema_id=0, now_ms=NOW + 5)
    assert made == {**staged, "timestamp-ms": NOW + 5}
    assert len(table.files.written) == written
    table.commit(made)
    assert names(table) == ["a", "b"]


@VERSIONS
def test_moved_snapshot_has_new_numbers_where_others_have_taken_its_own(
    version: int, tmp_path: Path
) -> None:
    table = OwnTable.new(tmp_path, version)
    first = table.append(data_file("a", 3))
    staged = table.copy().append(data_file("b", 2), data_file("c", 4))
    table.append(data_file("other", 7), branch="of-another")
    with pytest.raises(CommitRejected):
        table.copy().commit(staged)
    made = moved(table.files, table.metadata, staged, schema_id=0, now_ms=NOW)
    assert made["snapshot-id"] == staged["snapshot-id"]
    assert made["parent-snapshot-id"] == first["snapshot-id"]
    assert made["sequence-number"] == 3
    table.commit(made)
    assert names(table) == ["a", "b", "c"]
    assert [entry["sequence_number"] for entry in table.entries()] == [1, 3, 3]
    mine, older = table.rows()
    assert (mine["sequence_number"], mine["min_sequence_number"]) == (3, 3)
    assert (older["sequence_number"], older["min_sequence_number"]) == (1, 1)
    if version == 3:
        assert table.row_ids() == {"a": range(3), "b": range(10, 12), "c": range(12, 16)}
        assert table.metadata["next-row-id"] == 16
    else:
        assert len(table.planned()) == 3


def test_moved_snapshot_of_a_table_without_rows_has_row_ids_of_its_own(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, 3)
    staged = table.copy().append(data_file("a", 2), data_file("b", 4))
    assert staged["first-row-id"] == 0
    table.append(data_file("other", 7), branch="of-another")
    table.commit(moved(table.files, table.metadata, staged, schema_id=0, now_ms=NOW))
    assert table.row_ids() == {"a": range(7, 9), "b": range(9, 13)}
    assert table.metadata["next-row-id"] == 13


def test_moved_snapshot_keeps_the_row_ids_of_a_merged_manifest(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, 3, properties=MERGING)
    table.append(data_file("a", 3))
    staged = table.copy().append(data_file("b", 2))
    table.append(data_file("other", 7), branch="of-another")
    made = moved(table.files, table.metadata, staged, schema_id=0, now_ms=NOW)
    table.commit(made)
    (row,) = table.rows()
    assert (row["sequence_number"], row["min_sequence_number"]) == (3, 1)
    # The other one has merged as well: a manifest takes ids for all of its rows, as Iceberg's do.
    assert table.row_ids() == {"a": range(3), "b": range(13, 15)}


def test_moved_snapshot_has_the_schema_that_the_publish_gives(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    staged = table.copy().append(data_file("a", 3))
    wider = {**schema_of(table.metadata), "schema-id": 4}
    table.metadata["schemas"].append(wider)
    made = moved(table.files, table.metadata, staged, schema_id=4, now_ms=NOW)
    assert made["schema-id"] == 4


def test_files_of_a_snapshot_are_those_that_it_has_added(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, properties=MERGING)
    table.append(data_file("a", 3))
    table.append(data_file("b", 2), data_file("c", 4))
    assert list(files_of(table.files, table.snapshot())) == [
        AddedFile("s3://lake/b.parquet", 2, 20),
        AddedFile("s3://lake/c.parquet", 4, 40),
    ]
    replaced = table.addition([table.manifest(data_file("d", 5))], replaces=True)
    assert [one.location for one in files_of(table.files, replaced)] == ["s3://lake/d.parquet"]


def test_append_on_top_of_a_snapshot_without_a_summary_has_no_totals(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    table.append(data_file("a", 3))
    # Version 1 asks for none, and a table that was raised keeps its snapshots.
    (first,) = table.metadata["snapshots"]
    table.metadata["snapshots"] = [{**first, "summary": None}]
    second = table.append(data_file("b", 2))
    assert second["summary"]["added-records"] == "2"
    assert "total-records" not in second["summary"]
    assert names(table) == ["a", "b"]
