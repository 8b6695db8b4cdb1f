"""The servers' clock, as the Date of their answers tells it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from lakeload_jobs.aws.session import ServerClock


@pytest.mark.parametrize("minutes", [-20, 0, 7])
def test_server_clock_returns_the_offset_of_this_machine(minutes: int) -> None:
    there = datetime.now(UTC) - timedelta(minutes=minutes)
    clock = ServerClock()
    clock.note({"headers": {"Date": format_datetime(there, usegmt=True)}})
    assert clock.ahead == pytest.approx(minutes * 60, abs=5)


@pytest.mark.parametrize("answer", [None, {"headers": {}}, {"headers": {"Date": "yesterday"}}])
def test_server_clock_without_a_date_keeps_the_last_offset(
    answer: dict[str, dict[str, str]],
) -> None:
    clock = ServerClock()
    clock.note(answer)
    assert clock.ahead is None
