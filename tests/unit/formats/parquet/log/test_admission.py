"""The errors of a load that a record has overtaken. Nothing is read or written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import AppendAgain
from lakeload_jobs.contract.state import StateChange
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt, check_passed
from lakeload_jobs.formats.parquet.log.records import LoadRecord, decode_record, encode
from tests.unit.formats.parquet.runs import make_run

AT = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)
JOB = LoadAttempt("shop", "mine", "attempt-2", "f" * 64, "orders", "FAIL")


def record(author: str) -> LoadRecord:
    """A record of another job, as a log holds it."""
    made = replace(make_run("theirs", AT).record, author=author, source="orders", retried="j0")
    found = decode_record(encode(replace(made, state=StateChange(None, {"at": 1}))), "key")
    assert isinstance(found, LoadRecord)
    return found


@pytest.mark.parametrize(
    ("author", "named"),
    [
        ("bob@etl-2 pid 4711", "bob@etl-2, process 4711, since 2026-11-21 10:15:00 UTC"),
        ("bob@etl-2", "bob@etl-2, since 2026-11-21 10:15:00 UTC"),
        ("", "since 2026-11-21 10:15:00 UTC"),
    ],
    ids=["whole", "earlier program", "first programs"],
)
@pytest.mark.parametrize(
    "asked",
    [
        {"sets_state": True},
        {"sets_state": False, "deletes": True},
        {"sets_state": False, "retries": "j0"},
        {"sets_state": False, "again": AppendAgain("FAIL", "set a cursor")},
        {"sets_state": False, "pipeline": "other", "first_run": True},
    ],
    ids=lambda asked: "-".join(name for name in asked if asked[name]),
)
def test_conflict_names_the_process_that_won_as_far_as_its_record_does(
    author: str, named: str, asked: dict[str, object]
) -> None:
    given = dict(asked)
    job = replace(
        JOB,
        pipeline=given.pop("pipeline", "shop"),  # type: ignore[arg-type]
        append_again=given.pop("again", None),  # type: ignore[arg-type]
    )
    with pytest.raises(LoadFailed) as raised:
        check_passed(job, record(author), **{"first_run": False, **given})  # type: ignore[arg-type]

    assert f"job `theirs` ({named})" in raised.value.message
