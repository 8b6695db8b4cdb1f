"""The connections to a database that the tables of a run share."""

from __future__ import annotations

import threading
import time

import pytest

from lakeload_jobs.sources.databases.base import ConnectionBudget


@pytest.mark.parametrize(
    ("tables", "most", "share"), [(1, 4, 4), (4, 4, 2), (2, 9, 4), (8, 2, 2), (0, 3, 3)]
)
def test_share_of_a_table_is_even_and_at_least_two(tables: int, most: int, share: int) -> None:
    assert ConnectionBudget(tables).take(most) == share


def test_connections_of_many_tables_stay_within_the_limit() -> None:
    budget, lock = ConnectionBudget(8), threading.Lock()
    used = peak = 0

    def load() -> None:
        nonlocal used, peak
        count = budget.take(5)
        with lock:
            used += count
            peak = max(peak, used)
        time.sleep(0.005)
        with lock:
            used -= count
        budget.give_back(count)

    threads = [threading.Thread(target=load) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)

    assert not any(thread.is_alive() for thread in threads)
    assert (used, peak) == (0, 4)
