"""Times and ages as people write them after an option."""

from __future__ import annotations

import re
from datetime import timedelta

from lakeload_jobs.contract.errors import InvalidInput

MIN_TIMEOUT, MAX_DURATION = 1.0, 3600.0
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m)?", re.ASCII)
_FACTORS = {"": 1, "s": 1, "m": 60}
_AGE = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_seconds(option: str, text: str, *, least: float = 0.0) -> float:
    """Return the seconds of `90`, `90s` or `2m`. Raises `InvalidInput` that names the option."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _FACTORS[match[2] or ""] if match else -1.0
    if not least <= seconds <= MAX_DURATION:
        raise InvalidInput(
            f"`{option} {text}` is not a time from {least:g} s to {MAX_DURATION / 60:g} m",
            hint="write it as `30s` or `2m`",
        )
    return seconds


def parse_age(option: str, text: str) -> timedelta:
    """Return the age of `0`, `90m`, `24h` or `2d`. Raises `InvalidInput` that names the option."""
    if text.strip() == "0":
        return timedelta(0)
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"`{option} {text}` is not an age", hint="write it as `0`, `90m`, `24h` or `2d`"
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
