"""The "did you mean" of messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `name` was most likely meant to be, ignoring case, or None."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return the hint "did you mean `X`?", or None when nothing comes near."""
    found = nearest(name, candidates)
    return None if found is None else f"did you mean `{found}`?"
