"""Ages as people write them on a command line."""

from __future__ import annotations

import re
from datetime import timedelta

from lakeload_jobs.contract.errors import InvalidInput

_AGE = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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
