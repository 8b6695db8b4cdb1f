"""The key that a table has in its database, kept with the table's state."""

from __future__ import annotations

from typing import Any

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.contract.state import Bookmark, StateChange, check_format
from lakeload_jobs.core.yaml_lines import yaml_list
from lakeload_jobs.sources.databases.bookmark import STATE_FORMAT

_KEY = "key"


def remembered(read: JdbcInput, state: Any) -> dict[str, Any]:
    """Return the part of a table's state that remembers its key; nothing where the document says
    the key.

    Raises `NewerFormat`, and `InvalidInput` where the database has another key than earlier loads
    were made with: `_supa_id` and the rows that UPSERT replaces would be others.
    """
    if read.key is None:
        return {}
    check_format(state, STATE_FORMAT, "the state of this pipeline")
    known = state.get(_KEY) if isinstance(state, dict) else None
    if known is not None and tuple(known) != read.key:
        raise InvalidInput(
            f"the key of `{read.schema}.{read.table}` in the database is {_shown(read.key)}, and "
            f"the table was loaded with {_shown(tuple(known))}",
            hint=f"to go on with the key so far set `primary_key: {yaml_list(known)}`; to follow "
            "the database load all of the table again, with `--full-refresh` or after `lakeload "
            "reset`",
        )
    return {_KEY: list(read.key)}


def key_change(read: JdbcInput, bookmark: Bookmark, *, replaces: bool) -> StateChange | None:
    """Return the change of the state of a table that is loaded whole, None where nothing changes.
    What `replaces` every row replaces the state, too. Raises as `remembered` does."""
    if read.key is None:
        return None
    state = bookmark.state
    after, before = remembered(read, state), state if isinstance(state, dict) else {}
    if not replaces and before.get(_KEY) == after[_KEY]:
        return None
    return StateChange(state, after if replaces else {**before, **after})


def _shown(key: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in key) or "none"
