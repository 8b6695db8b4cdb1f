"""Errors of JDBC drivers, by their SQLSTATE."""

from __future__ import annotations

from lakeload_jobs.contract.errors import LoadFailed


def safe_text(text: str) -> str:
    """Return a driver's message on one line."""
    return " ".join(text.split("; SQL statement:")[0].split())[:300]


LOST_HINT = "run again: nothing was committed"
_RETRYABLE = ("08", "40")
"""Classes of SQLSTATE in which another attempt may succeed: connections, serialization."""
HINTS = {
    "42S21": "give one of the two columns another name with `AS`",
    "42": "check the names of the table and its columns, and the rights of the user",
    "08": LOST_HINT,
    "40": LOST_HINT,
    "28": "check `user` and `password` in `source`",
}
"""What to do, by SQLSTATE or its class."""


def failure(doing: str, state: str | None, text: str) -> LoadFailed:
    """Return the failure of a statement."""
    code = (state or "")[:2]
    coded = f" (SQLSTATE {state})" if state else ""
    return LoadFailed(
        f"{doing}: {safe_text(text)}{coded}",
        hint=HINTS.get(state or "", HINTS.get(code)),
        retryable=code in _RETRYABLE,
    )
