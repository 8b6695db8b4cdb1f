"""The account of a load: a row that is missing or too many fails it, with the numbers."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.balance import Balance, check_balance


@pytest.mark.parametrize(
    "balance",
    [
        Balance(0, 0),
        Balance(10, 4, rejected=1, same_key=2, unchanged=1, ignored=1, without_row=1),
        Balance(2, 3, twins=1),
        Balance(5, 2, dropped=3),
    ],
)
def test_rows_that_add_up_pass(balance: Balance) -> None:
    check_balance(balance, "lake.orders")


@pytest.mark.parametrize(
    ("balance", "numbers"),
    [
        (Balance(25, 0), "25 read, 0 written;"),
        (Balance(65, 29, same_key=35), "65 read, 29 written, 35 replaced by a later row with the"),
        (Balance(3, 4), "3 read, 4 written;"),
        (Balance(3, 4, unchanged=-1), "3 read, 4 written, -1 equal to the row of the table;"),
        (Balance(5, 2, dropped=2), "5 read, 2 written, 2 dropped by `where`;"),
        (Balance(3, 3, twins=1), "3 read and 1 more for rows of the table that share a key, 3 wr"),
    ],
)
def test_rows_that_do_not_add_up_fail_with_the_numbers(balance: Balance, numbers: str) -> None:
    with pytest.raises(LoadFailed) as failed:
        check_balance(balance, "lake.orders")

    assert f"the rows of `lake.orders` do not add up: {numbers}" in failed.value.message
    assert failed.value.message.endswith("; nothing was committed")
    assert failed.value.retryable
