"""Start of the job that a spec describes. Each job is a module of this package with a `main`."""

from __future__ import annotations

import importlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar, get_args

from pyspark.sql import SparkSession

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.maintain import MaintainResult
from lakeload_jobs.contract.plan import PlanResult
from lakeload_jobs.contract.result import ErrorInfo, RunResult
from lakeload_jobs.contract.spec import CONTRACT_VERSION, JobName, JobSpec
from lakeload_jobs.jobs import stop_signals
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.jobs.usage import METER
from lakeload_jobs.session import build_session


def main(spec_path: str) -> int:
    """Run the job that a spec file names, or those that arrive through a pipe, and return the
    process's exit status.

    Raises what that job's `main` raises: `InvalidInput` for a spec that cannot be read.
    """
    # Imported when it is known: each brings modules of Spark that the others do without.
    name = "rounds" if Path(spec_path).is_fifo() else _job_named(spec_path)
    job = importlib.import_module(f"lakeload_jobs.jobs.{name}")
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


logger = logging.getLogger(__name__)

Result = TypeVar("Result", RunResult, MaintainResult, PlanResult)


def attempt(
    spec_path: str,
    work: Callable[[SparkSession, JobSpec, EventLog], Result],
    failed: Callable[[JobSpec, datetime, ErrorInfo], Result],
    session: Callable[[JobSpec], SparkSession] | None = None,
) -> Result:
    """Do the work of a spec file and return its result, which is then written as well.

    `failed` makes the result of a job that began at that time and ended with that error. `session`
    returns the Spark session of the job; None starts one. Raises `InvalidInput` for a spec that
    cannot be read; every other failure is in the result.
    """
    spec = read_spec(spec_path)
    started_at = datetime.now(UTC)
    with EventLog(spec.events_path) as events:
        try:
            stop_signals.install()
            spark = (session or build_session)(spec)
            events.emit("opened", message=spark.version, pid=os.getpid())
            result = work(spark, spec, events)
            stop_signals.hold()
        except Exception as error:
            stop_signals.hold()
            logger.warning("the job failed", exc_info=True)
            result = failed(spec, started_at, describe(error, "session"))
        result = _measured(result, spec)
        write_result(Path(spec.result_path), result)
        events.emit("closed", name=result.status)
    return result


def _measured(result: Result, spec: JobSpec) -> Result:
    if isinstance(result, RunResult):
        return replace(result, usage=METER.take(spec.result_path))
    return result


def result_of(
    kind: Callable[..., Result],
    spec: JobSpec,
    started_at: datetime,
    error: ErrorInfo | None = None,
    *,
    tables: Sequence[object] = (),
    good: bool = True,
) -> Result:
    """Return the result of a job that ends now; `good` is False where a table has failed."""
    return kind(
        contract=CONTRACT_VERSION,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        status="SUCCEEDED" if good and error is None else "FAILED",
        started_at=started_at,
        finished_at=datetime.now(UTC),
        tables=tuple(tables),
        error=error,
    )


def read_spec(path: str) -> JobSpec:
    """Read spec.json. Raises `InvalidInput` for a file of another contract version or shape."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if data.get("contract") != CONTRACT_VERSION:
            raise InvalidInput(
                f"`{path}` follows contract {data.get('contract')}; this job supports "
                f"{CONTRACT_VERSION}",
                hint="install the same version of lakeload on both sides",
            )
        return from_json(JobSpec, data)
    except (OSError, ValueError, CodecError) as error:
        raise InvalidInput(
            f"`{path}` is not a valid job spec: {error}",
            hint="install the same version of lakeload on both sides",
        ) from error


def write_result(path: Path, result: RunResult | MaintainResult | PlanResult) -> None:
    """Write the result at once: a reader sees all of it or nothing."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(to_json(result), indent=1), encoding="utf-8")
    temporary.replace(path)
