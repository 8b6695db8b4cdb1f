"""What is said of rows that are appended again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import AppendAgain
from lakeload_jobs.core.append_again import LastLoad, append_again_warnings

LAST = LastLoad("monday", datetime(2026, 11, 26, 8, 15, 30, tzinfo=UTC), 1234)
AGAIN = AppendAgain("WARN", "set `cursor: xmin`")


def test_warning_names_job_time_rows_and_both_settings() -> None:
    assert append_again_warnings(AGAIN, LAST, "shop.orders") == (
        "all rows of `shop.orders` are appended: job `monday` of this pipeline has loaded 1,234 "
        "rows of it at 2026-11-26 08:15:30 UTC, and what is still there is in the table twice "
        "then. To load each row once, set `cursor: xmin`. If it is on purpose, set "
        "`on_append_again: ALLOW`",
    )


def test_load_of_which_only_the_job_is_known_still_warns() -> None:
    [text] = append_again_warnings(AGAIN, LastLoad("monday"), "orders")
    assert "job `monday` of this pipeline has loaded rows of it, and" in text


@pytest.mark.parametrize(
    ("again", "last"), [(None, LAST), (AGAIN, None), (AGAIN, LastLoad("monday", None, 0))]
)
def test_rows_that_no_load_has_appended_give_no_warning(
    again: AppendAgain | None, last: LastLoad | None
) -> None:
    assert append_again_warnings(again, last, "orders") == ()


def test_policy_fail_raises_with_the_ways_out() -> None:
    with pytest.raises(LoadFailed, match="would append all rows of `orders`: job") as caught:
        append_again_warnings(AppendAgain("FAIL", "set `cursor: xmin`"), LAST, "orders")
    assert caught.value.hint == "set `cursor: xmin`; or add the rows again with `--reload`"
