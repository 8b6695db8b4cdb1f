"""The command line and the environment of spark-submit. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakeload.launch.run_folder import RunFolder

_DROPPED = (
    "PYSPARK_DRIVER_PYTHON_OPTS",  # would start a notebook instead of the job
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",  # set when lakeload itself was started from a Spark driver
    "PYSPARK_GATEWAY_SECRET",
    "PYTHONSTARTUP",
)


@dataclass(frozen=True)
class Submission:
    """What is started: arguments and environment. No secret is in the arguments."""

    argv: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class Installation:
    """What of this machine a launch uses."""

    spark_home: Path
    java_home: Path
    python: Path
    package: Path
    """The zip of `lakeload_jobs`, for executors on other machines."""
    entry: Path
    """The script given to spark-submit."""
    load_spark_defaults: bool = False
    """Whether spark-defaults.conf of a Spark the user chose applies below our properties."""


def submission(
    installation: Installation,
    folder: RunFolder,
    *,
    master: str,
    pipeline: str,
    environment: Mapping[str, str],
) -> Submission:
    """Return how to start the job of `folder`.

    Properties travel in a file: one given by `--conf` could be read by every user of the machine
    in the list of processes.
    """
    argv = [
        str(installation.spark_home / "bin" / "spark-submit"),
        *("--master", master),
        *("--name", f"lakeload:{pipeline}"),
        *("--properties-file", str(folder.properties)),
        *(["--load-spark-defaults"] if installation.load_spark_defaults else []),
        *("--py-files", str(installation.package)),
        str(installation.entry),
        str(folder.spec),
    ]
    return Submission(tuple(argv), _environment(installation, environment))


def _environment(installation: Installation, inherited: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in inherited.items() if key not in _DROPPED}
    return {
        **kept,
        "SPARK_HOME": str(installation.spark_home),
        "JAVA_HOME": str(installation.java_home),
        "PYSPARK_PYTHON": str(installation.python),
        "PYSPARK_DRIVER_PYTHON": str(installation.python),
        # The driver's messages reach spark.log as they are written, also when it is killed.
        "PYTHONUNBUFFERED": "1",
    }
