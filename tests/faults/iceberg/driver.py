"""One writer of a crowd: a process with a Spark session of its own that runs whole load jobs, one
after the other. `python -m tests.faults.iceberg.driver FOLDER JSON`, job id → its documents."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.launch.properties import LaunchRequest, SparkSettings, spark_properties
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.spec import build_job_spec, new_attempt
from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import pinned
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.load import run
from lakeload_jobs.session import configure
from tests.servers.jars import CACHE, REPOSITORY


def main(folder: Path, jobs: dict[str, str]) -> int:
    """Run the jobs and end with one line of JSON: job id → status, or the error in its place, and
    who has written the data files."""
    spark = session(folder)
    statuses = {}
    for job, documents in jobs.items():
        statuses[job] = _load(spark, job, Path(documents))
    spark.stop()
    sys.stdout.write(json.dumps(statuses) + "\n")
    return 0


def _load(spark: SparkSession, job: str, documents: Path) -> tuple[str, str | None]:
    document = load_pipeline(documents / "pipeline.yml", os.environ)
    tables = table_specs(document)
    run_folder = RunFolder(documents)
    spec = build_job_spec(
        document, destination_spec(document.destination), tables, new_attempt(job), run_folder
    )
    with EventLog(spec.events_path) as events:
        (result,) = run(spark, spec, events).tables
    status = f"{result.status}: {result.error}" if result.error else result.status
    return status, result.writer


def session(folder: Path) -> SparkSession:
    """Start Spark as `sync` does; its files are in `folder`."""
    run_folder = RunFolder(folder)
    run_folder.log_settings.write_text("rootLogger.level = off\n")
    jars = fetch(pinned("iceberg"), CACHE / "jars", REPOSITORY)
    settings = SparkSettings("local[2]", "600m", {}, jars)
    properties = spark_properties(
        LaunchRequest(settings, run_folder, session_settings=FORMATS["ICEBERG"].session_settings)
    )
    os.environ |= {"PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[2]")
    for name, value in properties.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    configure(found)
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
