"""The time up to which a source is loaded, as states of each kind tell it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lakeload_jobs.sources.databases.bookmark import CursorState
from lakeload_jobs.sources.files.bookmark import FilesState, Fold, state_json
from lakeload_jobs.sources.position import position_of

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
NS = int(NOON.timestamp()) * 1_000_000_000
FILES = FilesState(1, folders={"a": Fold(1, NS - 5), "b": Fold(2, NS)}, rest=Fold(1, NS - 9))


@pytest.mark.parametrize(
    ("state", "position"),
    [
        (state_json(FILES), NOON),
        (state_json(FilesState(1)), None),
        (CursorState("at", "TIMESTAMPTZ", "2026-11-27 12:00:00+00").to_json(), NOON),
        (CursorState("at", "TIMESTAMP", "2026-11-27 12:00:00.0").to_json(), NOON),
        (CursorState("at", "DATE", "2026-11-27").to_json(), NOON.replace(hour=0)),
        (CursorState("at", "TIMESTAMP", None).to_json(), None),
        (CursorState("id", "INTEGER", "20261127").to_json(), None),
        (CursorState("at", "TIMESTAMP", "9999-99-99 12:00:00").to_json(), None),
        ({"folders": 3, "rest": 4}, None),
        ({}, None),
        (None, None),
        ("x", None),
    ],
)
def test_position_is_the_newest_time_of_the_state(state: Any, position: datetime | None) -> None:
    assert position_of(state) == position
