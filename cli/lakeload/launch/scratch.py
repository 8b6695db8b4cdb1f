"""Scratch folders: what Spark, Java and Python keep for a while, private to a run and gone with it.

Rows are spilled there. Spark itself would make its folders in /tmp for everybody to read, and
leave them when it is killed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakeload.launch.run_folder import RunFolder, is_gone
from lakeload.runtimes import scratch_places
from lakeload_jobs.contract.errors import MachineNotReady


def scratch_folders(
    folder: RunFolder, environment: Mapping[str, str], conf: Mapping[str, str]
) -> tuple[Path, ...]:
    """Return the scratch folders of a run, one in each place that Spark may use. None is made."""
    return tuple(place.absolute() / _name(folder) for place, _ in scratch_places(environment, conf))


def _name(folder: RunFolder) -> str:
    return f"lakeload-{folder.path.name}"


def make_scratch(folder: RunFolder, paths: Iterable[Path]) -> None:
    """Write down the scratch folders of a run and make them, mode 0700.

    Raises `MachineNotReady` where one cannot be made.
    """
    if not (paths := tuple(paths)):
        return
    # First, so that whatever is made is also removed.
    folder.write(folder.scratch, json.dumps([str(path) for path in paths]))
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700)
        except OSError as error:
            raise MachineNotReady(
                f"making the folder `{path}` for Spark's temporary files failed: {error.strerror}",
                hint="set SPARK_LOCAL_DIRS, or TMPDIR, to a writable folder",
            ) from error


def remove_scratch(folder: RunFolder) -> None:
    """Remove the scratch folders of a run that has ended; what cannot be removed stays noted."""
    try:
        paths = [Path(path) for path in json.loads(folder.scratch.read_bytes())]
    except (OSError, TypeError, ValueError):
        return
    # No other folder is removed, whatever the note says.
    paths = [path for path in paths if path.name == _name(folder)]
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
    if not any(path.exists() for path in paths):
        folder.scratch.unlink(missing_ok=True)


def remove_abandoned_scratch(runs: Path) -> None:
    """Remove the scratch folders of the runs in `runs` that were killed."""
    for noted in runs.glob("*/scratch.json"):
        folder = RunFolder(noted.parent)
        if is_gone(folder.log):
            remove_scratch(folder)
