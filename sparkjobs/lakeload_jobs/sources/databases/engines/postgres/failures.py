"""Errors of PostgreSQL, by their SQLSTATE."""

from __future__ import annotations

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.secrets import Secret, without_secrets
from lakeload_jobs.sources.databases.engines.failures import LOST_HINT


def safe_text(text: str, password: Secret | None) -> str:
    """Return a driver's message on one line, without the password."""
    if password is not None:
        text = without_secrets(text, [password.reveal()])
    return " ".join(text.split())[:300]


POOL_HINT = (
    "set `pool_mode = session` in PgBouncer for this database or user, or connect to the server "
    "itself"
)
HINTS = {
    "42501": (
        "grant what is missing: `GRANT USAGE ON SCHEMA …` and `GRANT SELECT ON …` to the user; "
        "where a row-level security policy is named, run `ALTER ROLE … SET row_security = on`"
    ),
    "42P01": "the table was dropped or renamed: run again",
    "42703": "the columns of the table have changed: run again",
    "53100": "free space on the disk of the server, and run again",
    "53200": "raise the memory of the server, or run again when it is less busy",
    "53400": "raise `temp_file_limit` for this user",
    "53300": "lower `max_connections` in `source`, or raise it on the server",
    "55000": "fill a materialized view that has no rows yet: `REFRESH MATERIALIZED VIEW …`",
    "55P03": "another session holds a lock on the table: run again when it has ended",
    "57014": "set a higher `statement_timeout` in `source`, in seconds",
    "57P05": "raise `idle_session_timeout` for this user",
    "25P03": "raise `idle_in_transaction_session_timeout` for this user",
    "40001": "on a read replica raise `max_standby_streaming_delay`, or read from the primary",
    "42601": "check the query: it is one SELECT",
    "26000": POOL_HINT,
    "22012": "leave the column out with `columns.exclude`, or fix the view",
}
"""What to do, by SQLSTATE (docs/error-codes.md)."""
_RETRYABLE = ("08", "40", "53", "57", "55006", "55P03")
"""SQLSTATEs, or classes of them, that another attempt may get around."""
_LOST = "the connection to PostgreSQL was lost"
_ENDS = ("57P01", "57P02", "57P03")
"""SQLSTATEs with which a server that stops ends its sessions."""


def is_lost(state: str | None) -> bool:
    """Whether an error of this SQLSTATE is the end of the connection; without one it is."""
    return not state or state.startswith(("\0", "08")) or state in _ENDS


def failure(doing: str, state: str | None, text: str) -> LoadFailed:
    """Return the failure of a statement."""
    if is_lost(state):
        return LoadFailed(f"{doing}: {_LOST}", hint=LOST_HINT, retryable=True)
    assert state  # noqa: S101
    said = safe_text(text, None)
    return LoadFailed(
        f"{doing}: {said} (SQLSTATE {state})",
        hint=HINTS.get(state, LOST_HINT if state.startswith(_RETRYABLE) else None),
        retryable=state.startswith(_RETRYABLE),
    )
