"""What the driver is told about collector and AppCDS archive, said to this machine's Java."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from lakeload.launch.properties import LaunchRequest, SparkSettings, class_data, spark_properties
from lakeload.launch.run_folder import RunFolder
from lakeload.machine.java import find_java


@pytest.mark.parametrize("content", [bytes(range(256)) * 1000, b"", None])
def test_java_without_a_valid_archive_starts_silently(
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


def test_java_starts_with_the_collector_of_a_variable(tmp_path: Path) -> None:
    variables = {"JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"}
    request = LaunchRequest(SparkSettings("local[2]", "1g", {}), RunFolder(tmp_path), variables)
    properties = spark_properties(request)
    java = find_java(os.environ).home / "bin" / "java"

    ended = subprocess.run(
        [
            str(java),
            *shlex.split(properties["spark.driver.extraJavaOptions"]),
            *("-Xlog:gc:stdout", "--version"),
        ],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert "Using G1" in ended.stdout
