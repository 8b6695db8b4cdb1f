"""Sizes, amounts and instants as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from lakeload_jobs.contract.errors import InvalidInput

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?B|B)?", re.IGNORECASE | re.ASCII)
_JVM_MEMORY = re.compile(r"(\d+)([kmgt])b?", re.IGNORECASE | re.ASCII)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(text: str | int) -> int:
    """Return bytes for `1GiB` (2³⁰), `512MB` (10⁶), `1.5 GiB` or a bare number of bytes.

    Raises `InvalidInput` for anything else.
    """
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        raise InvalidInput(
            f"`{text}` is not a size", hint="write it as `512MiB`, `1GiB` or `500MB`"
        )
    unit = (match[2] or "B").upper()
    base = 1024 if "I" in unit else 1000
    whole, _, fraction = match[1].partition(".")
    factor = int(base ** _POWERS.get(unit[0], 0))
    return int(whole) * factor + (int(fraction) * factor // 10 ** len(fraction) if fraction else 0)


def parse_jvm_memory(text: str) -> int:
    """Return bytes for `8g` or `512m`, the JVM's notation (powers of 1024).

    Raises `InvalidInput` for anything else.
    """
    match = _JVM_MEMORY.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"`{text}` is not an amount of memory", hint="write it as `8g` or `512m`"
        )
    return int(match[1]) * int(1024 ** _POWERS[match[2].upper()])


def format_size(size: int) -> str:
    """Return bytes for people: `512 B`, `1.5 MiB`, `12.0 GiB`."""
    if size < 1024:
        return f"{size} B"
    amount, unit = size / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if amount < 1023.95:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f} {unit}"


def counted(number: int, noun: str) -> str:
    """Return `1 row`, `2 rows`, `5,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def minute(instant: datetime) -> str:
    """Return an instant in UTC to the minute: `2026-11-21 10:15`."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M}"
