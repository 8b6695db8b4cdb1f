"""A JobSpec and a run folder for the tests of the launcher."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from lakeload.launch.run_folder import RunFolder, create_run_folder
from lakeload.runtimes import LOCAL, Submission
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.spec import (
    CONTRACT_VERSION,
    DestinationSpec,
    FilesInput,
    JobSpec,
    TableSpec,
)

SYNCED = datetime(2026, 11, 21, 10, 15, 30, 1, tzinfo=UTC)
ATTEMPT = "11111111-2222-3333-4444-555555555555"
FAKE = Path(__file__).parents[2] / "fakes" / "fake_spark_submit.py"


def table(source: str) -> TableSpec:
    """A CSV table of that name."""
    return TableSpec(source, "shop", source, FilesInput("CSV", (f"/data/{source}.csv",), {}), "f00")


def job_spec(folder: RunFolder, sources: Iterable[str] = ("orders", "customers")) -> JobSpec:
    """A spec that reports into `folder`."""
    return JobSpec(
        CONTRACT_VERSION,
        "shop",
        "job-1",
        ATTEMPT,
        SYNCED,
        DestinationSpec("lake", "us-east-1"),
        tuple(table(source) for source in sources),
        str(folder.events),
        str(folder.result),
    )


def prepared(runs: Path, scenario: str) -> tuple[JobSpec, RunFolder, Submission]:
    """A run folder with a spec in it, and how to start the fake on it."""
    folder = create_run_folder(runs, SYNCED, ATTEMPT)
    spec = job_spec(folder)
    folder.write(folder.spec, json.dumps(to_json(spec)))
    folder.write(folder.properties, "spark.ui.enabled=false\n")
    environment = {**os.environ, "FAKE_SPARK_SCENARIO": scenario}
    command = (sys.executable, str(FAKE), str(folder.spec))
    return spec, folder, Submission(LOCAL, command, environment)
