"""What a sync would do with a table, whatever its format. Reads only."""

from __future__ import annotations

import json

from lakeload.formats.inspection import TableState
from lakeload.formats.plan_model import Action, IncrementalPlan, TablePlan
from lakeload.sources.base import InputFound
from lakeload.sources.registry import source_of
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import RunOptions


def plan_table(state: TableState, options: RunOptions, *, local: bool) -> TablePlan:
    """Return what is planned for a table of any format; with a `local` master its input files are
    counted. The format adds what it alone knows."""
    table = state.table
    found = _input(state) if local else InputFound()
    error = state.result.error if state.error else None
    numbering = source_of(table.input).numbering(table.input, found)
    action: Action = "REFUSED" if error else "NO_OP" if state.idle else "LOAD"
    if action == "LOAD" and found.missing and state.selection is None:
        action, error = "FAIL", _nothing_there(found.missing)
    return TablePlan(
        table=table.source,
        target=table.target,
        action=action,
        mode=table.mode,
        reader="jvm",
        index="sparse" if numbering == "not counted" else "dense",
        numbering=numbering,
        example="",
        first_run=state.first_run,
        files=found.files,
        bytes=found.bytes,
        missing=found.missing,
        error=error,
        warnings=state.warnings,
        incremental=_incremental(state, reload=options.reload),
    )


def _input(state: TableState) -> InputFound:
    if state.listed is None:
        return source_of(state.table.input).look(state.table.input)
    return InputFound(len(state.listed), sum(file.size for file in state.listed))


def _incremental(state: TableState, *, reload: bool) -> IncrementalPlan | None:
    """Return what an incremental table would load, None for a table that is loaded whole."""
    if (selection := state.selection) is None:
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


def _nothing_there(missing: tuple[str, ...]) -> ErrorInfo:
    paths = ", ".join(f"`{path}`" for path in missing)
    return ErrorInfo(
        "MissingInput",
        f"there is no input at {paths}",
        int(ExitCode.REFUSED),
        "relative paths start at the folder of the pipeline document",
        "open",
    )
