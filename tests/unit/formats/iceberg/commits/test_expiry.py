"""Which snapshots expire, and which files go with them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.formats.iceberg.commits import expiry
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected
from lakeload_jobs.formats.iceberg.commits.expiry import (
    Expired,
    expired,
    freed_files,
    requirements,
    updates,
)
from lakeload_jobs.formats.iceberg.commits.manifests import (
    DELETED,
    ManifestLists,
    read_list,
    read_manifest,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    add_schema,
    add_spec,
    check,
    ref,
    remove_snapshots,
    set_branch,
    snapshot_of,
    updated,
)
from tests.unit.formats.iceberg.commits.own_table import BY_CITY, NOW, SCHEMA, OwnTable, data_file

DAY = 24 * 60 * 60 * 1000


def metadata(
    days_old: dict[int, tuple[float, int | None]],
    refs: dict[str, dict[str, Any]],
    **properties: str,
) -> Json:
    """Snapshots of these ages, each with its parent."""
    return {
        "properties": {
            f"history.expire.{name.replace('_', '-')}": v for name, v in properties.items()
        },
        "snapshots": [
            {
                "snapshot-id": number,
                "timestamp-ms": NOW - int(age * DAY),
                **({} if parent is None else {"parent-snapshot-id": parent}),
            }
            for number, (age, parent) in days_old.items()
        ],
        "refs": refs,
    }


CHAIN: dict[int, tuple[float, int | None]] = {1: (20, None), 2: (10, 1), 3: (4, 2), 4: (1, 3)}


def branch(snapshot: int, **settings: int) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot,
        "type": "branch",
        **{name.replace("_", "-"): value for name, value in settings.items()},
    }


@pytest.mark.parametrize(
    ("refs", "properties", "given", "gone"),
    [
        ({"main": branch(4)}, {}, {}, (1, 2)),
        ({"main": branch(4)}, {"max_snapshot_age_ms": str(2 * DAY)}, {}, (1, 2, 3)),
        ({"main": branch(4)}, {"min_snapshots_to_keep": "3"}, {}, (1,)),
        ({"main": branch(4)}, {}, {"older_than_ms": NOW}, (1, 2, 3)),
        ({"main": branch(4)}, {}, {"older_than_ms": NOW, "retain_last": 2}, (1, 2)),
        ({"main": branch(4, max_snapshot_age_ms=15 * DAY)}, {}, {"older_than_ms": NOW}, (1,)),
        ({"main": branch(4, min_snapshots_to_keep=4)}, {}, {"older_than_ms": NOW}, ()),
        ({"main": branch(4), "kept": {"snapshot-id": 1, "type": "tag"}}, {}, {}, (2,)),
        ({"main": branch(4), "b": branch(2)}, {}, {"older_than_ms": NOW}, (1, 3)),
        # Nobody refers to 3 and 4: they stay while they are young.
        ({"main": branch(2)}, {}, {}, (1,)),
        ({"main": branch(2)}, {}, {"older_than_ms": NOW - 2 * DAY}, (1, 3)),
        ({}, {}, {}, (1, 2)),
    ],
)
def test_snapshots_expire_as_the_retention_says(
    refs: dict[str, Any], properties: dict[str, str], given: dict[str, int], gone: tuple[int, ...]
) -> None:
    wanted = {"older_than_ms": None, "retain_last": None, **given}
    assert expired(metadata(CHAIN, refs, **properties), NOW, **wanted) == Expired(gone, ())


def test_old_references_go_with_their_snapshots_and_main_stays() -> None:
    refs = {
        "main": branch(2, max_ref_age_ms=1),
        "old": branch(3),
        "own": branch(3, max_ref_age_ms=9 * DAY),
        "tag": {"snapshot-id": 1, "type": "tag"},
        "dangling": branch(77),
    }
    found = expired(
        metadata(CHAIN, refs, max_ref_age_ms=str(2 * DAY)), NOW, older_than_ms=NOW, retain_last=1
    )
    assert found == Expired((1, 4), ("dangling", "old", "tag"))


def test_metadata_without_references_keeps_its_current_snapshot() -> None:
    before = {**metadata(CHAIN, {}), "current-snapshot-id": 4}
    assert expired(before, NOW, older_than_ms=NOW, retain_last=None) == Expired((1, 2, 3), ())


def files(table: OwnTable, meta: Json) -> set[str]:
    """Every file that the snapshots of the metadata name."""
    found = set()
    for snapshot in meta["snapshots"]:
        found.add(snapshot["manifest-list"])
        for row in read_list(table.files, snapshot):
            found.add(row["manifest_path"])
            entries = read_manifest(table.files, row).entries
            found |= {one["data_file"]["file_path"] for one in entries if one["status"] != DELETED}
    return found


def after(table: OwnTable, gone: Expired) -> Json:
    made = updates(ManifestLists(table.files), table.metadata, gone)
    return updated(table.metadata, made, replaces="before", now_ms=NOW)


@pytest.mark.parametrize("seed", range(12))
def test_freed_files_are_those_that_no_snapshot_has_any_more(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)  # noqa: S311
    monkeypatch.setattr(expiry, "_HELD", rng.choice([1, 5, 1_000_000]))
    properties = {"commit.manifest.min-count-to-merge": str(rng.choice([2, 100]))}
    table = OwnTable.new(tmp_path, version=2 + seed % 2, spec=BY_CITY, properties=properties)
    for number in range(12):
        name = rng.choice([MAIN, MAIN, "side"])
        if name == "side" and "side" not in table.metadata["refs"] and table.metadata["refs"]:
            at = ref(table.metadata, MAIN)
            assert at is not None
            table.metadata = updated(
                table.metadata, [set_branch("side", at)], replaces="before", now_ms=NOW
            )
        some = [data_file(f"{number}-{n}", 1 + n, city="x") for n in range(rng.randint(1, 3))]
        head = ref(table.metadata, name)
        replaces = rng.random() < 0.3
        table.commit(table.addition([table.manifest(*some)], head, replaces=replaces), name)
    heads = {at["snapshot-id"] for at in table.metadata["refs"].values()}
    ids = [one["snapshot-id"] for one in table.metadata["snapshots"]]
    gone = tuple(one for one in ids if one not in heads and rng.random() < 0.7)
    now = after(table, Expired(gone, ()))

    freed = list(freed_files(ManifestLists(table.files), table.metadata, now))

    found = [place for one in freed for place in (*one.files, *one.lists)]
    assert sorted(found) == sorted(files(table, table.metadata) - files(table, now))
    assert sum(len(one.lists) for one in freed) == len(gone)
    sizes = {place: size for one in freed for place, size in one.files.items()}
    for place, size in sizes.items():
        if place.startswith(str(tmp_path)):
            assert Path(place).stat().st_size == size


def test_nothing_is_read_of_files_where_every_manifest_stays(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    first = table.append(data_file("a", 1))
    table.append(data_file("b", 1))
    now = after(table, Expired((first["snapshot-id"],), ()))
    for row in table.rows():
        Path(row["manifest_path"]).unlink()
    [nothing, one] = freed_files(ManifestLists(table.files), table.metadata, now)
    assert (one.files, one.lists, nothing.files) == ({}, {first["manifest-list"]}, {})


def test_statistics_go_with_their_snapshot(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    first, second = table.append(data_file("a", 1)), table.append(data_file("b", 1))
    table.metadata["statistics"] = [
        {
            "snapshot-id": snapshot["snapshot-id"],
            "statistics-path": f"s3://lake/{name}.puffin",
            "file-size-in-bytes": 7,
        }
        for name, snapshot in (("old", first), ("new", second))
    ]
    now = after(table, Expired((first["snapshot-id"],), ()))
    [nothing, one] = freed_files(ManifestLists(table.files), table.metadata, now)
    assert (nothing.files, one.files) == ({}, {"s3://lake/old.puffin": 7})


def test_schemas_and_specs_that_only_expired_snapshots_used_are_removed(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=BY_CITY)
    first = table.append(data_file("a", 1, city="x"))
    wider = [*SCHEMA["fields"], {"id": 3, "name": "more", "required": False, "type": "int"}]
    changes = [
        *add_schema({**SCHEMA, "schema-id": 1, "fields": wider}),
        *add_spec({"spec-id": 1, "fields": []}),
    ]
    table.metadata = updated(table.metadata, changes, replaces="before", now_ms=NOW)
    added = table.append(data_file("b", 1))
    assert {row["partition_spec_id"] for row in table.rows()} == {0, 1}
    still = after(table, Expired((first["snapshot-id"],), ()))
    # The file of the first is in the second, by a manifest of the first spec.
    assert [one["schema-id"] for one in still["schemas"]] == [1]
    assert [one["spec-id"] for one in still["partition-specs"]] == [0, 1]
    table.commit(table.addition([table.manifest(data_file("c", 1))], replaces=True))
    table.append(data_file("d", 1))
    old = [one["snapshot-id"] for one in table.metadata["snapshots"][:-1]]
    assert added["snapshot-id"] in old
    now = after(table, Expired(tuple(old), ()))
    assert [one["spec-id"] for one in now["partition-specs"]] == [1]
    assert snapshot_of(now, ref(now, MAIN) or 0) == table.snapshot()


def test_commit_asserts_every_reference_and_the_definition(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    first = table.append(data_file("a", 1))
    table.append(data_file("b", 1))
    wanted = requirements(table.metadata)
    check(table.metadata, wanted)
    back = [set_branch(MAIN, first["snapshot-id"])]
    rolled = updated(table.metadata, back, replaces="before", now_ms=NOW)
    with pytest.raises(CommitRejected):
        check(rolled, wanted)
    with pytest.raises(CommitRejected):
        updated(rolled, [remove_snapshots([first["snapshot-id"]])], replaces=None, now_ms=NOW)


def test_snapshots_without_lists_expire_with_the_manifests_that_they_name(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path)
    first = table.append(data_file("a", 1))
    [old] = table.rows()
    table.commit(table.addition([table.manifest(data_file("b", 2))], replaces=True))
    table.append(data_file("c", 3))
    before = [one["snapshot-id"] for one in table.metadata["snapshots"][:-1]]
    named = next(one for one in table.metadata["snapshots"] if one == first)
    place = named.pop("manifest-list")
    named["manifests"] = [old["manifest_path"]]
    now = after(table, Expired(tuple(before), ()))
    [data, rest] = freed_files(ManifestLists(table.files), table.metadata, now)
    assert data.files == {"s3://lake/a.parquet": 10}
    # Nobody knows the bytes of the manifest.
    assert old["manifest_path"] in rest.lists
    assert old["manifest_path"] not in rest.files
    assert place not in rest.lists
