"""A launch from a spec to the files that the job starts with."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from lakeload.launch.process import Installation
from lakeload.launch.properties import SparkSettings
from lakeload.launch.run import Launcher, launch
from lakeload.launch.run_folder import create_run_folder
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.codec import from_json
from lakeload_jobs.contract.spec import JobSpec
from tests.fakes.spark_home import fake_spark_home
from tests.unit.launch.specs import ATTEMPT, SYNCED, job_spec


@pytest.mark.parametrize(
    ("master", "shared"),
    [("local[2]", True), ("local-cluster[2,1,1024]", True), ("spark://127.0.0.1:7077", False)],
)
def test_the_job_is_told_whether_its_tasks_run_elsewhere(
    tmp_path: Path, master: str, shared: bool
) -> None:
    home = fake_spark_home(tmp_path)
    folder = create_run_folder(tmp_path / "runs", SYNCED, ATTEMPT)
    installation = Installation(home, tmp_path, Path(sys.executable), tmp_path, tmp_path)
    environment = {**os.environ, "FAKE_SPARK_SCENARIO": "success"}
    settings = SparkSettings(master, "1g", {})

    with StopRequests() as stop:
        launcher = Launcher(installation, settings, environment, stop, lambda _: None)
        outcome = launch(job_spec(folder), folder, launcher)

    assert outcome.kind == "LOADED"
    told = from_json(JobSpec, json.loads(folder.spec.read_text(encoding="utf-8")))
    assert told.runtime.tasks_share_driver is shared
    assert (tmp_path / "argv").read_text(encoding="utf-8").splitlines()[:2] == ["--master", master]
