"""The run that an AppCDS archive is made of: a load as `sync` starts it, of sample files."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lakeload.launch.outcome import probable_cause
from lakeload.launch.process import Installation, kill_session, members, read_log, start
from lakeload.launch.properties import LaunchRequest, SparkSettings
from lakeload.launch.run import written_submission
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.scratch import remove_scratch
from lakeload.runtimes import Submission
from lakeload_jobs.contract.errors import MachineNotReady
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.core.os_user import stand_in_name

_CHATTER = re.compile(r"\[[\d.]+s\]\[warning\]\[cds")
"""Java tells of each class that it leaves out."""

TIME_LIMIT = 1800.0
"""Seconds until a run is killed. It takes a minute of CPU; a hung one must not block its caller."""

MEMORY = "1g"
MASTER = "local[2]"

_BEHIND_SPARK = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""They add to the end of the class path, where an archive made without them still fits."""


def train(
    installation: Installation,
    jars: Sequence[Path],
    environment: Mapping[str, str],
    target: Path,
    folder: Path,
    *,
    iceberg: bool = False,
) -> None:
    """Make the archive `target` with a run in `folder`, for loads of `iceberg` tables where
    `jars` has their runtime. Raises `MachineNotReady` where none came, or
    none can come."""
    run = RunFolder(folder)
    entry = installation.entry.with_name("run_training.py")
    # Below the archive's own work folder, which the next maker removes after a kill.
    scratch = (folder / "scratch",)
    option = f'"-XX:ArchiveClassesAtExit={target}"'
    settings = SparkSettings(MASTER, MEMORY, {"spark.driver.extraJavaOptions": option}, tuple(jars))
    request = LaunchRequest(
        settings,
        run,
        environment,
        cores=os.cpu_count() or 1,
        jvm_bytes=0,
        session_settings=FORMATS["ICEBERG"].session_settings if iceberg else {},
        scratch=scratch,
        user=stand_in_name(),
    )
    kept = {name: value for name, value in environment.items() if name not in _BEHIND_SPARK}
    installed = replace(installation, entry=entry)
    status = _run(written_submission(request, installed, kept, "training"), run)
    if status != 0 or not target.is_file():
        raise _no_archive(status, run, installation.java_home)


def _run(started: Submission, run: RunFolder) -> int | None:
    """Return the exit status; None where the time was up. Nothing is left running."""
    process = start(started, run)
    try:
        return process.wait(TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if members(process.pid):
            kill_session(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        remove_scratch(run)


def check_class_path(installation: Installation, environment: Mapping[str, str]) -> None:
    """Raise `MachineNotReady` where Java could make none.

    Java 17 archives the classes of jars whose path has a blank, and then does not use them.
    """
    if " " in str(installation.spark_home):
        raise MachineNotReady(
            "Java does not use an AppCDS archive for jars in a folder with a space: "
            f"`{installation.spark_home}`",
            hint="loads work without it; to build one, install lakeload in a folder without "
            "spaces, or set SPARK_HOME to such a folder",
        )
    conf = Path(environment.get("SPARK_CONF_DIR") or installation.spark_home / "conf")
    if conf.is_dir() and any(conf.iterdir()):
        raise MachineNotReady(
            f"Java builds no AppCDS archive when the class path has a folder with files (`{conf}`)",
            hint="loads work without it; the Spark of the pyspark package has no such folder",
        )


def _no_archive(status: int | None, run: RunFolder, java_home: Path) -> MachineNotReady:
    what = "the run that makes the AppCDS archive"
    if status is None:
        return MachineNotReady(f"{what} took longer than {TIME_LIMIT / 60:g} minutes and was ended")
    if not any(java_home.glob("lib/server/classes*.jsa")):
        return MachineNotReady(
            f"{what} failed: the Java in `{java_home}` has no default archive",
            hint=f"`{java_home / 'bin' / 'java'} -Xshare:dump` makes it, where that Java can",
        )
    if status == 0:
        return MachineNotReady(f"{what} succeeded but wrote no archive")
    lines = [line for line in read_log(run.log).splitlines() if not _CHATTER.match(line)]
    cause = probable_cause("\n".join(lines), status, opened=False)
    return MachineNotReady(f"{what} ended with status {status}: {cause.message}", hint=cause.hint)
