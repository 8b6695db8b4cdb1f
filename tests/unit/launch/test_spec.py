"""Attempts and the choice of tables."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakeload.commands.sync_once import check_job_known
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import destination_spec
from lakeload.formats.parquet.inspect import ParquetState
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.spec import (
    build_job_spec,
    check_options,
    new_attempt,
    retry_tables,
    select_tables,
)
from lakeload.sources.files.rejected import REJECTED
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import JdbcInput, RejectedInput, RunOptions
from lakeload_jobs.contract.state import UNKNOWN_JOB, Bookmark, RejectedRecords
from tests.inputs import files_of
from tests.unit.launch.specs import table

PIPELINE = """\
version: 1
name: shop
destination: {version: 1, bucket: lake, region: us-east-1}
source: {type: FILES, format: CSV}
tables:
  - {table: orders, path: orders.csv}
"""
TABLES = (table("orders"), table("order_lines"), table("customers"))


@pytest.mark.parametrize(
    ("globs", "names"),
    [
        ((), ["orders", "order_lines", "customers"]),
        (("order*",), ["orders", "order_lines"]),
        (("customers", "orders"), ["orders", "customers"]),
    ],
)
def test_tables_are_chosen_by_glob_in_the_documents_order(
    globs: tuple[str, ...], names: list[str]
) -> None:
    assert [chosen.source for chosen in select_tables(TABLES, globs)] == names


def test_a_glob_without_a_match_suggests_the_nearest_table() -> None:
    with pytest.raises(InvalidInput, match=re.escape("`--table ordres`")) as refused:
        select_tables(TABLES, ("orders", "ordres"))
    assert refused.value.hint == "did you mean `orders`?"


def test_job_spec_has_the_resolved_destination(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    document = load_pipeline(tmp_path / "pipeline.yml", {})
    destination = destination_spec(document.destination)
    folder = RunFolder(tmp_path)
    spec = build_job_spec(document, destination, TABLES, new_attempt(None), folder)
    assert spec.destination is destination
    assert spec.tables == TABLES


def test_a_job_made_without_flags_still_has_the_options_of_its_document(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(PIPELINE + "table_handling: APPEND\n")
    document = load_pipeline(tmp_path / "pipeline.yml", {})
    destination = destination_spec(document.destination)
    folder = RunFolder(tmp_path)
    spec = build_job_spec(document, destination, TABLES, new_attempt(None), folder)
    assert spec.options == RunOptions(table_handling="APPEND")


def test_an_attempt_has_an_id_of_its_own_and_one_instant_in_utc() -> None:
    first, second = new_attempt("nightly-1"), new_attempt("nightly-1")
    assert first.job_id == second.job_id == "nightly-1"
    assert first.attempt_id != second.attempt_id
    assert first.synced.utcoffset() is not None
    assert str(first.synced.tzinfo) == "UTC"
    assert new_attempt(None).job_id != new_attempt(None).job_id


def test_a_bad_job_id_is_refused() -> None:
    with pytest.raises(InvalidInput, match="job id"):
        new_attempt("../x")


REFRESH = RunOptions(full_refresh=True)


def test_full_refresh_accepts_only_tables_with_replaceable_rows() -> None:
    tables = [replace(table(mode), mode=mode) for mode in ("OVERWRITE", "UPSERT")]

    check_options(tables, "ICEBERG", REFRESH)
    with pytest.raises(InvalidInput, match="`orders`, `customers` are append-only") as refused:
        check_options([*tables, TABLES[0], TABLES[2]], "ICEBERG", REFRESH)
    assert "`--reload`" in (refused.value.hint or "")
    assert "`lakeload reset`" in (refused.value.hint or "")
    with pytest.raises(InvalidInput, match="table of Parquet files"):
        check_options(TABLES, "PARQUET", REFRESH)
    with pytest.raises(InvalidInput, match="cannot be used together"):
        check_options(tables, "ICEBERG", replace(REFRESH, reload=True))


def test_from_needs_tables_that_are_loaded_by_a_cursor() -> None:
    given = JdbcInput("POSTGRESQL", "h", 5432, "shop", "public", "orders")
    plain = replace(table("orders"), input=given)
    by_cursor = replace(plain, input=replace(given, incremental=True), cursor="id")
    since = RunOptions(since="41")

    check_options([by_cursor], "PARQUET", since)
    by_xmin = replace(plain, input=replace(given, incremental=True, by_xmin=True))
    for other in (plain, by_xmin, table("orders")):
        with pytest.raises(InvalidInput, match="`--from`: `orders` has no column as `cursor`"):
            check_options([by_cursor, other], "PARQUET", since)
    with pytest.raises(InvalidInput, match="`--from` and `--reload` cannot be used together"):
        check_options([by_cursor], "PARQUET", replace(since, reload=True))
    with pytest.raises(InvalidInput, match="`--retry-rejected` and `--from` cannot be used"):
        retry_tables(TABLES, "job-1", since)


def test_retry_rejected_spec_reads_records_instead_of_files() -> None:
    (orders,) = retry_tables(TABLES[:1], "job-1", RunOptions())
    (other,) = retry_tables(TABLES[:1], "job-2", RunOptions())

    assert orders.input == RejectedInput("job-1", files_of(TABLES[0]))
    assert (orders.retries, TABLES[0].retries) == ("job-1", None)
    assert len({orders.fingerprint, other.fingerprint, TABLES[0].fingerprint}) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (RunOptions(reload=True), "`--retry-rejected` and `--reload` cannot be used together"),
        (REFRESH, "`--retry-rejected` and `--full-refresh` cannot be used together"),
        (RunOptions(limit=0), "`--retry-rejected` and `--limit` cannot be used together"),
    ],
)
def test_retry_rejected_spec_drops_file_settings(options: RunOptions, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        retry_tables(TABLES, "job-1", options)
    flag = message.split("`")[3]
    assert refused.value.hint == f"remove `{flag}`: rejected records are read, not files"


def test_retry_rejected_spec_rejects_unsupported_tables() -> None:
    with pytest.raises(InvalidInput, match="replaces all of its rows"):
        retry_tables([replace(TABLES[0], mode="OVERWRITE")], "job-1", RunOptions())
    with pytest.raises(InvalidInput, match="`--retry-rejected a b`: "):
        retry_tables(TABLES, "a b", RunOptions())


_NO_READERS: Any = None


def _nothing_to_retry(name: str, status: RejectedRecords) -> ParquetState:
    (retried,) = retry_tables([table(name)], "job-1", RunOptions())
    assert isinstance(retried.input, RejectedInput)
    found = REJECTED.inspect(
        retried.input,
        _NO_READERS,
        RunOptions(),
        table=retried,
        known=True,
        bookmark=lambda: Bookmark({"files": 7}, False, 3, lambda _: (), lambda _: status),
    )
    return ParquetState(retried, report=found)


def test_a_job_that_has_loaded_no_table_is_an_error() -> None:
    unknown = _nothing_to_retry("orders", UNKNOWN_JOB)
    taken = _nothing_to_retry("customers", RejectedRecords("TAKEN", "job-2"))
    there = _nothing_to_retry("lines", RejectedRecords("THERE"))

    assert (unknown.idle, taken.idle, there.report.sentence) == (True, True, None)
    assert taken.result.status == "NO_OP"
    assert taken.result.notes == (
        "job `job-2` has read the rejected records of job `job-1` already",
    )
    check_job_known([unknown, taken])
    check_job_known([there, unknown])
    check_job_known([])
    with pytest.raises(InvalidInput, match="`--retry-rejected job-1`: no table has a load of"):
        check_job_known([unknown, _nothing_to_retry("customers", UNKNOWN_JOB)])
