"""The command line and environment given to spark-submit."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from lakeload.launch.process import Installation, submission
from lakeload.launch.run_folder import RunFolder

INSTALLATION = Installation(
    spark_home=Path("/opt/spark"),
    java_home=Path("/opt/java"),
    python=Path("/venv/bin/python"),
    package=Path("/cache/lakeload_jobs-1.zip"),
    entry=Path("/lib/lakeload_jobs/entry/run_job.py"),
)


def test_spark_submit_command_line_equals_the_golden_one() -> None:
    made = submission(
        INSTALLATION,
        RunFolder(Path("/runs/r1")),
        master="local[2]",
        pipeline="shop",
        environment={},
    )
    assert made.argv == (
        *("/opt/spark/bin/spark-submit", "--master", "local[2]", "--name", "lakeload:shop"),
        *("--properties-file", "/runs/r1/spark.conf"),
        *("--py-files", "/cache/lakeload_jobs-1.zip"),
        *("/lib/lakeload_jobs/entry/run_job.py", "/runs/r1/spec.json"),
    )


def test_spark_defaults_apply_below_for_a_spark_the_user_chose() -> None:
    chosen = dataclasses.replace(INSTALLATION, load_spark_defaults=True)
    made = submission(chosen, RunFolder(Path("/r")), master="local", pipeline="p", environment={})
    assert "--load-spark-defaults" in made.argv


def test_the_environment_reaches_the_job_but_for_what_would_change_the_launch() -> None:
    made = submission(
        INSTALLATION,
        RunFolder(Path("/r")),
        master="local",
        pipeline="p",
        environment={
            "AWS_PROFILE": "dev",
            "LAKELOAD_EXTERNAL_ID": "canary",
            "PYSPARK_DRIVER_PYTHON": "jupyter",
            "PYSPARK_DRIVER_PYTHON_OPTS": "notebook",
            "SPARK_HOME": "/elsewhere",
        },
    )
    assert made.environment == {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "AWS_PROFILE": "dev",
        "LAKELOAD_EXTERNAL_ID": "canary",
        "SPARK_HOME": "/opt/spark",
        "JAVA_HOME": "/opt/java",
        "PYSPARK_PYTHON": "/venv/bin/python",
        "PYSPARK_DRIVER_PYTHON": "/venv/bin/python",
        "PYTHONUNBUFFERED": "1",
        "LAKELOAD_FILES_IN_USE": "/r/files-in-use",
    }
    assert not any("canary" in argument for argument in made.argv)


def test_an_allocator_that_the_user_has_chosen_stays() -> None:
    chosen = {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"}
    made = submission(
        INSTALLATION, RunFolder(Path("/r")), master="local", pipeline="p", environment=chosen
    )
    assert made.environment["ARROW_DEFAULT_MEMORY_POOL"] == "jemalloc"
