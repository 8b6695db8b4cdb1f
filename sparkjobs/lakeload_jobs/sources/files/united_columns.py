"""The columns of several files that make one table: spellings of one name, and files of another
table among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import TRACKING_TYPES
from lakeload_jobs.core.names import spelling
from lakeload_jobs.sources.base import EarlierColumns, Spellings

FileNames = Mapping[str, Sequence[str]]
"""The names of columns that each file has, by its path, in the order in which files are read."""
SharedNames = Mapping[str, Mapping[str, str]]
"""By path: names of a file, and what the first file that has the column calls it."""

OTHER_TABLE_HINT = (
    "load the file into a table of its own; if its columns are those of the table under other "
    "names, name them in `columns.rename`"
)
_SHOWN = 10


def shared_names(
    files: FileNames, earlier: EarlierColumns, rename: Mapping[str, str]
) -> SharedNames:
    """Return the names that are another spelling of a column that a file before has.

    Two spellings within one file are two columns. So the files make the table that they make when
    they are loaded one after the other, each as `map_columns` takes it. Raises `InvalidInput` for a
    name that could be one of several columns.
    """
    columns = {name: target.lower() for name, target in {**earlier.columns, **rename}.items()}
    spelled: dict[str, dict[str, str]] = {}
    for name, column in columns.items():
        spelled.setdefault(spelling(name), {})[column] = name
    shown: dict[str, str] = {}
    found: dict[str, dict[str, str]] = {}
    for path, names in files.items():
        taken: dict[str, str] = {}
        for name in names:
            if name in columns:
                taken.setdefault(columns[name], name)
        own = set(taken.values())
        for name in names:
            if name in own:
                continue
            same = spelled.setdefault(spelling(name), {})
            free = [] if name in columns else [column for column in same if column not in taken]
            if len(free) > 1 and not any(one in shown for one in free):
                free = []  # `map_columns` names the columns of the table that it could be.
            if len(free) > 1:
                raise _ambiguous(path, name, [same[column] for column in free])
            columns[name] = free[0] if free else f"{name}\0{path}"
            same[columns[name]] = taken[columns[name]] = name
        for column, name in taken.items():
            if shown.setdefault(column, name) != name:
                found.setdefault(path, {})[name] = shown[column]
        shared = [found.get(path, {}).get(name, name) for name in names]
        if twin := next((name for name, times in Counter(shared).items() if times > 1), None):
            raise _ambiguous(
                path, twin, [name for name in names if spelling(name) == spelling(twin)]
            )
    return found


def other_spellings(shared: SharedNames, names: Collection[str]) -> Spellings:
    """Return the names that are another spelling of one of `names`, and none of these."""
    others = {name: one for own in shared.values() for name, one in own.items()}
    return tuple(sorted((name, one) for name, one in others.items() if name not in names))


def _ambiguous(path: str, name: str, others: Sequence[str]) -> InvalidInput:
    return InvalidInput(
        f"column `{name}` of `{path}` is another spelling of more than one column: "
        f"{_listed(others)}",
        hint="give it another name in this file, or the name that the column has in the files "
        "before",
    )


def check_one_table(
    files: FileNames,
    earlier: EarlierColumns,
    rename: Mapping[str, str],
    hint: Callable[[Sequence[str], Sequence[str]], str],
) -> None:
    """Raise `LoadFailed` for a file that shares no column with the table, or with the files before,
    by way of others: a file of another table would leave its columns in this one for ever.

    `hint` is given the columns of the file, and those that were expected.
    """
    known = tuple(earlier.columns)
    # A load names the table's columns, which are its own tracking columns, too.
    wanted = tuple(name for name in known if name.lower() not in TRACKING_TYPES)
    where = "the table"
    connected = {spelling(name) for name in (*known, *rename)}
    left = {path: {spelling(name) for name in names} for path, names in files.items() if names}
    if left and not known:
        first = next(iter(left))
        connected |= left.pop(first)
        wanted, where = tuple(files[first]), f"`{first}`"
    while near := [path for path, names in left.items() if names & connected]:
        for path in near:
            connected |= left.pop(path)
    for path in left:
        raise LoadFailed(
            f"`{path}` has no column in common with {where}: its columns are "
            f"{_listed(files[path])}, and those of {where} {_listed(wanted)}",
            hint=hint(files[path], wanted),
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(f"`{name}`" for name in names[:_SHOWN]) + more


def names_by_file(files: Iterable[tuple[str, Iterable[str]]]) -> FileNames:
    """Return the names of each file, given those of its parts."""
    found: dict[str, dict[str, None]] = {}
    for path, names in files:
        found.setdefault(path, {}).update(dict.fromkeys(names))
    return {path: tuple(names) for path, names in found.items()}
