"""Which job a spec is of, and its run. Each job is a module of this package with a `main`."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import get_args

from lakeload_jobs.contract.spec import JobName


def main(spec_path: str) -> int:
    """Run the job that a spec file names and return the process's exit status.

    Raises what that job's `main` raises: `InvalidInput` for a spec that cannot be read.
    """
    # Imported when it is known: each brings modules of Spark that the others do without.
    job = importlib.import_module(f"lakeload_jobs.jobs.{_job_named(spec_path)}")
    status: int = job.main(spec_path)
    return status


def _job_named(spec_path: str) -> str:
    """Return the job's name; `load`, which says what is wrong, where there is none."""
    try:
        data = json.loads(Path(spec_path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "load"
    named = data.get("job") if isinstance(data, dict) else None
    return next((name for name in get_args(JobName) if name == named), "load")
