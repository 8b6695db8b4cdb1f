"""What the driver is told about its class-data archive, said to this machine's Java."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from lakeload.launch.jvm import class_data
from lakeload.machine.java import find_java


@pytest.mark.parametrize("content", [bytes(range(256)) * 1000, b"", None])
def test_java_starts_and_says_nothing_where_the_archive_is_none(
    tmp_path: Path, content: bytes | None
) -> None:
    archive = tmp_path / "an archive, broken.jsa"
    if content is not None:
        archive.write_bytes(content)
    java = find_java(os.environ).home / "bin" / "java"

    ended = subprocess.run(
        [str(java), *shlex.split(class_data(archive, "")), "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert "Runtime Environment" in ended.stdout
    assert "archive" not in (ended.stdout + ended.stderr).lower()
