"""Times as people write them after an option."""

from __future__ import annotations

import re

from lakeload_jobs.contract.errors import InvalidInput

MIN_TIMEOUT, MAX_DURATION = 1.0, 3600.0
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m)?", re.ASCII)
_FACTORS = {"": 1, "s": 1, "m": 60}


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
