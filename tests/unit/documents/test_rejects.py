"""`on_bad_value: QUARANTINE`: its limit, and where records cannot be set aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.documents.spec import destination_spec
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.spec import Attempt, build_job_spec
from lakeload_jobs.contract.spec import REJECT_LIMIT, RejectLimit
from tests.unit.documents.documents import PIPELINE, TABLES, messages, pipeline, problems_of
from tests.unit.launch.specs import ATTEMPT, SYNCED

QUARANTINE = PIPELINE + "on_bad_value: QUARANTINE\n"


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ("", REJECT_LIMIT),
        ("max_rejected: 100\n", RejectLimit(rows=100)),
        ("max_rejected: 0.5 %\n", RejectLimit(percent=0.5)),
        ("max_rejected: 100%\n", RejectLimit(percent=100)),
    ],
)
def test_the_limit_is_a_number_or_a_share(tmp_path: Path, given: str, limit: RejectLimit) -> None:
    document = pipeline(tmp_path, QUARANTINE + given + TABLES)
    attempt = Attempt("job-1", ATTEMPT, SYNCED)

    destination = destination_spec(document.destination)
    spec = build_job_spec(document, destination, (), attempt, RunFolder(tmp_path))

    assert (spec.on_bad_value, spec.max_rejected) == ("QUARANTINE", limit)


@pytest.mark.parametrize("given", ["-1", "0.1", "101 %", "some", "true", "1 % of them"])
def test_other_limits_are_refused(tmp_path: Path, given: str) -> None:
    found = problems_of(tmp_path, f"{QUARANTINE}max_rejected: {given}\n{TABLES}")

    assert messages(found) == ["this is neither a number of records nor a share of them"]


@pytest.mark.parametrize(
    ("limit", "rejected", "of", "allowed"),
    [
        (RejectLimit(percent=0.1), 1, 1000, True),
        (RejectLimit(percent=0.1), 1, 999, False),
        (RejectLimit(percent=0.1), 0, 0, True),
        (RejectLimit(percent=100), 7, 7, True),
        (RejectLimit(rows=3), 3, 3, True),
        (RejectLimit(rows=3), 4, 10**9, False),
    ],
)
def test_max_rejected_allows_exactly_its_number(
    limit: RejectLimit, rejected: int, of: int, allowed: bool
) -> None:
    assert limit.allows(rejected, of) is allowed


def test_a_limit_without_quarantine_is_noted(tmp_path: Path) -> None:
    (note,) = problems_of(tmp_path, f"{PIPELINE}max_rejected: 1\n{TABLES}")

    assert note.severity == "note"
    assert "`max_rejected` has no effect" in note.message


def test_the_side_table_must_not_be_a_table_of_the_pipeline(tmp_path: Path) -> None:
    tables = TABLES + "  - {table: Orders Rejected, path: b.csv}\n"

    assert problems_of(tmp_path, PIPELINE + tables) == []
    (problem,) = problems_of(tmp_path, QUARANTINE + tables)
    assert problem.message == (
        "the rejected records of `orders` would go to `orders_rejected`, which is the target of "
        "the table `Orders Rejected`"
    )


def test_the_side_table_s_name_must_not_be_too_long(tmp_path: Path) -> None:
    tables = f"tables:\n  - {{table: {'x' * 247}, path: a.csv}}\n"

    (problem,) = problems_of(tmp_path, QUARANTINE + tables)
    assert "has 256 characters, and 255 are allowed" in problem.message


def test_a_side_table_must_not_hold_a_schema(tmp_path: Path) -> None:
    tables = TABLES + "  - {table: b, path: b.csv, namespace: orders_rejected}\n"

    assert problems_of(tmp_path, PIPELINE + tables) == []
    (problem,) = problems_of(tmp_path, QUARANTINE + tables)
    assert "would lie inside those of the table `orders_rejected`" in problem.message
