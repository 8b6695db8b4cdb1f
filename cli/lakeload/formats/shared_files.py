"""Files that more than one table of a pipeline reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from lakeload.config.secret_names import shown
from lakeload.formats.inspection import InspectionRequest, TableState
from lakeload.sources.registry import facts_of, source_of
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.core.sizes import counted

_PAIRS = 5
"""So many pairs of tables get a warning."""


def shared_files(
    states: Sequence[TableState], request: InspectionRequest, *, local: bool
) -> Mapping[str, tuple[str, ...]]:
    """Return the warnings of tables that read the same files, by the table. With a `local` master
    files are listed that the inspection has left to the job.

    No table has a warning where both are meant to have the rows: one selects rows or columns that
    the other one does not, or is in `request.append_again`.
    """
    readers: dict[str, list[TableSpec]] = {}
    for state in states:
        for path in _paths(state, local=local):
            readers.setdefault(path, []).append(state.table)
    pairs: dict[tuple[str, str], list[str]] = {}
    for path, tables in readers.items():
        for one, other in combinations(tables, 2):
            if _selection(one) == _selection(other):
                pairs.setdefault((one.source, other.source), []).append(path)
    warnings: dict[str, tuple[str, ...]] = {}
    meant = request.append_again
    for pair, files in [(pair, files) for pair, files in pairs.items() if not meant & {*pair}][
        :_PAIRS
    ]:
        for name in pair:
            warnings[name] = (*warnings.get(name, ()), _warning(pair, files))
    return warnings


def _paths(state: TableState, *, local: bool) -> Iterator[str]:
    if state.error is not None:
        return
    files = state.report.listed
    if files is None and local:
        files = source_of(state.table.input).local_files(state.table.input)
    yield from (file.path for file in files or ())


def _selection(table: TableSpec) -> tuple[object, ...]:
    """Return what selects rows and columns of files."""
    records = facts_of(table.input).records
    return table.where, table.columns.include, table.columns.exclude, records


def _warning(pair: tuple[str, str], files: Sequence[str]) -> str:
    one, other = map(shown, pair)
    example = (
        f"such as `{shown(min(files), 200)}`" if len(files) > 1 else f"`{shown(files[0], 200)}`"
    )
    return (
        f"the tables `{one}` and `{other}` both read {counted(len(files), 'file')}, {example}: "
        "their rows are loaded twice, once into each table. Change the `path` of one of them. If "
        "it is on purpose, set `on_append_again: ALLOW`"
    )
