"""What a sync would do, table by table. Reads only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from lakeload.formats.parquet.inspect import Foreseen
from lakeload.formats.plan_model import (
    Action,
    IncrementalPlan,
    Numbering,
    Recovery,
    TablePlan,
)
from lakeload.launch.inputs import InputFound, look_at_input
from lakeload.launch.spec import Attempt
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput
from lakeload_jobs.core.file_names import render_file_name
from lakeload_jobs.core.layout import TableLocation, data_key, partition_path
from lakeload_jobs.sources.files.selection import Selection

_EXAMPLE_UUID = "00000000-0000-4000-8000-000000000000"
_UNSPLITTABLE = (".gz", ".zst", ".xz", ".lz4", ".snappy", ".deflate")
_ONE_PARTITION = 4 * 1024 * 1024
"""Spark never cuts smaller than `spark.sql.files.openCostInBytes`."""


def plan_tables(
    foreseen: Sequence[Foreseen],
    destination: DestinationSpec,
    attempt: Attempt,
    *,
    local: bool,
    reload: bool = False,
) -> tuple[TablePlan, ...]:
    """Return the plan of each table; with a `local` master its input files are looked at."""
    plans = (_plan(table, destination, attempt, local=local) for table in foreseen)
    return tuple(
        replace(plan, incremental=incremental_plan(table.selection, reload=reload))
        for plan, table in zip(plans, foreseen, strict=True)
    )


def _plan(
    foreseen: Foreseen, destination: DestinationSpec, attempt: Attempt, *, local: bool
) -> TablePlan:
    table, opened = foreseen.table, foreseen.opened
    found = _found(foreseen) if local else None
    missing = found.missing if found else ()
    error = ErrorInfo.of(foreseen.error, "open") if foreseen.error else None
    action: Action = "REFUSED" if error else "NO_OP" if foreseen.idle else "LOAD"
    if action == "LOAD" and missing and foreseen.selection is None:
        action, error = "FAIL", nothing_there(missing)
    return TablePlan(
        table=table.source,
        target=table.target,
        action=action,
        mode="APPEND",
        reader="jvm",
        index="dense",
        numbering=numbering(table.input, found.files if found else 0, found.bytes if found else 0),
        example=_example(foreseen, destination, attempt),
        first_run=opened.first_run if opened else False,
        files=found.files if found else 0,
        bytes=found.bytes if found else 0,
        missing=missing,
        recovery=tuple(
            Recovery(job.job_id, job.pipeline, job.rows, job.files, job.action)
            for job in (opened.settled if opened else ())
        ),
        error=error,
        warnings=opened.warnings if opened else (),
    )


def incremental_plan(selection: Selection | None, *, reload: bool) -> IncrementalPlan | None:
    """Return what an incremental table would load, None for a table that is loaded whole."""
    if selection is None:
        return None
    return IncrementalPlan(
        new_files=len(selection.files),
        new_bytes=selection.bytes,
        known_files=selection.known,
        loaded=selection.loaded,
        changed=len(selection.again),
        state_bytes=len(json.dumps(selection.state.after)),
        reload=reload,
    )


def _found(foreseen: Foreseen) -> InputFound:
    if foreseen.listed is None:
        return look_at_input(foreseen.table.input)
    return InputFound(len(foreseen.listed), sum(file.size for file in foreseen.listed), ())


def _example(foreseen: Foreseen, destination: DestinationSpec, attempt: Attempt) -> str:
    """Return the URL the first file would get at this instant."""
    table, parquet = foreseen.table, destination.parquet
    name = render_file_name(
        parquet.file_name_pattern,
        seq=0,
        uuid=_EXAMPLE_UUID,
        synced=attempt.synced,
        job_id=attempt.job_id,
    )
    partition = partition_path(parquet.partition_strategy, attempt.synced, attempt.job_id)
    location = TableLocation(destination.prefix, table.schema, table.table)
    return f"s3://{destination.bucket}/{data_key(location, partition, name)}"


def numbering(given: FilesInput, files: int, size: int) -> Numbering:
    if given.format in ("PARQUET", "ORC"):
        return "footers"
    options = {name.lower(): value.lower() for name, value in given.options.items()}
    whole = given.format == "JSON" or options.get("multiline") == "true"
    whole = whole or all(path.endswith(_UNSPLITTABLE) for path in given.paths)
    single = files == 1 and (whole or size <= _ONE_PARTITION)
    return "one partition" if single else "counting pass"


def nothing_there(missing: tuple[str, ...]) -> ErrorInfo:
    paths = ", ".join(f"`{path}`" for path in missing)
    return ErrorInfo(
        "MissingInput",
        f"there is no input at {paths}",
        int(ExitCode.REFUSED),
        "relative paths start at the folder of the pipeline document",
        "open",
    )
