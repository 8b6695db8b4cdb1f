"""`--help`, `validate` and `schema` stay light: no AWS, no Spark, no Arrow.

What they cost in CPU is measured by `python -m bench.startup`: a busy machine must fail no test.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.startup import COMMANDS

COMMANDS_WITH_AWS = [
    "demo",
    "policy",
    "test-connection",
    "doctor",
    "plan",
    "sync",
    "recover",
    "runs",
    "reset",
]
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


@pytest.mark.parametrize("command", COMMANDS_WITH_AWS)
def test_the_help_of_a_heavy_command_imports_nothing_heavy(command: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROBE, command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert set(process.stderr.split()[1:]) & HEAVY == set()


def test_a_sync_of_files_to_parquet_imports_no_other_client() -> None:
    program = """
import sys, lakeload.commands.sync_once, lakeload.formats.parquet.commands
print(*sys.modules)
"""
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    imported = set(process.stdout.split())
    assert "lakeload.probes.glue" in imported
    assert imported & {"pyiceberg", "psycopg", "pymysql", "pyarrow", "numpy"} == set()
