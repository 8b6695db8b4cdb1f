"""What is said of a Spark job that never started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lakeload.commands.start_failures import explained_by_machine
from lakeload.launch.outcome import Cause, Outcome
from lakeload.launch.process import Installation
from lakeload.launch.properties import SparkSettings
from lakeload.launch.run import Launcher, launch
from lakeload.launch.run_folder import create_run_folder
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.errors import ExitCode
from tests.fakes.spark_home import fake_spark_home
from tests.unit.launch.specs import ATTEMPT, SYNCED, job_spec

SETTINGS = SparkSettings("local[2]", "1g", {})


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    conf = tmp_path / "kerberos"
    conf.mkdir()
    surprises = {"_JAVA_OPTIONS": "-Xmx300m", "HADOOP_CONF_DIR": str(conf), "PYTHONPATH": "/other"}
    return {**os.environ, **surprises, "LAKELOAD_CACHE_DIR": str(tmp_path / "cache")}


def _outcome(tmp_path: Path, environment: dict[str, str], scenario: str) -> Outcome:
    home = fake_spark_home(tmp_path)
    folder = create_run_folder(tmp_path / "runs", SYNCED, ATTEMPT)
    installation = Installation(home, tmp_path, Path(sys.executable), tmp_path, tmp_path)
    environment = {**environment, "FAKE_SPARK_SCENARIO": scenario}
    explain = explained_by_machine(environment, SETTINGS)
    with StopRequests() as stop:
        launcher = Launcher(installation, SETTINGS, environment, stop, lambda _: None, explain)
        return launch(job_spec(folder), folder, launcher)


def test_a_job_that_never_started_names_what_is_unusual_on_the_machine(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    outcome = _outcome(tmp_path, environment, "never_opens")

    assert outcome.kind == "START_FAILED"
    error = outcome.error
    assert error is not None
    assert "the Spark job never started" in error.message.splitlines()[0]
    for name, value in (("_JAVA_OPTIONS", "-Xmx300m"), ("HADOOP_CONF_DIR", "kerberos")):
        assert any(name in line and value in line for line in error.message.splitlines())
        assert f"unset {name}" in (error.hint or "")
    assert error.exit_code == ExitCode.MACHINE


def test_a_job_that_has_started_is_not_explained_by_the_machine(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    error = _outcome(tmp_path, environment, "dies").error
    assert error is not None
    assert "HADOOP_CONF_DIR" not in error.message


def test_a_job_that_was_stopped_is_not_explained_by_the_machine(
    environment: dict[str, str],
) -> None:
    cause = Cause("another process terminated it", None, ExitCode.INTERRUPTED)
    assert explained_by_machine(environment, SETTINGS)(cause) == cause
