"""Every row of the outcome table, against real child processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakeload.launch.outcome import (
    NOTHING_COMMITTED,
    Ending,
    Outcome,
    OutcomeKind,
    decide,
    probable_cause,
    read_result,
)
from lakeload.launch.process import LIMIT, Running, StopTimeouts, members, read_log
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.events import Event
from lakeload_jobs.contract.result import RunResult
from lakeload_jobs.contract.traits import FORMATS
from tests.unit.launch.specs import prepared

MAYBE = FORMATS["PARQUET"].commit_unknown
SHORT = StopTimeouts(term=1.5, survivors=3.0, stragglers=0.3)


@dataclass
class Run:
    outcome: Outcome
    events: list[Event]
    ending: Ending
    folder: RunFolder
    seconds: float
    unreadable: int


def run(runs: Path, scenario: str, when: Callable[[Event, RunFolder], None] | None = None) -> Run:
    spec, folder, submission = prepared(runs, scenario)
    started = time.monotonic()
    events = []
    with StopRequests() as stop, Running(submission, folder, stop, SHORT) as running:
        for event in running.events():
            events.append(event)
            if when:
                when(event, folder)
        ending = running.ending
        unreadable = running.unreadable_events
    outcome = decide(
        ending,
        read_result(RunResult, folder.result, spec.attempt_id),
        running.observed,
        spec.tables,
        probable_cause(read_log(folder.log), ending.exit_status, running.observed.opened),
        maybe=MAYBE,
    )
    seconds = time.monotonic() - started
    # What was killed is there until the system has taken it away.
    end = time.monotonic() + 10
    while (left := members(running.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == [], "a process was left behind"
    assert not folder.properties.exists(), "spark.conf was left behind"
    return Run(outcome, events, ending, folder, seconds, unreadable)


def interrupt_once_at(stage: str) -> Callable[[Event, RunFolder], None]:
    def when(event: Event, folder: RunFolder) -> None:
        if event.kind == "stage" and event.stage == stage:
            os.kill(os.getpid(), signal.SIGINT)

    return when


@pytest.mark.parametrize(
    ("scenario", "kind", "code", "words"),
    [
        ("success", "LOADED", 0, None),
        ("one_table_fails", "FAILED", 1, None),
        ("job_fails", "FAILED", 3, "AccessDenied"),
        ("no_result", "NO_RESULT", 1, "reported no result"),
        ("failed_result_but_zero", "FAILED", 1, None),
        ("result_but_nonzero", "RESULT_MISMATCH", 5, "ended with status 134"),
        ("dies", "CRASHED", 4, "ran out of memory (Java heap space)"),
        ("killed", "CRASHED", 4, "SIGKILL"),
        ("never_opens", "START_FAILED", 4, "incomplete"),
        ("garbage_events", "LOADED", 0, None),
        ("events_of_another_version", "LOADED", 0, None),
        ("result_of_another_version", "NO_RESULT", 1, "contract 2"),
        ("result_of_another_attempt", "NO_RESULT", 1, "another attempt"),
        ("broken_result", "NO_RESULT", 1, "cannot be read"),
        ("closes_stdout", "LOADED", 0, None),
        ("partial_lines", "LOADED", 0, None),
        ("dies_and_its_driver_tells", "FAILED", 1, "the JVM is gone"),
    ],
)
def test_each_way_to_end_has_its_outcome(
    tmp_path: Path, scenario: str, kind: OutcomeKind, code: int, words: str | None
) -> None:
    outcome = run(tmp_path, scenario).outcome
    assert (outcome.kind, outcome.exit_code) == (kind, code)
    assert len(outcome.tables) == 2
    if words is None:
        assert outcome.error is None
    else:
        assert outcome.error is not None
        assert words in outcome.error.message


def test_all_events_arrive_in_order(tmp_path: Path) -> None:
    events = run(tmp_path, "success").events
    assert [event.kind for event in events[:3]] == ["opened", "stage", "stage"]
    assert events[-1].kind == "closed"
    assert [e.name for e in events if e.kind == "table"] == ["LOADED", "LOADED"]


def test_partial_event_line_is_buffered(tmp_path: Path) -> None:
    ended = run(tmp_path, "partial_lines")
    assert [event.kind for event in ended.events[:2]] == ["opened", "stage"]
    assert ended.unreadable == 0


def test_event_lines_that_are_invalid_are_counted_and_ignored(tmp_path: Path) -> None:
    ended = run(tmp_path, "garbage_events")
    assert ended.unreadable == 5
    assert ended.events[0].kind == "opened"


def test_spark_conf_file_is_removed_once_the_job_has_opened(tmp_path: Path) -> None:
    seen = []

    def when(event: Event, folder: RunFolder) -> None:
        seen.append(folder.properties.exists())

    run(tmp_path, "success", when)
    assert not any(seen)


def test_a_table_in_its_commit_when_the_driver_died_is_unknown(tmp_path: Path) -> None:
    first, second = run(tmp_path, "killed").outcome.tables
    assert first.error is not None
    assert second.error is not None
    assert (first.error.message, first.error.stage) == (MAYBE, "commit")
    assert second.error.message == NOTHING_COMMITTED


def test_a_table_reported_loaded_before_the_result_was_lost_is_loaded(tmp_path: Path) -> None:
    tables = run(tmp_path, "no_result").outcome.tables
    assert [table.status for table in tables] == ["LOADED", "LOADED"]
    assert "not known" in tables[0].warnings[0]


def test_a_flooded_log_stays_bounded_and_keeps_both_ends(tmp_path: Path) -> None:
    ended = run(tmp_path, "floods_its_log")
    assert ended.outcome.kind == "LOADED"
    assert ended.folder.log.stat().st_size <= LIMIT + 300_000_000 // 2
    log = read_log(ended.folder.log)
    assert "lakeload cut the middle" in ended.folder.log.read_text()
    assert log.rstrip().endswith("the last line")


def test_interrupted_job_reports_its_leftovers(tmp_path: Path) -> None:
    ended = run(tmp_path, "ends_when_told", interrupt_once_at("session"))
    assert (ended.outcome.kind, ended.outcome.exit_code) == ("INTERRUPTED", 130)
    assert ended.outcome.error is not None
    assert ended.outcome.error.message == "stopped by SIGINT: nothing was committed"
    assert ended.ending.exit_status == 143
    assert ended.seconds < 10


def test_interrupting_before_a_commit_means_nothing_was_committed(tmp_path: Path) -> None:
    outcome = run(tmp_path, "stops_at_once", interrupt_once_at("session")).outcome
    assert outcome.error is not None
    assert outcome.error.message == "stopped by SIGINT: nothing was committed"
    assert {table.status for table in outcome.tables} == {"INTERRUPTED"}


def test_interrupting_during_a_commit_means_it_is_unknown(tmp_path: Path) -> None:
    outcome = run(tmp_path, "stops_while_committing", interrupt_once_at("commit")).outcome
    assert outcome.exit_code == ExitCode.INTERRUPTED
    assert outcome.error is not None
    assert outcome.error.message.endswith(f"`orders` is {MAYBE}")


def test_job_ignoring_sigterm_is_killed(tmp_path: Path) -> None:
    ended = run(tmp_path, "ignores_term", interrupt_once_at("session"))
    assert ended.ending.killed
    assert ended.ending.exit_status == -signal.SIGKILL
    assert SHORT.term <= ended.seconds < SHORT.term + 5
    assert ended.outcome.error is not None
    assert "killed because" in ended.outcome.error.message


def test_second_signal_kills_the_job(tmp_path: Path) -> None:
    def twice(event: Event, folder: RunFolder) -> None:
        if event.stage == "session":
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()

    ended = run(tmp_path, "ignores_term", twice)
    assert ended.ending.stopped_by is signal.SIGTERM
    assert ended.seconds < SHORT.term + 0.5


def test_grandchild_in_its_own_process_group_is_killed(tmp_path: Path) -> None:
    ended = run(tmp_path, "leaves_a_grandchild")
    assert ended.outcome.kind == "LOADED"
    grandchild = int((ended.folder.path / "grandchild").read_text())
    assert not _lives(grandchild)


def test_watcher_failure_leaves_no_process(tmp_path: Path) -> None:
    _, folder, submission = prepared(tmp_path, "ignores_term")
    running = Running(submission, folder, StopRequests(), SHORT)

    def watch() -> None:
        with running:
            next(running.events())
            raise RuntimeError("the screen broke")

    with pytest.raises(RuntimeError, match="the screen broke"):
        watch()
    assert members(running.pid) == []


def _lives(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
