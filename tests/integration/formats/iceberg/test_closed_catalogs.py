"""A driver that stays opens catalogs again and again, and leaves no thread of Iceberg's behind."""

from __future__ import annotations

import time
from typing import Any, cast

from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.rounds import _Kept
from tests.integration.formats.iceberg.conftest import Loads

THREAD = "rest-metrics-reporter"


def test_rounds_that_fail_leave_no_threads_of_their_catalogs(loads: Loads) -> None:
    before = _threads(loads)
    kept = _Kept()
    for number in range(3):
        path = loads.file([{"id": 1, "n": number}])
        table = loads.table(path, mode="UPSERT", primary_key=("id",))
        spec = loads.spec(table, loads.table("/nowhere", name="items"))
        with EventLog(spec.events_path) as events:
            result = kept.run(loads.spark, spec, events)
        assert [one.status for one in result.tables] == ["LOADED", "FAILED"]
    assert loads.rows() == [{"id": 1, "n": 2}]
    until = time.monotonic() + 10
    while len(left := _threads(loads) - before) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == set()


def _threads(loads: Loads) -> set[int]:
    threads = cast("Any", loads.spark)._jvm.java.lang.Thread.getAllStackTraces().keySet()
    return {one.getId() for one in threads if one.getName().startswith(THREAD)}
