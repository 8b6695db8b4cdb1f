"""Manifests of every spec, content and writer, and what cannot be written is refused before."""

from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from typing import Any

import fastavro
import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.manifests import (
    DATA,
    DELETES,
    EXISTING,
    ManifestLists,
    check_can_add,
    read_list,
    read_manifest,
    read_paths,
    write_added,
    write_list,
)
from lakeload_jobs.formats.iceberg.commits.metadata import MAIN, Json, add_spec, ref, updated
from tests.unit.formats.iceberg.commits.own_table import (
    BY_CITY,
    NOW,
    UNPARTITIONED,
    OwnTable,
    data_file,
)
from tests.unit.sources.files.formats.avro.test_reader import packed

MERGING = {"commit.manifest.min-count-to-merge": "2"}


def spec(name: str, transform: str = "identity", source: int = 2, number: int = 0) -> Json:
    field = {"name": name, "transform": transform, "source-id": source, "field-id": 1000}
    return {"spec-id": number, "fields": [field]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format-version": 1}, "the format version 1, to which lakeload adds no rows"),
        ({"format-version": 4}, "the format version 4"),
        ({"partition-specs": [spec("city", "geohash[4]")]}, "the partition transform `geohash"),
        ({"partition-specs": [spec("city", source=9)]}, "`city`, whose column is gone"),
    ],
)
def test_table_that_cannot_get_rows_is_refused_before_anything_is_written(
    changes: Json, says: str, tmp_path: Path
) -> None:
    table = OwnTable.new(tmp_path)
    metadata = table.metadata | changes
    with pytest.raises(Unsupported, match=says):
        check_can_add(metadata)
    with pytest.raises(Unsupported, match=says):
        write_added(table.files, metadata, 1, [data_file("a", 1)])
    assert table.files.written == []


def test_number_that_is_none_is_refused_by_the_name_of_its_property(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, properties={"commit.manifest.min-count-to-merge": "many"})
    with pytest.raises(Unsupported, match="the value `many` in its property"):
        table.append(data_file("a", 1))


def test_partition_field_of_any_name_is_read_by_its_id(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=spec("the city, 東"))
    for city in ("bern", None, "bonn"):
        table.append(data_file(str(city), 1, **{"the city, 東": city}))
    row = table.rows()[0]
    reader = fastavro.reader(io.BytesIO(table.files.read(row["manifest_path"])))
    schema: Any = reader.writer_schema
    (file,) = [one for one in schema["fields"] if one["name"] == "data_file"]
    (partition,) = [one for one in file["type"]["fields"] if one["name"] == "partition"]
    (field,) = partition["type"]["fields"]
    assert field["name"] == "the_x20city_x2C_x20_x6771"
    assert (field["iceberg-field-name"], field["field-id"]) == ("the city, 東", 1000)
    places = table.read().scan("city = 'bonn'").plan_files()
    assert [task.file.file_path for task in places] == ["s3://lake/bonn.parquet"]


def test_manifests_of_each_spec_merge_for_themselves_as_java_merges_them(tmp_path: Path) -> None:
    table = OwnTable.new(
        tmp_path, spec=BY_CITY, properties={"commit.manifest.min-count-to-merge": "3"}
    )
    table.append(data_file("a", 1, city="bern"))
    table.append(data_file("b", 1, city="bern"))
    assert len(table.rows()) == 2
    unpartitioned = UNPARTITIONED | {"spec-id": 1}
    table.metadata = updated(table.metadata, add_spec(unpartitioned), replaces="v", now_ms=NOW)

    def found() -> list[tuple[int, int]]:
        return [
            (row["partition_spec_id"], row["added_files_count"] + row["existing_files_count"])
            for row in table.rows()
        ]

    # Those beside the newest manifest wait for a third; of another spec nothing more comes.
    table.append(data_file("c", 1))
    assert found() == [(1, 1), (0, 2)]
    table.append(data_file("d", 1))
    assert found() == [(1, 1), (1, 1), (0, 2)]
    table.append(data_file("e", 1))
    assert found() == [(1, 3), (0, 2)]
    assert len(table.planned()) == 5


def test_fields_that_are_not_known_survive_merging(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, properties=MERGING)
    table.append(data_file("a", 1))
    (row,) = table.rows()
    reader = fastavro.reader(io.BytesIO(table.files.read(row["manifest_path"])))
    entries: list[Any] = list(reader)
    schema: Any = reader.writer_schema
    (file,) = [one for one in schema["fields"] if one["name"] == "data_file"]
    later = {"name": "later", "type": ["null", "long"], "default": None, "field-id": 999}
    file["type"]["fields"].append(later)
    entries[0]["data_file"]["later"] = 7
    out = io.BytesIO()
    fastavro.writer(out, schema, entries, metadata=dict(read_header(table, row)))
    table.files.write(row["manifest_path"], out.getvalue())
    table.append(data_file("b", 1))
    assert len(table.rows()) == 1
    assert [entry["data_file"]["later"] for entry in table.entries()] == [7, None]


def read_header(table: OwnTable, row: Json) -> Any:
    return read_manifest(table.files, row).header


def test_bounds_of_partitions_of_floats_leave_nan_out_and_tell_zeros_apart(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=spec("rate", source=3))
    (schema,) = table.metadata["schemas"]
    rate = {"id": 3, "name": "rate", "required": False, "type": "double"}
    table.metadata["schemas"] = [schema | {"fields": [*schema["fields"], rate]}]
    values = (math.nan, 0.0, -0.0, None)
    manifest = table.manifest(*(data_file(str(one), 1, rate=one) for one in values))
    zeros = (struct.pack("<d", -0.0), struct.pack("<d", 0.0))
    assert manifest.row["partitions"] == [
        {
            "contains_null": True,
            "contains_nan": True,
            "lower_bound": zeros[0],
            "upper_bound": zeros[1],
        }
    ]


def test_manifests_merge_up_to_a_size_the_oldest_first(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    length = table.manifest(data_file("x", 1)).row["manifest_length"]

    def sized(of_length: float, **more: str) -> list[int]:
        size = {"commit.manifest.target-size-bytes": str(int(of_length * length))}
        table.metadata["properties"] = MERGING | size | more
        table.append(data_file("a", 1))
        return [row["added_files_count"] + row["existing_files_count"] for row in table.rows()]

    assert [len(sized(1.5)) for _ in range(4)] == [1, 2, 3, 4]
    # Pairs from the oldest on: the newest waits for another.
    assert sized(2.5) == [1, 2, 2]
    assert sized(2.5, **{"commit.manifest-merge.enabled": "false"}) == [1, 1, 2, 2]
    assert sized(100) == [7]


def deletes(table: OwnTable, *paths: str) -> None:
    """Add manifests of position deletes, as another program does."""
    head = table.snapshot()
    rows = read_list(table.files, head)
    for path in paths:
        manifest = table.manifest(data_file(path, 1) | {"content": 1, "from_the_future": 7})
        rows.append(manifest.row | {"content": DELETES, "sequence_number": 9})
    for row in rows:
        row["min_sequence_number"] = row["min_sequence_number"] or row["sequence_number"]
    head["manifest-list"] = write_list(
        table.files,
        table.metadata,
        rows,
        snapshot_id=head["snapshot-id"],
        parent=None,
        sequence=9,
        first_row_id=None,
    )
    head["summary"]["total-delete-files"] = str(len(paths))
    table.metadata["last-sequence-number"] = 9


def test_manifests_of_deletes_merge_apart_from_those_of_rows(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, properties={"commit.manifest.min-count-to-merge": "3"})
    table.append(data_file("a", 1))
    deletes(table, "d1", "d2", "d3")
    table.append(data_file("b", 1))
    assert [row["content"] for row in table.rows()] == [DATA, DATA, DELETES]
    merged = read_manifest(table.files, table.rows()[-1])
    assert merged.header["content"] == "deletes"
    assert [entry["status"] for entry in merged.entries] == [EXISTING] * 3
    assert {entry["sequence_number"] for entry in merged.entries} == {9}


def test_overwrite_counts_the_deletes_that_go_and_every_partition(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=BY_CITY)
    table.append(data_file("a", 2, city="bern"), data_file("b", 3, city="bonn"))
    deletes(table, "d1", "d2")
    made = table.addition([table.manifest(data_file("c", 4, city=None))], replaces=True)
    told = {name: int(value) for name, value in made["summary"].items() if value.isdigit()}
    assert told == {
        "added-data-files": 1,
        "added-records": 4,
        "added-files-size": 40,
        "deleted-data-files": 2,
        "deleted-records": 5,
        "removed-delete-files": 2,
        "removed-position-delete-files": 2,
        "removed-position-deletes": 2,
        "removed-files-size": 70,
        "changed-partition-count": 3,
        "total-records": 4,
        "total-files-size": 40,
        "total-data-files": 1,
        "total-delete-files": 0,
        "total-position-deletes": 0,
        "total-equality-deletes": 0,
    }


def test_values_that_python_cannot_hold_stay_when_a_manifest_is_written_again(
    tmp_path: Path,
) -> None:
    """Days after the year 9999, which are no `date`."""
    table = OwnTable.new(tmp_path, spec=spec("day", "day", source=3), properties=MERGING)
    (schema,) = table.metadata["schemas"]
    time = {"id": 3, "name": "at", "required": False, "type": "timestamp"}
    table.metadata["schemas"] = [schema | {"fields": [*schema["fields"], time]}]
    for day in (4_000_000, -800_000):
        table.append(data_file(str(day), 1, day=day))
    (row,) = table.rows()
    days = [entry["data_file"]["partition"]["day"] for entry in table.entries()]
    assert sorted(days) == [-800_000, 4_000_000]
    (bounds,) = row["partitions"]
    assert int.from_bytes(bounds["lower_bound"], "little", signed=True) == -800_000


def test_column_of_an_old_spec_that_is_gone_keeps_its_files(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=BY_CITY, properties=MERGING)
    table.append(data_file("a", 1, city="bern"))
    unpartitioned = UNPARTITIONED | {"spec-id": 1}
    table.metadata = updated(table.metadata, add_spec(unpartitioned), replaces="v", now_ms=NOW)
    (schema,) = table.metadata["schemas"]
    table.metadata["schemas"] = [schema | {"fields": schema["fields"][:1]}]
    table.append(data_file("b", 1))
    replaced = table.addition([table.manifest(data_file("c", 1))], replaces=True)
    gone = read_list(table.files, replaced)
    # The newest manifest is of another spec: those of an old one do not wait for more.
    assert [row["partition_spec_id"] for row in gone] == [1, 0]
    assert ref(table.metadata, MAIN) is not None
    assert replaced["summary"]["deleted-data-files"] == "2"


def test_lists_and_manifests_of_version_1_count_as_the_first_of_all(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, properties=MERGING)
    table.append(data_file("a", 1))
    (row,) = table.rows()
    old = fastavro.reader(io.BytesIO(table.files.read(row["manifest_path"])))
    entries: list[Any] = list(old)
    schema: Any = old.writer_schema
    numbers = ("sequence_number", "file_sequence_number")
    schema["fields"] = [one for one in schema["fields"] if one["name"] not in numbers]
    (file,) = [one for one in schema["fields"] if one["name"] == "data_file"]
    block = {"name": "block_size_in_bytes", "type": "long", "field-id": 105}
    kept = [one for one in file["type"]["fields"] if one["name"] != "content"]
    file["type"]["fields"] = [*kept, block]
    for entry in entries:
        entry["status"] = EXISTING
        entry["data_file"]["block_size_in_bytes"] = 64
    out = io.BytesIO()
    fastavro.writer(out, schema, entries)
    table.files.write(row["manifest_path"], out.getvalue())
    listed = fastavro.reader(io.BytesIO(table.files.read(table.snapshot()["manifest-list"])))
    rows: list[Any] = list(listed)
    schema = listed.writer_schema
    unknown = ("content", "sequence_number", "min_sequence_number")
    schema["fields"] = [one for one in schema["fields"] if one["name"] not in unknown]
    out = io.BytesIO()
    fastavro.writer(out, schema, rows)
    table.files.write(table.snapshot()["manifest-list"], out.getvalue())

    table.append(data_file("b", 1))
    (merged,) = table.rows()
    assert merged["min_sequence_number"] == 0
    assert [entry["sequence_number"] for entry in table.entries()] == [0, 2]
    assert len(table.planned()) == 2


CONTAINER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
    ],
}
CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")


def pack(table: OwnTable, codec: str) -> None:
    """Pack the list of main, and the manifests in it, as another writer does."""
    for row in table.rows():
        packed(Path(row["manifest_path"]), codec)
    packed(Path(table.snapshot()["manifest-list"]), codec)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("replaces", [False, True], ids=["append", "overwrite"])
def test_manifests_and_lists_of_every_codec_are_read(
    codec: str, replaces: bool, tmp_path: Path
) -> None:
    table = OwnTable.new(tmp_path, properties=MERGING)
    table.append(data_file("a", 1), data_file("b", 2))
    (row,) = table.rows()
    pack(table, codec)
    with Path(row["manifest_path"]).open("rb") as file:
        header: Any = fastavro.schemaless_reader(file, CONTAINER, None)
    assert header["meta"]["avro.codec"] == codec.encode()
    assert read_paths(table.files, row) == {"s3://lake/a.parquet": 10, "s3://lake/b.parquet": 20}
    table.commit(table.addition([table.manifest(data_file("c", 3))], replaces=replaces))
    files = [entry["data_file"]["file_path"] for entry in table.entries()]
    names = ["c"] if replaces else ["a", "b", "c"]
    assert files == [f"s3://lake/{name}.parquet" for name in names]
    assert table.planned() == set(files)


def test_codec_that_is_not_read_is_named_with_its_file(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    table.append(data_file("a", 1))
    (row,) = table.rows()
    pack(table, "lz4")
    for read in (
        lambda: read_paths(table.files, row),
        lambda: read_manifest(table.files, row),
    ):
        with pytest.raises(LoadFailed, match="its codec `lz4` is not supported") as caught:
            read()
        assert f"`{row['manifest_path']}`" in caught.value.message
    with pytest.raises(LoadFailed, match=r"snap-.*its codec `lz4` is not supported"):
        table.append(data_file("b", 1))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("damage", ["none", "other", "short", "text", "field"])
def test_damaged_manifest_is_named(codec: str, damage: str, tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    snapshot = table.append(*(data_file(f"a{n}", n) for n in range(99)))
    (row,) = table.rows()
    pack(table, codec)
    for place in (row["manifest_path"], snapshot["manifest-list"]):
        data = Path(place).read_bytes()
        changed = {
            "none": b"",
            "other": b"PAR1" + data[4:],
            "short": data[:-30],
            "text": data.replace(b"avro.schema", b"avro.schemo"),
            "field": data.replace(b'"status"', b'"statue"').replace(b"manifest_path", b"\xff" * 13),
        }
        Path(place).write_bytes(changed[damage])
    for read in (
        lambda: read_paths(table.files, row),
        lambda: read_manifest(table.files, row),
    ):
        with pytest.raises(LoadFailed, match="the Avro file is damaged: ") as caught:
            read()
        assert f"reading `{row['manifest_path']}`" in caught.value.message
        assert caught.value.hint
    with pytest.raises(LoadFailed, match=r"snap-.*the Avro file is damaged"):
        table.append(data_file("b", 1))


@pytest.mark.parametrize("name", ["added_files_count", "added_snapshot_id"])
def test_list_without_what_commits_need_is_named(name: str, tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    place = Path(table.append(data_file("a", 1))["manifest-list"])
    place.write_bytes(place.read_bytes().replace(name.encode(), b"x" * len(name)))
    with pytest.raises(Unsupported, match=f"a list of manifests without `{name}`"):
        table.append(data_file("b", 1))
    # Those who remove files can do without.
    assert len(ManifestLists(table.files).read([table.snapshot()])) == 1
