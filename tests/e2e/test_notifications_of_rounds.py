"""Messages of `notify` while `lakeload sync --every` runs, to a receiver on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.rounds import Rounds, rounds
from tests.e2e.test_rounds import SOURCE, arrives
from tests.servers.ministack import Lake
from tests.servers.report_receiver import receiving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.usefixtures("warm_spark")]

SECRET = "canary-webhook-path-77"
HOOK = {"url": {"env": "HOOK"}}
CODES = {"columns": {"types": {"n": "bigint"}}, "on_bad_value": "FAIL"}


def write(lake: Lake, folder: Path, notify: dict[str, Any], **changes: Any) -> None:
    """Write a pipeline that has a file to load."""
    lake.write_pipeline(
        folder,
        tables=[{"table": "t", "path": "landing", **CODES}],
        source=SOURCE,
        notify={**HOOK, **notify},
        **changes,
    )
    (folder / "landing").mkdir()
    arrives(folder, "1.csv", 1)


def breaks(folder: Path) -> None:
    """A file arrives that cannot be loaded."""
    (folder / "bad.csv").write_text("n\nnot a number\n")
    (folder / "bad.csv").rename(folder / "landing" / "2.csv")


def works_again(folder: Path) -> None:
    """The file is written again, and can be loaded."""
    arrives(folder, "2.csv", 2)


def failing(running: Rounds, count: int) -> None:
    """Wait until so many more rounds have failed."""
    wanted = len(running.failed) + count
    while len(running.failed) < wanted:
        running.next()


def test_pipeline_that_breaks_sends_one_message_and_one_all_clear(
    lake: Lake, tmp_path: Path
) -> None:
    write(lake, tmp_path, {})
    with receiving() as receiver:
        with rounds(lake, tmp_path, HOOK=f"{receiver.url}/{SECRET}") as running:
            assert running.loaded() == 1
            breaks(tmp_path)
            failing(running, 3)
            assert [one["events"] for one in receiver.events] == [["FAILED"]]
            works_again(tmp_path)
            assert running.loaded() == 1
            for _ in range(2):
                running.next()
        failed, restored = receiver.events
        assert (failed["events"], restored["events"]) == (["FAILED"], ["RECOVERED"])
        assert failed["job_id"] == running.failed[0]["job_id"]
        assert failed["tables"][0]["target"] == "shop.t"
        assert "not a number" in failed["text"]
        assert restored["exit_code"] == 0
        assert {one.path for one in receiver.requests} == {f"/{SECRET}"}
        # A second command knows what the first one has sent.
        with rounds(lake, tmp_path, HOOK=f"{receiver.url}/{SECRET}") as running:
            running.next()
        assert len(receiver.events) == 2
    assert not any(SECRET in lake.read(key).decode(errors="replace") for key in lake.keys())  # noqa: SIM118


def test_table_that_is_stale_sends_one_message_and_one_all_clear(
    lake: Lake, tmp_path: Path
) -> None:
    write(lake, tmp_path, {"on": ["STALE", "RECOVERED"]}, freshness="PT3S")
    with receiving() as receiver:
        with rounds(lake, tmp_path, HOOK=f"{receiver.url}/{SECRET}") as running:
            assert running.loaded() == 1
            breaks(tmp_path)
            while not receiver.events:
                failing(running, 1)
                assert len(running.failed) < 30
            failing(running, 2)
            assert [one["events"] for one in receiver.events] == [["STALE"]]
            works_again(tmp_path)
            assert running.loaded() == 1
            running.next()
        stale, restored = receiver.events
    assert (stale["stale"], restored["stale"]) == (["shop.t"], [])
    assert restored["events"] == ["RECOVERED"]
    # It had been up to date for the time that it may be old.
    assert len(running.failed) >= 3


def test_receiver_that_hangs_costs_no_round_more_than_five_seconds(
    lake: Lake, tmp_path: Path
) -> None:
    write(lake, tmp_path, {})
    with (
        receiving(hangs=True) as receiver,
        rounds(lake, tmp_path, HOOK=f"{receiver.url}/{SECRET}") as running,
    ):
        assert running.loaded() == 1
        breaks(tmp_path)
        failing(running, 1)
        delays = []
        for _ in range(3):
            before = running.ended_at
            document = running.next()
            # The next round begins when the message was given up, or with the next second.
            delays.append(running.ended_at - before - document["seconds"] - 1)
        works_again(tmp_path)
        assert running.loaded() == 1
    assert len(running.failed) == 4
    assert max(delays) < 5
    # The receiver was waited for.
    assert min(delays) > 1
