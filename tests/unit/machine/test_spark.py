"""Which Spark is used, found without importing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakeload.machine.spark import find_spark
from lakeload_jobs.contract.errors import MachineNotReady


def spark(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "jars").mkdir()
    (home / "bin" / "spark-submit").write_text("#!/bin/sh\n")
    (home / "jars" / f"spark-core_2.13-{version}.jar").write_text("")
    return home


def test_pip_s_pyspark_is_found_without_importing_it() -> None:
    program = (
        "import sys; from lakeload.machine.spark import find_spark; s = find_spark({});"
        "assert s.ours and s.version.startswith('4.1.') and s.submit.is_file(), s;"
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_spark_home_of_the_right_version_is_used(tmp_path: Path) -> None:
    home = spark(tmp_path / "spark", "4.1.9")
    found = find_spark({"SPARK_HOME": str(home)})
    assert (found.home, found.version, found.ours) == (home, "4.1.9", False)


@pytest.mark.parametrize("version", ["3.5.9", "4.0.1", "4.2.0"])
def test_spark_home_of_another_version_is_rejected(tmp_path: Path, version: str) -> None:
    home = spark(tmp_path / "spark", version)
    with pytest.raises(MachineNotReady, match=f"with Spark {version}") as lacks:
        find_spark({"SPARK_HOME": str(home)})
    assert lacks.value.hint is not None
    assert "unset SPARK_HOME" in lacks.value.hint


def test_spark_home_without_spark_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(MachineNotReady, match="which has no Spark"):
        find_spark({"SPARK_HOME": str(tmp_path)})


def test_spark_home_at_pip_pyspark_is_the_pip_installation() -> None:
    ours = find_spark({})
    assert find_spark({"SPARK_HOME": str(ours.home)}) == ours
