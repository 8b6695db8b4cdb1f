"""What a light command must not import: start-up is a feature."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"boto3", "botocore", "pyspark", "py4j", "pyiceberg", "pyarrow", "duckdb", "arro3"}
PROGRAM = """
import json, sys
from lakeload.app import app
try:
    app(sys.argv[1:], prog_name="lakeload")
except SystemExit as ended:
    code = ended.code
roots = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([code, roots]), file=sys.stderr)
"""


def imported_by(*arguments: str) -> set[str]:
    """Return the top-level modules that a successful command has imported."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT / "configs",
        capture_output=True,
        text=True,
        check=True,
    )
    code, roots = json.loads(ended.stderr.splitlines()[-1])
    assert not code, ended.stdout + ended.stderr
    return set(roots)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("sync", "--help"),
        ("demo", "--help"),
        ("schema", "pipeline"),
    ],
    ids=" ".join,
)
def test_help_and_schema_import_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert imported_by(*arguments) & HEAVY == set()


def test_validate_imports_nothing_heavy() -> None:
    examples = sorted(path.name for path in (ROOT / "configs").glob("*.yaml"))
    assert examples
    assert imported_by("validate", *examples) & HEAVY == set()


def test_inspection_of_files_imports_no_spark() -> None:
    program = (
        "import sys, lakeload.sources.files.columns, lakeload.sources.files.inspection\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    roots = set(ended.stdout.split())
    assert "pyarrow" in roots
    assert roots & {"pyspark", "py4j"} == set()


def test_what_is_done_for_iceberg_before_spark_starts_imports_no_pyiceberg() -> None:
    """pyiceberg takes half a second of CPU."""
    modules = (
        *("lakeload.commands.sync_once", "lakeload.commands.sync_rounds"),
        *("lakeload.commands.plan_once", "lakeload.probes.connection", "lakeload.probes.iceberg"),
        "lakeload.formats.iceberg.commands",
    )
    program = (
        f"import sys, {', '.join(modules)}\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    roots = set(ended.stdout.split())
    assert "boto3" in roots
    assert roots & {"pyiceberg", "pyspark", "pyarrow"} == set()


def test_import_check_detects_an_import() -> None:
    assert "lakeload" in imported_by("--help")
