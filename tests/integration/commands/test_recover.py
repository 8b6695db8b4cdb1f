"""`lakeload recover`: what it finishes, what it asks of a person, and how it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.storage.objects import Objects
from tests.integration.commands.conftest import Command
from tests.integration.formats.parquet.log.writer import Writer, commit_only
from tests.servers.ministack import Lake

Load = Callable[..., Writer]


def damage(objects: Objects, writer: Writer, number: int) -> LoadRecord:
    """Commit a job of three files; publish the first, lose the second, leave the third open."""
    record = commit_only(objects, writer, number)
    first, second, _ = record.files
    objects.complete_upload(first.key, first.upload_id, first.parts)
    objects.abort_upload(second.key, second.upload_id)
    return record


@pytest.fixture
def broken(admin_objects: Objects, load: Load) -> LoadRecord:
    """`orders` with a job that is damaged, `visits` with one that is not finished."""
    load("monday")
    load("monday", table="visits")
    waiting = Writer(admin_objects, "tuesday", table="visits", source="visits", files=3)
    commit_only(admin_objects, waiting, 2)
    return damage(admin_objects, Writer(admin_objects, "tuesday", files=3), 2)


def statuses(document: dict[str, object]) -> dict[str, str]:
    tables = document["tables"]
    assert isinstance(tables, list)
    return {table["target"]: table["status"] for table in tables}


def test_one_damaged_table_does_not_stop_the_others(
    command: Command, broken: LoadRecord, lake: Lake
) -> None:
    before = lake.keys()
    foreseen = command("recover", "pipeline.yml", "--dry-run", "--output", "json")
    assert foreseen.code == 1
    assert statuses(foreseen.document) == {
        "shop.orders": "DAMAGED",
        "shop.visits": "UNFINISHED",
        "shop.payments": "UP_TO_DATE",
    }
    assert lake.keys() == before
    ended = command("recover", "pipeline.yml", "--output", "json")
    assert ended.code == ended.document["exit_code"] == 1
    assert statuses(ended.document)["shop.visits"] == "RECOVERED"
    assert [key for key in lake.data_keys() if "visits" in key and "tuesday" in key] != []
    (orders,) = [t for t in ended.document["tables"] if t["target"] == "shop.orders"]
    assert orders["damaged"][0]["lost"] == [broken.files[1].key]
    assert orders["damaged"][0]["lost_rows"] == 1


def test_recover_text_fits_80_columns_and_shows_commands(
    command: Command, broken: LoadRecord
) -> None:
    ended = command("recover", "pipeline.yml")
    assert ended.lines() == [
        "table          status      what was done",
        "shop.orders    DAMAGED     job tuesday is damaged",
        "shop.visits    RECOVERED   published 3 files of job tuesday: 3 rows",
        "shop.payments  UP_TO_DATE  nothing to do",
    ]
    assert "has lost 1 of 3 rows" in ended.err
    assert "`lakeload recover pipeline.yml --void tuesday`" in ended.err


def test_void_without_yes_is_a_dry_run(command: Command, broken: LoadRecord, lake: Lake) -> None:
    before = lake.keys()
    shown = command("recover", "pipeline.yml", "--table", "orders", "--void", "tuesday")
    assert shown.code == 2
    assert broken.files[1].key in shown.out
    assert "lost: 1 file, 1 row" in shown.out
    assert "to be removed: 2 files, 2 rows" in shown.out
    typed = "`lakeload recover pipeline.yml --table orders --void tuesday --yes`"
    assert typed in shown.err.replace("\n", " ")
    assert lake.keys() == before
    done = command("recover", "pipeline.yml", "--table", "orders", "--void", "tuesday", "--yes")
    assert done.code == 0
    assert "removed: 2 files, 2 rows" in done.out
    assert not [key for key in lake.data_keys() if "orders" in key and "tuesday" in key]
    # The unfinished job of the same id in the other table was not meant.
    assert command("recover", "pipeline.yml").code == 0
    assert [key for key in lake.data_keys() if "visits" in key and "tuesday" in key] != []


def test_void_in_a_copied_log_leaves_the_rows_of_the_original(
    command: Command, broken: LoadRecord, lake: Lake, admin_objects: Objects
) -> None:
    original, copy = (
        TableLocation("data-lake/test", "shop", name).log_path for name in ("orders", "payments")
    )
    before = lake.keys()
    for key in filter(lambda key: key.startswith(original), before):
        body = admin_objects.get(key)
        assert body is not None
        admin_objects.put(copy + key.removeprefix(original), body)
    before = lake.keys()

    ended = command("recover", "pipeline.yml", "--table", "payments", "--void", "tuesday", "--yes")

    assert ended.code == 1
    assert "is a record of the table `data-lake/test/shop/orders`" in ended.err.replace("\n", " ")
    assert lake.keys() == before


def test_void_without_table_lists_every_table_of_the_job(
    command: Command, broken: LoadRecord
) -> None:
    shown = command("recover", "pipeline.yml", "--void", "tuesday", "--output", "json")
    assert shown.code == shown.document["exit_code"] == 2
    assert not shown.document["done"]
    assert [table["target"] for table in shown.document["tables"]] == ["shop.orders", "shop.visits"]


def test_accept_keeps_the_existing_rows(command: Command, broken: LoadRecord, lake: Lake) -> None:
    shown = command("recover", "pipeline.yml", "--accept", "tuesday", "--dry-run")
    assert shown.code == 0
    assert "to be kept: 2 files, 2 rows" in shown.out
    ended = command("recover", "pipeline.yml", "--accept", "tuesday", "--output", "json")
    assert ended.code == 0
    (table,) = ended.document["tables"]
    assert (table["outcome"], table["lost_rows"], table["left_rows"]) == ("partial", 1, 2)
    keys = lake.data_keys()
    assert [file.key in keys for file in broken.files] == [True, False, True]
    assert command("recover", "pipeline.yml").code == 0


def test_void_or_accept_of_an_undamaged_job_is_rejected(
    command: Command, broken: LoadRecord
) -> None:
    typo = command("recover", "pipeline.yml", "--void", "tuesdy")
    assert typo.code == 2
    assert "did you mean `tuesday`?" in typo.err
    done = command("recover", "pipeline.yml", "--accept", "monday")
    assert done.code == 2
    assert "no job of this id is damaged" in done.err


def test_recover_aborts_stale_uploads_older_than_the_limit(
    command: Command, load: Load, admin_objects: Objects, lake: Lake
) -> None:
    load("monday")
    Writer(admin_objects, "dead").stage()
    assert command("recover", "destination.yml").code == 0
    assert len(lake.uploads()) == 2
    shown = command("recover", "destination.yml", "--abort-older-than", "0", "--dry-run")
    assert "would remove 2 uploads of abandoned attempts" in shown.out
    assert len(lake.uploads()) == 2
    ended = command("recover", "destination.yml", "--abort-older-than", "0")
    assert (ended.code, lake.uploads()) == (0, [])
    assert "removed 2 uploads of abandoned attempts" in ended.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--abort-older-than", "soon"], "is not an age"),
        (["--void", "a", "--accept", "b"], "cannot be used together"),
        (["--yes"], "`--yes` belongs to `--void`"),
        (["--void", "not an id"], "a job id consists of"),
        (["--table", "oders"], "did you mean `orders`?"),
    ],
)
def test_recover_wrong_flag_is_rejected_before_any_request(
    command: Command, arguments: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeload.probes.connection.preflight", None)
    ended = command("recover", "pipeline.yml", *arguments)
    assert ended.code == 2
    assert expected in ended.err


def test_recover_access_denied_exits_with_3(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_ADMIN_KEY", "somebody-else")
    ended = command("recover", "pipeline.yml", "--output", "json")
    assert ended.code == ended.document["error"]["exit_code"] == 3
