"""Numbers with their nouns, and instants, as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def counted(number: int, noun: str) -> str:
    """Return `1 row`, `2 rows`, `5,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def minute(instant: datetime) -> str:
    """Return an instant in UTC to the minute: `2026-11-21 10:15`."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M}"
