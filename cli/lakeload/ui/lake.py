"""Text and JSON of `lakeload lake`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from lakeload.lake.query import Answer
from lakeload.lake.server import BUCKET, WAREHOUSE, Lake
from lakeload.lake.tables import tables
from lakeload.ui import console
from lakeload.ui.demo import cell, show_facts, width_of
from lakeload.ui.demo import show_answer as show_rows
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.spec import TableFormat
from lakeload_jobs.core.sizes import counted, format_size

_MOST_ROWS = 100
"""As many rows of a query are shown; JSON has all."""


@dataclass(frozen=True)
class LakeState:
    """`lake up`, `lake down` and `lake status --output json`: the lake on this machine."""

    folder: str
    exists: bool
    running: bool
    """Whether S3 and the catalog respond."""
    pid: int | None
    endpoint: str | None
    catalog: str | None
    buckets: tuple[str, ...]
    tables: tuple[str, ...]
    bytes: int
    log: str
    write_failure: str | None
    """Of `lake status`: why nothing can be written."""
    deleted: bool

    @classmethod
    def of(cls, lake: Lake, *, writes: bool = False) -> LakeState:
        """Ask the server, if one runs; with `writes` also whether it can write. Raises `AwsError`,
        `CatalogError`."""
        pid = lake.pid()
        responds = pid is not None and lake.responds()
        names = (
            [one.name for each in get_args(TableFormat) for one in tables(lake, each)]
            if responds
            else []
        )
        return cls(
            folder=str(lake.folder),
            exists=lake.exists,
            running=responds,
            pid=pid,
            endpoint=lake.s3_endpoint if lake.exists else None,
            catalog=lake.catalog_uri if lake.exists else None,
            buckets=(BUCKET, WAREHOUSE) if lake.exists else (),
            tables=tuple(sorted(set(names))),
            bytes=lake.bytes(),
            log=str(lake.log),
            write_failure=lake.write_failure() if writes and responds else None,
            deleted=False,
        )


def show_state(state: LakeState, *, started: bool) -> None:
    """Show whether it runs, where, and what to do next."""
    if not state.exists:
        console.answer(f"there is no lake in {state.folder}")
        console.note("`lakeload lake up` makes one")
        return
    running = f"runs, process {state.pid}" if state.running else "does not run"
    if state.pid is not None and not state.running:
        running = f"process {state.pid} does not respond: read its log"
    if state.write_failure is not None:
        running += f", but writes fail: {state.write_failure}"
    facts = [
        ("state", running),
        ("S3 endpoint", state.endpoint or ""),
        ("catalog", f"{state.catalog} (Iceberg REST)"),
        ("buckets", f"{BUCKET} (Parquet), {WAREHOUSE} (Iceberg)"),
        ("data", f"{format_size(state.bytes)} in {state.folder}"),
        ("log", state.log),
    ]
    if state.running:
        facts.insert(4, ("tables", ", ".join(state.tables) or "none yet"))
    show_facts(console.out, facts)
    if state.pid is None:
        console.note("`lakeload lake up` starts it")
    if state.write_failure is not None:
        console.note(f"make room on the disk of {state.folder}; {state.log} says more")
    if started and not console.quiet():
        console.answer(
            "\nThis lake is for trying: one process, no TLS, no copies of the data.\n\nNext:\n"
            "  lakeload init --local --path FILES   # writes destination.yml and pipeline.yml\n"
            "  lakeload lake down                   # stops it; data and keys stay"
        )


def show_deleted(state: LakeState, *, done: bool) -> None:
    """Show what was removed, or would be."""
    if not state.exists:
        console.answer(f"there is no lake in {state.folder}")
        return
    what = f"{format_size(state.bytes)} of data and the keys in {state.folder}"
    listed = (
        f", the {counted(len(state.tables), 'table')} {', '.join(state.tables)}"
        if state.tables
        else ""
    )
    console.answer(f"{'removed' if done else 'would remove'} {what}{listed}")
    if not done:
        console.note("`lakeload lake down --delete --yes` removes them")


def to_document(state: LakeState, *, deleted: bool) -> Any:
    """Return the JSON answer."""
    if deleted:
        state = replace(state, exists=False, running=False, pid=None, deleted=True)
    return to_json(state)


def show_answer(answer: Answer) -> None:
    """Show columns and rows, numbers as they are: a year or an id is no amount."""
    rows = [tuple(map(_plain, row)) for row in answer.rows[:_MOST_ROWS]]
    shown = Answer(answer.columns, tuple(rows))
    width = width_of(shown)
    if not console.out.is_terminal or width <= console.out.width:
        # Whoever reads a pipe wants whole lines.
        with console.out.at_least(width):
            show_rows(console.out, shown)
    else:
        # Cut values tell less than long ones.
        for row in shown.rows:
            console.answer("")
            show_facts(console.out, zip(shown.columns, map(cell, row), strict=True))
    if len(answer.rows) > _MOST_ROWS:
        more = counted(len(answer.rows) - _MOST_ROWS, "more row")
        console.note(f"{more}: `--output json` shows them all")


def _plain(value: str | int | None) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
