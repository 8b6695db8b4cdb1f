"""The process that inspects files: whatever one of them does to it, the others are inspected."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakeload.sources.files import bounded, inspection
from lakeload.sources.files.bounded import inspect_files
from lakeload.sources.files.formats.base import InspectedFile
from lakeload_jobs.aws import AwsError
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.local_listing import local_files


def end() -> None:
    os.abort()


def leave() -> None:
    os._exit(3)


def hang() -> None:
    time.sleep(60)


def take_memory() -> None:
    bytearray(3 << 30)


@pytest.fixture
def files(tmp_path: Path) -> list[FileState]:
    for name in ("a", "bad", "c"):
        (tmp_path / f"{name}.csv").write_text("id\n1\n")
    return sorted(local_files([str(tmp_path)]), key=lambda file: file.path)


def inspect_with(
    files: list[FileState], act: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> list[InspectedFile]:
    """Inspect files, of which one makes its process do something."""
    real = inspection._inspect

    def inspect(file: FileState, opener: FileBytes) -> InspectedFile:
        if file.path.endswith("bad.csv"):
            act()
        return real(file, opener)

    monkeypatch.setattr(inspection, "_inspect", inspect)
    return list(inspect_files(files, FileBytes()))


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (end, "was ended by SIGABRT: it is damaged, or needs more than 2.0 GiB"),
        (leave, "was ended by exit status 3"),
        (hang, "takes more than 1 seconds"),
        (take_memory, "needs more memory than it may have"),
    ],
)
def test_file_that_takes_its_process_down_is_named_and_the_others_are_inspected(
    act: Callable[[], Any], said: str, files: list[FileState], monkeypatch: pytest.MonkeyPatch
) -> None:
    if act is hang:
        monkeypatch.setattr(bounded, "SECONDS", 1)

    first, bad, last = inspect_with(files, act, monkeypatch)

    assert str(bad.error).startswith(f"reading `{files[1].path}`: its inspection ")
    assert said in str(bad.error)
    for found in (first, last):
        assert (found.error, found.columns) == (None, {"id": "bigint"})


def test_memory_of_the_command_is_not_counted(files: list[FileState]) -> None:
    with mmap.mmap(-1, bounded.MEMORY + (1 << 30), flags=mmap.MAP_PRIVATE):
        found = list(inspect_files(files, FileBytes()))

    assert [(file.error, file.columns) for file in found] == [(None, {"id": "bigint"})] * 3


def test_error_of_aws_is_raised_as_it_was(
    files: list[FileState], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise AwsError("no answer", code="ConnectTimeout", hint="check", retryable=True)

    with pytest.raises(AwsError) as failed:
        inspect_with(files, fail, monkeypatch)

    error = failed.value
    assert (error.message, error.code, error.hint) == ("no answer", "ConnectTimeout", "check")
    assert (error.retryable, error.status) == (True, None)
