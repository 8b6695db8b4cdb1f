"""The state of a pipeline for a table of a database: how far it has loaded it, by a cursor column.

Here is no client of a database: commands that only show it start sooner without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.state import StateChange, check_format
from lakeload_jobs.sources.databases.relation_identity import NotedRelation, read_relation

Kind = Literal["INTEGER", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TEXT"]

_TEXTS: dict[Kind, str] = {
    "INTEGER": r"-?\d{1,1000}",
    "DATE": r"\d{4}-\d\d-\d\d",
    "TIMESTAMP": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?",
    "TIMESTAMPTZ": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?(\+00)?",
}
CALLED: dict[Kind, str] = {
    "INTEGER": "an integer",
    "DATE": "a date",
    "TIMESTAMP": "a timestamp without time zone",
    "TIMESTAMPTZ": "a timestamp with time zone",
    "TEXT": "text",
}


STATE_FORMAT = 1
"""Of the state of any cursor as a commit holds it; one without a number has this one."""


@dataclass(frozen=True)
class CursorState:
    """What a pipeline keeps of a table: how far it has loaded it.

    `last` is the greatest value of the cursor that was loaded, None: there were no rows. `at` is a
    digest of the rows that had it, or were within `lookback` of it, by which a load knows that they
    are still the same. `seen` is the number of the load that has noted these rows, None where none
    were noted. `since` is where this load has begun, if the user has said where. `relation` is what
    was read; None: it has no identity, or the state is from before identities were noted.
    """

    cursor: str
    type: Kind
    last: str | None
    at: str | None = None
    seen: int | None = None
    since: str | None = None
    relation: NotedRelation | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as a commit holds it."""
        state: dict[str, Any] = {
            "cursor": self.cursor,
            "type": self.type,
            "last": self.last,
            "at": self.at,
        }
        if self.since is not None:
            state["from"] = self.since
        if self.relation is not None:
            state["relation"] = self.relation.to_json()
        return state if self.seen is None else {**state, "seen": self.seen}


def read_state(state: Any) -> CursorState | None:
    """Return what a commit holds; None where no load has kept a cursor. Raises as `cursor_json`."""
    if (state := cursor_json(state)) is None:
        return None
    try:
        found = CursorState(
            state["cursor"], state["type"], state["last"], state.get("at"), state.get("seen"),
            state.get("from"), read_relation(state),
        )  # fmt: skip
        if found.last is not None:
            check_text(found.type, found.last)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(str(error)) from error
    return found


def cursor_json(state: Any) -> Mapping[str, Any] | None:
    """Return the state of a cursor, of whatever type, as a commit holds it; None where no load has
    kept one. Raises `NewerFormat`, and `LoadFailed` for the state of another kind of source."""
    if state is None:
        return None
    check_format(state, STATE_FORMAT, "the state of this pipeline")
    if not isinstance(state, dict) or "kind" in state:
        raise damaged("it is not the state of a table of a database")
    return state if "cursor" in state else None


def rows_of(change: StateChange) -> str | None:
    """Return which rows a job with this change of its state has read, for people; None where the
    state is not that of a cursor."""
    try:
        before, after = read_state(change.before), read_state(change.after)
    except LoadFailed:
        return None
    if after is None or after.last is None:
        return None
    if after.since is not None:
        return rows_between(after.cursor, f"{after.since} (`--from`)", after.last)
    ended = "" if before is None or before.last is None else f", after a load to {before.last}"
    return rows_between(after.cursor, None, after.last) + ended


def rows_between(name: str, low: str | None, high: str) -> str:
    """Return in words which rows of a cursor column a load reads."""
    since = "" if low is None else f"from {low} "
    return f"rows with `{name}` {since}to {high}"


def check_text(kind: Kind, text: str) -> None:
    """Raise `ValueError` for text that writes no value of a kind."""
    if kind == "TEXT":
        return
    if not re.fullmatch(_TEXTS[kind], text, re.ASCII):
        raise ValueError(f"`{text}` is not {CALLED[kind]}")
    if kind != "INTEGER":
        datetime.fromisoformat(text)


def damaged(why: str) -> LoadFailed:
    """Return the error of a state that cannot be used."""
    return LoadFailed(
        f"the state of this pipeline cannot be used: {why}",
        hint="if another kind of source was loaded into this table before, give this pipeline "
        "another `name`",
    )
