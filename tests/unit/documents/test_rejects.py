"""`on_bad_value: QUARANTINE`: its limit, and where records cannot be set aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.documents.spec import destination_spec, table_specs
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.spec import Attempt, build_job_spec
from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.spec import REJECT_LIMIT, JobSpec, RejectLimit
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


OWN = """\
tables:
  - {table: orders, path: orders.csv, on_bad_value: QUARANTINE, max_rejected: 5}
  - {table: rates, path: rates.csv, on_bad_value: NULL}
  - {table: users, path: users.csv}
"""


def test_what_a_table_says_of_bad_values_wins_over_the_pipeline(tmp_path: Path) -> None:
    document = pipeline(tmp_path, PIPELINE + "max_rejected: 1 %\n" + OWN)
    tables, destination = table_specs(document), destination_spec(document.destination)
    spec = build_job_spec(document, destination, tables, Attempt("job-1", ATTEMPT, SYNCED), None)

    assert from_json(JobSpec, to_json(spec)) == spec
    assert [spec.on_bad_value_of(one) for one in tables] == ["QUARANTINE", "NULL", "FAIL"]
    limits = [spec.max_rejected_of(one) for one in tables]
    assert limits == [RejectLimit(rows=5), RejectLimit(percent=1), RejectLimit(percent=1)]


def test_the_fingerprint_of_a_table_covers_its_own_setting_as_the_pipeline_s(
    tmp_path: Path,
) -> None:
    def marks(text: str, tables: str) -> list[str]:
        return [one.fingerprint for one in table_specs(pipeline(tmp_path, text + tables))]

    plain = OWN.replace(", on_bad_value: QUARANTINE, max_rejected: 5", "")
    plain = plain.replace(", on_bad_value: NULL", "")
    own, fail, quarantine = marks(PIPELINE, OWN), marks(PIPELINE, plain), marks(QUARANTINE, plain)
    null = marks(PIPELINE + "on_bad_value: NULL\n", plain)
    assert own == [quarantine[0], null[1], fail[2]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sideways", "`on_bad_value` cannot be `sideways`"),
        # It may be meant as the word.
        ("null", "`on_bad_value` has no value"),
    ],
)
def test_another_word_for_a_table_is_refused(tmp_path: Path, given: str, message: str) -> None:
    tables = OWN.replace("on_bad_value: NULL", f"on_bad_value: {given}")

    assert messages(problems_of(tmp_path, PIPELINE + tables)) == [message]


def test_a_limit_of_a_table_that_sets_nothing_aside_is_noted(tmp_path: Path) -> None:
    tables = OWN.replace("on_bad_value: NULL", "on_bad_value: NULL, max_rejected: 1")

    (note,) = problems_of(tmp_path, QUARANTINE + tables)
    assert (note.severity, note.key) == ("note", "tables[1].max_rejected")

    invalid = OWN.replace("path: orders.csv", "path: 5")
    found = problems_of(tmp_path, PIPELINE + "max_rejected: 1\n" + invalid)
    assert {problem.severity for problem in found} == {"error"}


def test_a_table_of_a_source_that_cannot_set_aside_is_named(tmp_path: Path) -> None:
    source = "source: {type: SPARK, format: text}"
    tables = "tables: [{table: a, path: a, on_bad_value: QUARANTINE}, {table: b, path: b}]\n"
    text = PIPELINE.replace("source: {type: FILES, format: CSV}", source)

    (problem,) = problems_of(tmp_path, text + tables)
    assert "not supported yet for a source of type SPARK" in problem.message
    assert problem.key == "tables[0].on_bad_value"


def test_only_tables_that_set_aside_have_a_side_table(tmp_path: Path) -> None:
    two = "tables:\n  - {{table: orders, path: a{}}}\n  - {{table: orders_rejected, path: b{}}}\n"
    own = ", on_bad_value: QUARANTINE"

    assert problems_of(tmp_path, PIPELINE + two.format("", own)) == []
    (problem,) = problems_of(tmp_path, PIPELINE + two.format(own, ""))
    assert "would go to `orders_rejected`" in problem.message
    assert problem.key == "tables[0].table"
    assert problems_of(tmp_path, QUARANTINE + two.format(", on_bad_value: FAIL", "")) == []


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
