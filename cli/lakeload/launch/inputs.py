"""The input of the tables of a job, looked at before Spark starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakeload.sources.registry import source_of
from lakeload_jobs.contract.errors import Refused
from lakeload_jobs.contract.spec import TableSpec


def input_bytes(tables: Sequence[TableSpec]) -> int | None:
    """Return the bytes the job will read, None where those of a table are not known here."""
    sizes = [source_of(table.input).size(table.input) for table in tables]
    return None if None in sizes else sum(filter(None, sizes))


def refuse_without_any_input(tables: Sequence[TableSpec]) -> None:
    """Raise `Refused` when every table lacks its input: Spark need not start for that.

    Where only some lack it, those fail in the job and the others are loaded.
    """
    absent = [source_of(table.input).absent(table.input) for table in tables]
    if not tables or not all(absent):
        return
    first = tables[0]
    more = f", nor those of {len(absent) - 1} other tables" if len(absent) > 1 else ""
    raise Refused(
        f"the input files of `{first.source}` are not there: {_listed(absent[0])}{more}",
        hint="relative paths start at the folder of the pipeline document",
    )


def _listed(paths: Iterable[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)
