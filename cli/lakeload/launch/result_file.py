"""Reads result.json, and says in words when there is none to read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lakeload_jobs.contract.codec import CodecError, from_json
from lakeload_jobs.contract.maintain import MaintainResult
from lakeload_jobs.contract.plan import PlanResult
from lakeload_jobs.contract.result import RunResult
from lakeload_jobs.contract.spec import CONTRACT_VERSION

R = TypeVar("R", RunResult, MaintainResult, PlanResult)

LARGEST = 512 * 1024 * 1024


@dataclass(frozen=True)
class ResultProblem:
    """Why there is no result."""

    message: str
    hint: str | None = None
    missing: bool = False
    """There is no file, as opposed to one that cannot be used."""


def read_result(path: Path, attempt_id: str) -> RunResult | ResultProblem:
    """Return the result this attempt of a load wrote, or why it cannot be used."""
    return read_result_of(RunResult, path, attempt_id)


def read_result_of(kind: type[R], path: Path, attempt_id: str) -> R | ResultProblem:
    """The same for the job whose result is of this kind."""
    try:
        if path.stat().st_size > LARGEST:
            return ResultProblem("Spark finished and its result is too large to be one")
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return ResultProblem("Spark finished but reported no result", missing=True)
    except (OSError, ValueError, RecursionError) as error:
        return ResultProblem(f"Spark finished but its result cannot be read: {error}")
    contract = data.get("contract") if isinstance(data, dict) else None
    if contract != CONTRACT_VERSION:
        return ResultProblem(
            f"the job speaks contract {contract!r} and this command line {CONTRACT_VERSION}",
            hint="install one version of lakeload on every machine that takes part",
        )
    try:
        result = from_json(kind, data)
    except CodecError as error:
        return ResultProblem(f"Spark finished but its result is not a result: {error}")
    if result.attempt_id != attempt_id:
        return ResultProblem(f"the result belongs to another attempt, `{result.attempt_id}`")
    return result
