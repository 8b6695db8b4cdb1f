"""Durations as people write them: `PT5M` as in ISO 8601, or `5m`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from lakeload.config.model import Called, refusal
from lakeload.config.secret_names import shown
from lakeload_jobs.contract.errors import InvalidInput

_ISO = re.compile(
    r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?",
    re.IGNORECASE | re.ASCII,
)
_SHORT = re.compile(
    r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.IGNORECASE | re.ASCII
)


def parse_duration(text: str) -> timedelta:
    """Return the duration of `PT1H30M`, `P1D`, `1h30m` or `90s`. Raises `InvalidInput`."""
    match = _ISO.fullmatch(text.strip()) or _SHORT.fullmatch(text.strip())
    if match is None or not any(match.groups()) or text.strip().upper().endswith("T"):
        raise InvalidInput(
            f"`{shown(text)}` is not a duration", hint="write it as `PT5M`, or as `30s`, `5m`, `2h`"
        )
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def duration_setting(given: Any, parse: Callable[[str], timedelta]) -> timedelta:
    """Return the duration of a setting. Raises as a validator of a model does."""
    if not isinstance(given, str):
        raise refusal("this is not a duration", "write it as `PT5M`, or as `30s`, `5m`, `2h`")
    try:
        return parse(given)
    except InvalidInput as error:
        raise refusal(error.message, error.hint) from None


def _duration(given: Any) -> timedelta:
    duration: timedelta = duration_setting(given, parse_duration)
    if not duration:
        raise refusal(f"`{shown(given)}` is no time", "write it as `PT2H`, or as `30m`, `2h`, `1d`")
    return duration


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    Called("duration"),
    WithJsonSchema({"type": "string"}),
]


MIN_INTERVAL, MAX_INTERVAL = timedelta(seconds=1), timedelta(hours=4)


def parse_interval(text: str) -> timedelta:
    """Return the interval at which loads may come, from a second to four hours. Raises
    `InvalidInput`."""
    interval = parse_duration(text)
    if not MIN_INTERVAL <= interval <= MAX_INTERVAL:
        raise InvalidInput(f"`{shown(text)}` is out of range", hint="an interval is 1s to 4h")
    return interval


def is_interval(text: str) -> bool:
    """Return whether `parse_interval` takes a text."""
    try:
        parse_interval(text)
    except InvalidInput:
        return False
    return True


def format_duration(duration: timedelta) -> str:
    """Return a duration for people: `5 min`, `1 h 30 min`, `45 s`."""
    seconds = int(duration.total_seconds())
    parts = [(seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"
