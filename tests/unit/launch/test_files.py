"""Run folders and the log."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from lakeload.launch.process import open_log, read_log, trim
from lakeload.launch.run_folder import create_run_folder, prune_run_folders, runs_directory
from lakeload_jobs.contract.errors import MachineNotReady
from tests.unit.launch.specs import SYNCED


def test_a_run_folder_and_its_files_are_private(tmp_path: Path) -> None:
    folder = create_run_folder(tmp_path / "runs", SYNCED, "a1")
    folder.write(folder.properties, "spark.x=1\n")
    assert folder.path.name == "20261121T101530Z-a1"
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.properties.stat().st_mode & 0o777 == 0o600


def test_a_run_folder_that_cannot_be_made_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineNotReady) as lacks:
        create_run_folder(tmp_path / "file", SYNCED, "a1")
    assert lacks.value.hint is not None
    assert "LAKELOAD_RUN_DIR" in lacks.value.hint


def test_a_file_of_a_run_folder_on_a_full_disk_is_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = create_run_folder(tmp_path, SYNCED, "a1")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")  # as write() does, without a name

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(MachineNotReady) as lacks:
        folder.write(folder.spec, "{}")
    assert lacks.value.message == f"the disk is full: writing `{folder.spec}` failed"
    assert "LAKELOAD_RUN_DIR" in (lacks.value.hint or "")


def test_run_folder_location_is_set_by_the_environment(tmp_path: Path) -> None:
    assert runs_directory({"LAKELOAD_RUN_DIR": str(tmp_path)}) == tmp_path
    assert runs_directory({}).is_absolute()


def test_cleanup_removes_the_oldest_run_folders_and_keeps_running_ones(tmp_path: Path) -> None:
    long_ago = time.time() - 7200
    for number in range(6):
        folder = create_run_folder(tmp_path, SYNCED, f"a{number}")
        folder.write(folder.spec, "{}")
        folder.events.write_text("")
        for path in (folder.spec, folder.events, folder.path):
            os.utime(path, (long_ago, long_ago))
    (tmp_path / "0-something-else").mkdir()
    (tmp_path / "20261121T101530Z-a1" / "events.jsonl").touch()
    prune_run_folders(tmp_path, keep=3)
    left = sorted(path.name[-2:] for path in tmp_path.iterdir())
    assert left == ["a1", "a3", "a4", "a5", "se"]


def test_folders_of_ended_runs_do_not_wait_for_an_hour(tmp_path: Path) -> None:
    now = time.time()
    # Rounds of a second leave 3,600 folders within an hour, and each round looks at all of them.
    for name, ended, age in (
        ("1", True, 120), ("2", False, 120), ("3", True, 5), ("4", True, 120)
    ):  # fmt: skip
        folder = create_run_folder(tmp_path, SYNCED, f"a{name}")
        files = [folder.spec, *([folder.result] if ended else [])]
        for file in files:
            folder.write(file, "{}")
        for path in (*files, folder.path):
            os.utime(path, (now - age, now - age))
    prune_run_folders(tmp_path, keep=1)
    assert sorted(path.name[-2:] for path in tmp_path.iterdir()) == ["a2", "a3", "a4"]


def test_a_log_within_its_limit_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_bytes(b"x" * 100)
    assert not trim(log, limit=100)
    assert log.stat().st_size == 100


def test_a_long_log_loses_its_middle_while_its_writer_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "spark.log"
    writer = open_log(path)
    os.write(writer, b"first\n" + b"x" * 5000 + b"\nlast\n")
    assert trim(path, limit=1000, head=6, tail=5)
    os.write(writer, b"after\n")
    os.close(writer)
    lines = path.read_text().splitlines()
    assert (lines[0], lines[-2:]) == ("first", ["last", "after"])
    assert path.stat().st_size < 200
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_log_is_read_from_both_ends_without_reading_anything_twice(tmp_path: Path) -> None:
    path = tmp_path / "spark.log"
    path.write_text("only once")
    assert read_log(path) == "only once"
    assert read_log(tmp_path / "none") == ""
