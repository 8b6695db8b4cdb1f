"""`--help`, `validate` and `schema` stay light: no AWS, no Spark, no Arrow, little CPU."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.startup import COMMANDS, LIMIT, cpu_and_wall

HEAVY = {"boto3", "botocore", "pyspark", "py4j", "pyiceberg", "pyarrow", "arro3", "ministack"}
PROBE = """
import sys
from lakeload.app import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print("imported", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_light_command_imports_nothing_heavy(name: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROBE, *COMMANDS[name]], capture_output=True, text=True, check=True
    )
    imported = set(process.stderr.split()[1:])

    assert {"lakeload", "typer"} <= imported
    assert imported & HEAVY == set()


@pytest.mark.parametrize("command", ["demo", "test-connection", "plan", "sync"])
def test_the_help_of_a_heavy_command_imports_nothing_heavy(command: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROBE, command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert set(process.stderr.split()[1:]) & HEAVY == set()


@pytest.mark.parametrize("name", ["--help", "validate"])
def test_a_light_command_takes_little_cpu(name: str) -> None:
    # The machine may be busy with other tests, so the best of several runs counts.
    least = min(cpu_and_wall(COMMANDS[name])[0] for _ in range(5))

    assert least < LIMIT
