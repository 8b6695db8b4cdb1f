"""What nobody uses goes, and what somebody uses stays, whoever else is at it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from lakeload.machine.cache import DAYS, mark_used, remove_unused

LONG = DAYS * 86_400


def aged(path: Path, seconds: float) -> Path:
    path.write_text("content")
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_cleanup_removes_matching_unused_files_only(tmp_path: Path) -> None:
    old = aged(tmp_path / "old.jar", LONG + 60)
    young = aged(tmp_path / "young.jar", LONG - 60)
    pinned = aged(tmp_path / "pinned.jar", LONG + 60)
    other = aged(tmp_path / "notes.txt", LONG + 60)
    assert remove_unused(tmp_path, "*.jar", keep=["pinned.jar"]) == (old,)
    assert sorted(tmp_path.iterdir()) == sorted([young, pinned, other])


def test_cleanup_keeps_a_used_file_and_its_modification_time(tmp_path: Path) -> None:
    jar = aged(tmp_path / "a.jar", LONG + 60)
    before = jar.stat().st_mtime_ns
    mark_used(jar)
    assert remove_unused(tmp_path, "*.jar") == ()
    assert jar.stat().st_mtime_ns == before


def test_cleanup_removes_a_folder_with_its_content(tmp_path: Path) -> None:
    work = tmp_path / ".spark-1.work"
    work.mkdir()
    (work / "archive.jsa").write_text("half")
    then = time.time() - LONG - 60
    os.utime(work, (then, then))
    assert remove_unused(tmp_path, ".spark-*.work") == (work,)
    assert not work.exists()


def test_cleanup_waits_for_a_process_that_marks_a_use(tmp_path: Path) -> None:
    jar = aged(tmp_path / "a.jar", LONG + 60)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_SH)
    assert remove_unused(tmp_path, "*.jar") == ()
    os.close(folder)
    assert remove_unused(tmp_path, "*.jar") == (jar,)


@pytest.mark.parametrize("name", ["a.jar", "none/a.jar"])
def test_cleanup_without_files_succeeds(tmp_path: Path, name: str) -> None:
    mark_used(tmp_path / name)
    assert remove_unused((tmp_path / name).parent, "*.jar") == ()
