"""The load of one table, from open to committed, whatever its format and its source."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import ColumnResult, TableResult
from lakeload_jobs.contract.spec import TRACKING_TYPES, JobSpec, OnSameKey, TableSpec
from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.formats.base import (
    ROUNDS,
    FormatSession,
    OpenTable,
    PreparedRows,
    Reporter,
    RetryLoad,
    StagedLoad,
    TableWriter,
)
from lakeload_jobs.formats.read_rows import LoadInput, prepare_rows
from lakeload_jobs.formats.same_key import same_key_sentence
from lakeload_jobs.rows.balance import check_balance
from lakeload_jobs.rows.progress import new_progress_file
from lakeload_jobs.rows.rejects import Rejected, check_rejected
from lakeload_jobs.sources.base import (
    ReadAgain,
    Slice,
    Source,
    explained_by_change,
    with_all_bad_values,
)
from lakeload_jobs.sources.position import position_of
from lakeload_jobs.storage.backoff import pause


@dataclass(frozen=True)
class TableLoad:
    """One table of one attempt."""

    session: FormatSession
    spec: JobSpec
    table: TableSpec
    source: Source
    reporter: Reporter


def load_table(load: TableLoad) -> TableResult:
    """Load one table, again from the beginning where others' commits ask for it.

    Raises what stopped it; nothing of it is visible then, unless the error says that nobody knows.
    """
    started = time.monotonic()
    target = load.table.target
    reason = ""
    compares = load.table.max_deleted is not None
    progress = partial(new_progress_file, load.spec, load.table)
    with closing(
        LoadInput(load.source, load.table.source, load.reporter, compares, progress)
    ) as given:
        for tries in range(ROUNDS):
            try:
                result = _once(load, given)
            except Exception as error:
                again = _reason(load, error)
                if again is None:
                    raise
                reason = again
            else:
                return replace(result, seconds=round(time.monotonic() - started, 3))
            load.reporter.on_message(f"`{target}` is loaded again: {reason}")
            pause(tries + 2)
    raise LoadFailed(
        f"`{target}` was not loaded after {ROUNDS} attempts: {reason}",
        hint="run again when fewer loads commit to the table: nothing was committed",
        retryable=True,
    )


def _reason(load: TableLoad, error: Exception) -> str | None:
    if isinstance(error, RetryLoad | ReadAgain):
        return str(error)
    return load.session.retry_reason(load.table, error)


def _once(load: TableLoad, given: LoadInput) -> TableResult:
    """Load once. Raises `RetryLoad`, or what the session takes for one, to begin anew."""
    spec, table = load.spec, load.table
    load.reporter.on_stage("open")
    opened = load.session.open(table, load.reporter, incremental=given.source.incremental)
    if opened.already is not None:
        return opened.already
    bookmark = opened.bookmark
    found = given.slice(bookmark)
    if found.idle and not opened.replaces and table.max_deleted is None:
        return _kept(opened, found, bookmark.state)
    expected = opened.expected()
    rows = given.rows(opened, found, bookmark.state, expected.known)
    with explained_by_change(rows.check_unchanged):
        prepared = replace(
            prepare_rows(spec, table, rows, expected), read=found.sentence, more=found.more
        )
        writer = opened.check(prepared)
    columns = _columns(spec, prepared)
    if writer is None:
        rows.check_unchanged()
        note = "the source has no column with a type yet, so no table was created"
        return TableResult(table.source, table.target, "NO_OP", notes=(note,))
    counted = None
    with explained_by_change(rows.check_unchanged), with_all_bad_values(rows):
        if rows.repeatable:
            load.reporter.on_stage("count")
            counted = writer.count()
            chosen = table.where is not None or spec.options.limit is not None
            rows.check_read(None if counted is None or chosen else counted.rows)
        load.reporter.on_stage("stage", None if counted is None else counted.rows)
        staged = writer.stage(counted)
    if found.idle and not opened.replaces and not staged.deleted:
        staged.abandon()
        return _kept(opened, found, bookmark.state)
    try:
        rows.check_unchanged()
        if spec.on_bad_value_of(table) == "QUARANTINE":
            check_rejected(staged.report.rejected, spec.max_rejected_of(table))
        check_balance(staged.balance, table.target)
        balance, before = staged.balance, bool(expected.recorded)
        of = balance.read - balance.dropped - balance.rejected
        same_key = same_key_sentence(table, staged.same_key, of, loaded_before=before)
        change = rows.finish(()) or found.change
        if (evidence := found.noted(staged.report.rejected.files)) is not None:
            staged.note(evidence)
        load.reporter.on_stage("commit")
    except BaseException:
        staged.abandon()
        raise
    state = bookmark.state if change is None else change.after
    result = replace(
        staged.commit(change), columns=columns, more=found.more, position=position_of(state)
    )
    return _told(result, opened, found, prepared, writer, staged, same_key)


def _kept(opened: OpenTable, found: Slice, state: object) -> TableResult:
    """Return the result of a table with nothing new, whose source has this state."""
    kept = opened.keep(found)
    return replace(kept, notes=_notes(found), warnings=found.warnings, position=position_of(state))


def _columns(spec: JobSpec, prepared: PreparedRows) -> tuple[ColumnResult, ...]:
    types = {field.name: field.dataType.simpleString() for field in prepared.schema.fields}
    loaded = (
        ColumnResult(column.source, column.target, types[column.target])
        for column in prepared.mapping.columns
        if column.target in types
    )
    tracking = (ColumnResult(None, name, TRACKING_TYPES[name]) for name in spec.tracking_columns)
    return (*loaded, *tracking)


def _told(
    result: TableResult,
    opened: OpenTable,
    found: Slice,
    prepared: PreparedRows,
    writer: TableWriter,
    staged: StagedLoad,
    same_key: tuple[OnSameKey, str],
) -> TableResult:
    """Return the result with all that a user is told of the load."""
    policy, replaced = same_key
    replaced_rows = (replaced,) if replaced else ()
    mapping = prepared.mapping
    bad = f"{staged.report.bad_values} values or records could not be read and became null"
    warnings = (
        *opened.warnings,
        *found.warnings,
        *prepared.rows.warnings,
        *mapping.warnings,
        *writer.warnings,
        *(replaced_rows if policy == "WARN" else ()),
        *((f"{bad} (`on_bad_value`)",) if staged.report.bad_values else ()),
        *((_set_aside(staged.report.rejected, result),) if result.rejected else ()),
    )
    said = result.error.message if result.error else ""
    warnings = tuple(_unless_said(warning, said) for warning in warnings)
    if result.status == "NO_OP":
        return replace(result, warnings=warnings)
    notes = (*_notes(found), *mapping.notes, *writer.notes, *result.notes)
    if policy == "ALLOW":
        notes = (*notes, *replaced_rows)
    return replace(
        result,
        reader=writer.reader,
        writer=writer.writer,
        notes=notes,
        warnings=warnings,
        same_key=staged.same_key,
    )


def _set_aside(rejected: Rejected, result: TableResult) -> str:
    side = f"{result.target}{REJECTED_SUFFIX}"
    what = f"{result.rejected:,} of {rejected.of:,} records were set aside in `{side}`"
    return f"{what}, such as: {rejected.first[0]}" if rejected.first else what


def _unless_said(warning: str, error: str) -> str:
    """Return a warning without its reason where the error names the same, such as a denial."""
    what, _, reason = warning.partition(": ")
    return what if reason and reason in error else warning


def _notes(found: Slice) -> tuple[str, ...]:
    return (found.sentence,) if found.sentence else ()
