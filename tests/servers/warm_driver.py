"""Stands in for spark-submit: runs the job in a driver process of its own, on a JVM that runs.

The driver is what a user's is: a process that spark-submit's place is taken by, with the command's
environment, working folder, standard output and signals, and the job's own entry script. What it
does not start is Java: it connects to the JVM of the test process, takes a session of its own
there, and hands its environment to Python workers of its own.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

MARK = "LAKELOAD_TEST_WARM_DRIVER"
"""The variable by which the Python workers of one driver are known."""
_OWN = ("spark.driver.", "spark.executor.", "spark.submit.", "spark.sql.warehouse.dir")
"""Properties that belong to the JVM's start."""


def main(gateway: str) -> None:
    """Run what spark-submit was asked to run, on the JVM that the file `gateway` tells of."""
    entry, spec = sys.argv[-2:]
    jvm = json.loads(Path(gateway).read_text(encoding="utf-8"))
    os.environ[MARK] = str(os.getpid())
    workers = dict(os.environ)
    os.environ |= {"PYSPARK_GATEWAY_PORT": jvm["port"], "PYSPARK_GATEWAY_SECRET": jvm["secret"]}
    try:
        with _attached(workers, jvm["python"], _properties()):
            sys.argv = [entry, spec]
            runpy.run_path(entry, run_name="__main__")
    finally:
        _end_workers(jvm["pid"])


def _properties() -> dict[str, str]:
    """Return the properties that a running JVM can take."""
    file = Path(sys.argv[sys.argv.index("--properties-file") + 1])
    pairs = (line.split("=", 1) for line in file.read_text(encoding="utf-8").splitlines())
    given = {name: value.replace("\\\\", "\\") for name, value in pairs}
    return {name: value for name, value in given.items() if not name.startswith(_OWN)}


@contextmanager
def _attached(
    workers: Mapping[str, str], python: str, properties: Mapping[str, str]
) -> Iterator[None]:
    """Give this process a new session of the JVM's context, and leave the JVM as it was."""
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    scala = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.org.apache.spark.api.java.JavaSparkContext(scala)
    context = SparkContext(conf=SparkConf(_jconf=scala.getConf()), jsc=java)
    context.environment.update(workers)
    context.pythonExec = python
    sessions = SparkSession._get_j_spark_session_class(jvm)
    default = sessions.getDefaultSession().get()
    session = SparkSession(context, default.newSession())
    context._conf = SparkConf(_jconf=scala.getConf()).setAll([*properties.items()])
    for name, value in properties.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    settings, hadoop = jvm.java.lang.System.getProperties().clone(), java.hadoopConfiguration()
    before = jvm.org.apache.hadoop.conf.Configuration(hadoop)
    try:
        yield
    finally:
        sessions.setDefaultSession(default)
        jvm.java.lang.System.setProperties(settings)
        hadoop.clear()
        hadoop.addResource(before)
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()


def _end_workers(jvm: int) -> None:
    """End the Python workers that have this process's environment: nobody will use them again."""
    for process in psutil.Process(jvm).children(recursive=True):
        with suppress(psutil.Error):
            if process.environ().get(MARK) == str(os.getpid()):
                process.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
