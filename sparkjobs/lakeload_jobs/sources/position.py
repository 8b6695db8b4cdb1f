"""The time up to which a source has been loaded, from the state that a commit holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

_NS = 1_000_000_000
_INSTANTS = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")


def position_of(state: Any) -> datetime | None:
    """Return the modification time of the newest file that was loaded, or the greatest value of a
    `cursor` that is a date or timestamp, UTC where it has no time zone. None for other states.

    It is for people and monitors, so a state that cannot be read has no position.
    """
    try:
        if not isinstance(state, dict):
            return None
        if "folders" in state and "rest" in state:
            return _of_files(state)
        if state.get("type") in _INSTANTS and state.get("last") is not None:
            found = datetime.fromisoformat(str(state["last"]))
            return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, OSError):
        pass
    return None


def _of_files(state: dict[str, Any]) -> datetime | None:
    newest = max(_watermarks(state), default=None)
    return None if newest is None else datetime.fromtimestamp(newest / _NS, UTC)


def _watermarks(state: dict[str, Any]) -> Iterator[int]:
    for fold in (state.get("rest"), *(state.get("folders") or {}).values()):
        if isinstance(fold, dict) and isinstance(fold.get("watermark"), int):
            yield fold["watermark"]
