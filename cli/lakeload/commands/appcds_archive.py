"""AppCDS archives for the loads of a user, built on request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lakeload.ui import console
from lakeload_jobs.contract.errors import LakeloadError

if TYPE_CHECKING:
    from lakeload.machine.appcds import Archive


def saves_seconds(features: tuple[str, ...]) -> int:
    """Return about what an archive saves of each load, in seconds of wall time; docs/jars.md has
    the measurements."""
    return 3 if "iceberg" in features else 1


def build_archive(cache: Path, features: tuple[str, ...]) -> tuple[Archive | None, bool]:
    """Return the archive for these sets of jars, and whether it was there already.

    Notes on stderr say that it is being built, or why none can be: loads work without.
    """
    from lakeload.commands.spark_job import find_installation
    from lakeload.launch.training import check_class_path, train
    from lakeload.machine.appcds import archive_key, make_archive
    from lakeload.machine.cache_state import class_path

    waits: list[bool] = []
    runs: list[bool] = []

    def waiting() -> None:
        if not waits:
            console.note("another process is making the AppCDS archive; waiting for it")
            waits.append(True)

    def run(target: Path, folder: Path) -> None:
        check_class_path(installation, os.environ)
        console.note("making the AppCDS archive, once: a small load, about half a minute of CPU")
        runs.append(True)
        train(installation, jars, os.environ, target, folder, iceberg="iceberg" in features)

    try:
        installation = find_installation(os.environ)
        jars = class_path(cache, features)
        key = archive_key(installation.java_home, installation.spark_home, jars, os.environ)
        return make_archive(cache, key, features, run, waiting), not runs
    except LakeloadError as error:
        console.note(f"no AppCDS archive: {error.message}")
        if error.hint:
            console.note(f"  {error.hint}")
        return None, False
