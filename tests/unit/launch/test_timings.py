"""The times of a sync: phases add up to the whole, stages to their table."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from lakeload.launch.timings import PHASES, Timings, WallTime, process_started
from lakeload_jobs.contract.events import Event, EventKind

START = 1_760_000_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the module, which stands still unless a test moves it."""
    now = [START]
    monkeypatch.setattr("lakeload.launch.timings.time.time", lambda: now[0])
    return now


def event(kind: EventKind, seconds: float, **fields: Any) -> Event:
    return Event(kind, datetime.fromtimestamp(START + seconds, UTC), **fields)


def seconds_of(found: WallTime) -> dict[str, float]:
    return {phase.name: phase.seconds for phase in found.phases}


def a_load(*events: Event, clock: list[float], seconds: float) -> WallTime:
    times = Timings(START - 0.25)
    times.begin("documents")
    clock[0] = START + 1
    times.begin("spark")
    for one in events:
        times.note(one)
    clock[0] = START + seconds
    times.begin("summary")
    return times.finish()


LOADED = (
    event("opened", 4),
    event("stage", 4.5, table="orders", stage="open"),
    event("stage", 5, table="orders", stage="stage"),
    event("stage", 5.5, table="people", stage="open"),
    event("stage", 6, table="orders", stage="commit"),
    event("table", 6.5, table="orders", name="LOADED"),
    event("stage", 7, table="people", stage="commit"),
    event("table", 8, table="people", name="LOADED"),
    event("closed", 8.25, name="SUCCEEDED"),
)


def test_phases_add_up_and_end_where_the_next_begins(clock: list[float]) -> None:
    found = a_load(*LOADED, clock=clock, seconds=9)

    assert seconds_of(found) == {
        "start": 0.25,
        "documents": 1,
        "spark": 3,
        "destination": 0.5,
        "tables": 3.5,
        "shutdown": 1,
        "summary": 0,
    }
    assert found.seconds == 9.25
    assert list(seconds_of(found)) == [name for name in PHASES if name in seconds_of(found)]


def test_stages_add_up_to_their_table(clock: list[float]) -> None:
    orders, people = a_load(*LOADED, clock=clock, seconds=9).tables

    assert (orders.table, orders.seconds) == ("orders", 2)
    assert [(one.name, one.seconds) for one in orders.stages] == [
        ("open", 0.5),
        ("stage", 1),
        ("commit", 0.5),
    ]
    assert (people.table, people.seconds) == ("people", 2.5)


def test_stage_that_a_table_enters_again_is_one(clock: list[float]) -> None:
    again = (
        event("stage", 5, table="orders", stage="open"),
        event("stage", 6, table="orders", stage="stage"),
        event("stage", 8, table="orders", stage="open"),
        event("table", 9, table="orders", name="LOADED"),
    )

    (orders,) = a_load(*again, clock=clock, seconds=10).tables

    assert [(one.name, one.seconds) for one in orders.stages] == [("open", 2), ("stage", 2)]


def test_second_driver_goes_through_the_phases_again(clock: list[float]) -> None:
    times = Timings(START)
    times.begin("spark")
    for one in (
        event("opened", 4),
        event("stage", 5, table="priced", stage="open"),
        event("stage", 6, table="priced", stage="stage"),
        event("closed", 7, name="FAILED"),
    ):
        times.note(one)
    clock[0] = START + 8
    times.begin("preparation")
    clock[0] = START + 10
    times.begin("spark")
    for one in (
        event("opened", 14),
        event("stage", 15, table="priced", stage="open"),
        event("stage", 16, table="priced", stage="commit"),
        event("table", 19, table="priced", name="LOADED"),
        event("closed", 20, name="SUCCEEDED"),
    ):
        times.note(one)
    clock[0] = START + 21
    times.begin("summary")
    found = times.finish()

    assert seconds_of(found) == {
        "start": 0,
        "spark": 8,
        "destination": 2,
        "tables": 6,
        "shutdown": 3,
        "preparation": 2,
        "summary": 0,
    }
    (priced,) = found.tables
    assert [(one.name, one.seconds) for one in priced.stages] == [
        ("open", 2),
        ("stage", 1),
        ("commit", 3),
    ]


def test_killed_job_ends_its_tables_with_its_last_event(clock: list[float]) -> None:
    found = a_load(*LOADED[:5], clock=clock, seconds=60)

    orders, people = found.tables
    assert (orders.seconds, people.seconds) == (1.5, 0.5)
    assert seconds_of(found)["tables"] == 55.5
    assert found.seconds == 60.25


def test_clock_that_goes_back_takes_no_phase_below_zero(clock: list[float]) -> None:
    found = a_load(*(event(one.kind, -50) for one in LOADED), clock=clock, seconds=-40)

    assert min(seconds_of(found).values()) == 0
    assert found.seconds == 1.25


def test_start_of_the_process_is_that_of_the_system() -> None:
    assert process_started() == pytest.approx(psutil.Process(os.getpid()).create_time(), abs=2)


def test_start_of_the_process_is_now_where_the_system_does_not_say_it(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("1 (python) S")

    assert process_started(tmp_path / "stat") == pytest.approx(time.time(), abs=2)
    assert process_started(tmp_path / "missing") == pytest.approx(time.time(), abs=2)
