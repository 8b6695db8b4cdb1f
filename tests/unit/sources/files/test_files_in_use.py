"""Files that a process read when it ended are named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakeload_jobs.sources.files.files_in_use import FOLDER, in_use, take_left_in_use


def test_a_file_at_which_a_process_ended_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with in_use("/data/own.parquet"):
        process = os.fork()
        if not process:
            with in_use("/data/whole.parquet"):
                pass
            with in_use("/data/\udcff.parquet"):
                os._exit(0)
        os.waitpid(process, 0)

        assert take_left_in_use(tmp_path) == ("/data/\udcff.parquet",)
    assert take_left_in_use(tmp_path) == ()
