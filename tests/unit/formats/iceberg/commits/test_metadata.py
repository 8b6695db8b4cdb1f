"""What a commit requires of the metadata of a table, and what it changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, Unsupported
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    NOTHING,
    Json,
    NewTable,
    add_snapshot,
    assert_ref,
    assert_uuid,
    check,
    normalised,
    ref,
    remove_properties,
    remove_ref,
    schema_of,
    set_branch,
    set_properties,
    spec_of,
    updated,
)

PLACE = "s3://lake/shop/orders"
SCHEMA: Json = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {
            "id": 2,
            "name": "tags",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 5,
                "element": "string",
                "element-required": False,
            },
        },
    ],
}


def table(version: int = 2, **properties: str) -> Json:
    new = NewTable(
        SCHEMA, {"spec-id": 0, "fields": []}, {"order-id": 0, "fields": []}, properties, version
    )
    return updated(NOTHING, new.updates(PLACE), replaces=None, now_ms=1_000)


def snapshot(number: int, sequence: int, parent: int | None = None, **more: Any) -> Json:
    return {
        "snapshot-id": number,
        "sequence-number": sequence,
        "timestamp-ms": 1_000 + sequence,
        "manifest-list": f"{PLACE}/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
        **({} if parent is None else {"parent-snapshot-id": parent}),
        **more,
    }


def commit(metadata: Json, *updates: Json, now: int = 2_000) -> Json:
    return updated(metadata, updates, replaces=f"{PLACE}/metadata/v.json", now_ms=now)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_new_table_is_what_pyiceberg_reads(version: int) -> None:
    made = TableMetadataUtil.parse_obj(table(version, owner="we"))
    assert (made.format_version, made.location, made.last_column_id) == (version, PLACE, 5)
    assert made.properties == {"owner": "we"}
    assert [field.name for field in made.schema().fields] == ["id", "tags"]
    assert made.current_snapshot_id is None


def test_snapshot_becomes_the_head_and_is_logged() -> None:
    metadata = commit(table(), add_snapshot(snapshot(7, 1)), set_branch(MAIN, 7))
    assert (ref(metadata, MAIN), metadata["last-sequence-number"]) == (7, 1)
    assert metadata["snapshot-log"] == [{"snapshot-id": 7, "timestamp-ms": 2_000}]
    assert metadata["metadata-log"] == [
        {"timestamp-ms": 1_000, "metadata-file": f"{PLACE}/metadata/v.json"}
    ]
    assert TableMetadataUtil.parse_obj(metadata).current_snapshot_id == 7


def test_branch_of_its_own_leaves_main_and_keeps_its_settings() -> None:
    mine = {**set_branch("mine", 7), "min-snapshots-to-keep": 1}
    metadata = commit(table(), add_snapshot(snapshot(7, 1)), mine)
    assert ref(metadata, MAIN) is None
    assert metadata["refs"]["mine"]["min-snapshots-to-keep"] == 1
    assert metadata["snapshot-log"] == []
    assert commit(metadata, remove_ref("mine"))["refs"] == {}


def test_time_does_not_go_back() -> None:
    metadata = commit(table(), set_properties({"a": "1"}), now=500)
    assert metadata["last-updated-ms"] == 1_000


def test_metadata_log_keeps_as_many_files_as_the_table_says() -> None:
    metadata = commit(table(), set_properties({"write.metadata.previous-versions-max": "2"}))
    for number in range(5):
        metadata = updated(metadata, [], replaces=f"v{number}", now_ms=2_000 + number)
    assert [entry["metadata-file"] for entry in metadata["metadata-log"]] == ["v3", "v4"]


def test_fields_that_are_not_known_stay_and_the_metadata_before_is_left_alone() -> None:
    before = {**table(), "from-the-future": {"deep": [1]}}
    kept = copy.deepcopy(before)
    after = commit(before, set_properties({"a": "1"}), remove_properties(["b"]))
    assert after["from-the-future"] == {"deep": [1]}
    assert before == kept
    assert commit(after, remove_properties(["a"]))["properties"] == {}


def test_row_ids_go_on_where_the_last_commit_ended() -> None:
    first = snapshot(7, 1, **{"first-row-id": 0, "added-rows": 5})
    metadata = commit(table(3), add_snapshot(first), set_branch(MAIN, 7))
    assert metadata["next-row-id"] == 5
    late = snapshot(8, 2, 7, **{"first-row-id": 3, "added-rows": 5})
    with pytest.raises(CommitRejected, match="has given out the ids of these rows"):
        commit(metadata, add_snapshot(late))


@pytest.mark.parametrize(
    ("update", "says"),
    [
        (add_snapshot(snapshot(7, 2, 7)), "has a snapshot 7 already"),
        (add_snapshot(snapshot(8, 1, 7)), "the sequence number 1 is taken"),
        (set_branch(MAIN, 99), "has no snapshot 99"),
        ({"action": "upgrade-format-version", "format-version": 1}, "cannot be lowered"),
    ],
)
def test_update_that_contradicts_the_table_is_rejected(update: Json, says: str) -> None:
    metadata = commit(table(), add_snapshot(snapshot(7, 1)), set_branch(MAIN, 7))
    with pytest.raises(CommitRejected, match=says):
        commit(metadata, update)


def test_what_this_version_does_not_know_is_not_guessed() -> None:
    with pytest.raises(Unsupported, match="the update `set-statistics`"):
        commit(table(), {"action": "set-statistics"})
    with pytest.raises(Unsupported, match="the format version 4"):
        commit(table(), {"action": "upgrade-format-version", "format-version": 4})
    with pytest.raises(Unsupported, match="the requirement `assert-moon`"):
        check(table(), [{"type": "assert-moon"}])


def test_requirements_are_about_the_table_that_was_read() -> None:
    metadata = commit(table(), add_snapshot(snapshot(7, 1)), set_branch(MAIN, 7))
    check(metadata, [assert_uuid(metadata), assert_ref(MAIN, 7), assert_ref("mine", None)])
    for requirement, says in (
        (assert_uuid(table()), "dropped and another one created"),
        (assert_ref(MAIN, 6), "has moved the branch `main`"),
        (assert_ref("mine", 7), "the branch `mine` does not exist any more"),
        (assert_ref(MAIN, None), "has created the branch `main`"),
    ):
        with pytest.raises(CommitRejected, match=says):
            check(metadata, [requirement])


OF_VERSION_1: Json = {
    "format-version": 1,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": PLACE,
    "last-updated-ms": 1,
    "last-column-id": 2,
    "schema": {
        "type": "struct",
        "fields": [{"id": 2, "name": "a", "required": False, "type": "int"}],
    },
    "partition-spec": [{"name": "a", "transform": "identity", "source-id": 2}],
    "current-snapshot-id": 7,
    "snapshots": [{"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": "x"}],
}
"""As the first writers of the format have left it."""


def test_table_of_version_1_has_what_later_versions_have() -> None:
    metadata = normalised(OF_VERSION_1)
    assert ref(metadata, MAIN) == 7
    assert [field["name"] for field in schema_of(metadata)["fields"]] == ["a"]
    (field,) = spec_of(metadata)["fields"]
    assert (field["field-id"], metadata["last-partition-id"]) == (1000, 1000)
    assert (metadata["properties"], metadata["metadata-log"]) == ({}, [])
    read = TableMetadataUtil.parse_obj(metadata)
    assert (read.current_snapshot_id, read.spec().fields[0].field_id) == (7, 1000)
    assert normalised(metadata) == metadata


@pytest.mark.parametrize("refs", [{}, {"refs": None}, {"refs": {}}])
def test_branch_beside_a_current_snapshot_without_references_leaves_main(refs: Json) -> None:
    metadata = commit({**OF_VERSION_1, **refs}, set_branch("mine", 7))
    assert (ref(metadata, MAIN), ref(metadata, "mine")) == (7, 7)
    assert metadata["current-snapshot-id"] == 7
    moved = commit(metadata, add_snapshot(snapshot(8, 0, 7)), set_branch(MAIN, 8))
    assert ref(moved, MAIN) == moved["current-snapshot-id"] == 8
    gone = commit(metadata, remove_ref(MAIN))
    assert (ref(gone, MAIN), gone["current-snapshot-id"]) == (None, -1)


@pytest.mark.parametrize("current", [-1, None])
@pytest.mark.parametrize("absent", [True, False])
def test_metadata_without_what_is_empty_takes_a_first_snapshot(
    current: int | None, *, absent: bool
) -> None:
    before = table() | {"current-snapshot-id": current}
    for name in ("snapshots", "snapshot-log", "metadata-log", "properties", "refs", "statistics"):
        before[name] = None
        if absent:
            del before[name]
    assert ref(normalised(before), MAIN) is None
    metadata = commit(
        before, add_snapshot(snapshot(7, 1)), set_branch(MAIN, 7), set_properties({"a": "1"})
    )
    assert (ref(metadata, MAIN), metadata["properties"]) == (7, {"a": "1"})
    assert [entry["snapshot-id"] for entry in metadata["snapshot-log"]] == [7]
    assert len(metadata["metadata-log"]) == 1
    assert TableMetadataUtil.parse_obj(metadata).current_snapshot_id == 7
    left = commit(before, {"action": "remove-snapshots", "snapshot-ids": [3]})
    assert left["snapshots"] == []
