"""The tables that globs such as those of `--table` choose."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from typing import TypeVar

from lakeload.config.document import quoted
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.names import did_you_mean

T = TypeVar("T")


def choose_tables(
    tables: Sequence[T],
    globs: Sequence[str],
    names_of: Callable[[T], Sequence[str]],
    option: str = "--table",
) -> tuple[T, ...]:
    """Return the tables of which a name matches one of the globs; all when there are none.

    Case counts, as it does in the document. The first name of a table is the one that messages
    list, and `option` is what the globs were given with. Raises `InvalidInput` for a glob without a
    match.
    """
    names = [(table, names_of(table)) for table in tables]
    for glob in globs:
        if not any(_matches(own, glob) for _, own in names):
            every = [name for _, own in names for name in own]
            raise InvalidInput(
                f"`{f'{option} {glob}'.strip()}` matches no table of the pipeline",
                hint=did_you_mean(glob, every)
                or f"there are {quoted([own[0] for _, own in names], 10)}",
            )
    return tuple(
        table for table, own in names if not globs or any(_matches(own, glob) for glob in globs)
    )


def _matches(names: Sequence[str], glob: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for name in names)
