"""Rows that an earlier load of the pipeline has appended, appended once more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import AppendAgain


@dataclass(frozen=True)
class LastLoad:
    """The last load of a pipeline into a table. `at` and `rows` are None where they are not known
    any more."""

    job_id: str
    at: datetime | None = None
    rows: int | None = None

    @property
    def sentence(self) -> str:
        """Which load it was, for people."""
        rows = "rows" if self.rows is None else f"{self.rows:,} row{'s' * (self.rows != 1)}"
        when = "" if self.at is None else f" at {self.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        return f"job `{self.job_id}` of this pipeline has loaded {rows} of it{when}"


def append_again_warnings(
    again: AppendAgain | None, last: LastLoad | None, source: str
) -> tuple[str, ...]:
    """Return what to say of a load that appends all rows of `source` after another one has.

    Raises `LoadFailed` where `on_append_again` is FAIL.
    """
    if again is None or last is None or last.rows == 0:
        return ()
    if again.policy == "FAIL":
        raise LoadFailed(
            f"this load would append all rows of `{source}`: {last.sentence}, and what is still "
            "there would be in the table twice (`on_append_again: FAIL`); nothing was loaded",
            hint=f"{again.instead}; or add the rows again with `--reload`",
        )
    return (
        f"all rows of `{source}` are appended: {last.sentence}, and what is still there is in the "
        f"table twice then. To load each row once, {again.instead}. If it is on purpose, set "
        "`on_append_again: ALLOW`",
    )
