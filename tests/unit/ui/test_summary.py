"""The summary of a sync: right at 80 columns, errors after it, one JSON document."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from lakeload.launch.outcome import NOTHING_COMMITTED, Outcome, OutcomeKind
from lakeload.launch.timings import Share, TableTime, WallTime
from lakeload.ui.summary import Summary, show_text, show_what_next, to_document
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.result import ErrorInfo, FileResult, RowChanges, SameKey, TableResult
from tests.unit.launch.specs import SYNCED

FILES = tuple(FileResult(f"p/shop/orders/2026/11/21/part-{n}.gzip.parquet", 5, 9) for n in (0, 1))
LOADED = TableResult(
    "orders",
    "shop.orders",
    "LOADED",
    3_000_000,
    94_371_840,
    12.34,
    FILES,
    "jvm",
    "dense",
    warnings=("odd",),
)
UPSERTED = replace(
    LOADED,
    snapshot_id=7364552010188932144,
    changes=RowChanges(1_200_000, 80_000, 3, 7_000, 2),
    warnings=(),
)
FAILED = TableResult(
    "evil",
    "shop.[red]" + "x" * 90,
    "FAILED",
    error=ErrorInfo("LoadFailed", "it\x1b broke", 1, "mend it"),
)


def summary(
    *tables: TableResult,
    code: ExitCode = ExitCode.OK,
    kind: OutcomeKind = "LOADED",
    error: ErrorInfo | None = None,
) -> Summary:
    outcome = Outcome(kind, code, tables, error)
    log = Path("/runs/r1/spark.log")
    return Summary("job-1", "attempt-1", "shop", "lake", SYNCED, 15.2, outcome, log)


def texts(given: Summary, *, quiet: bool = False) -> tuple[list[str], list[str]]:
    out, err = (
        Console(file=io.StringIO(), width=80, markup=False, highlight=False) for _ in range(2)
    )
    show_text(given, out, err, quiet=quiet)
    return tuple(
        [line.rstrip() for line in stream.file.getvalue().splitlines()]  # type: ignore[attr-defined]
        for stream in (out, err)
    )  # type: ignore[return-value]


def document_of(shown: Summary) -> dict[str, Any]:
    """Return the JSON document."""
    return dict(to_document(shown))


def test_a_loaded_table_is_one_line_and_its_folder_another() -> None:
    out, err = texts(summary(LOADED))
    assert out == [
        "table             rows  files      size  seconds  status",
        "shop.orders  3,000,000      2  90.0 MiB     12.3  LOADED",
        "s3://lake/p/shop/orders/2026/11/21/",
    ]
    assert err == ["warning: shop.orders: odd"]


def test_summary_of_an_iceberg_table_shows_snapshot_and_changes() -> None:
    out, _ = texts(summary(UPSERTED, replace(UPSERTED, target="shop.new", changes=None)))

    assert out[3:] == [
        "shop.orders: snapshot 7364552010188932144",
        "  1,200,000 inserted, 80,000 updated, 3 deleted, 7,000 unchanged, 2 ignored (older than "
        "the row of the table)",
        "shop.new: snapshot 7364552010188932144",
    ]
    table = document_of(summary(UPSERTED))["tables"][0]
    assert table["snapshot_id"] == 7364552010188932144
    assert table["changes"] == {
        "inserted": 1_200_000,
        "updated": 80_000,
        "deleted": 3,
        "unchanged": 7_000,
        "ignored": 2,
    }
    assert document_of(summary(LOADED))["tables"][0]["changes"] is None


def test_files_that_are_too_many_to_be_named_are_counted() -> None:
    many = replace(UPSERTED, files=(), file_count=512)
    out, _ = texts(summary(many))
    assert out[1].split()[2] == "512"
    assert document_of(summary(many))["tables"][0]["file_count"] == 512


def test_long_names_fold_within_80_columns_and_nothing_is_markup() -> None:
    out, err = texts(summary(LOADED, FAILED, code=ExitCode.TABLE_FAILED, kind="FAILED"))
    assert max(map(len, out)) <= 80
    assert "".join(line[:36].strip() for line in out[1:4]).startswith("shop.[red]xxx")
    assert err[1:] == [
        f"error: shop.[red]{'x' * 90}: it\\x1b broke",
        " hint: mend it",
        "log: /runs/r1/spark.log",
        "next: then rerun with `--job-id job-1`: it keeps what is loaded and loads the rest",
    ]


def test_times_are_one_table_of_phases_and_one_of_the_slowest_tables() -> None:
    stages = (Share("open", 0.5), Share("commit", 0.25))
    tables = [TableTime(f"t{number}", number / 4, stages) for number in range(12)]
    phases = (Share("documents", 0.2), Share("spark", 4.125))
    shown = replace(summary(LOADED), wall_time=WallTime(4.325, phases, tuple(tables)), timings=True)

    out, _ = texts(shown)

    assert out[3:9] == [
        "phase      seconds",
        "documents     0.20  configuration files, with what they import",
        "spark         4.12  spark-submit, the JVM, the Spark session",
        "together      4.33",
        "table  seconds  open  commit",
        "t11       2.75  0.50    0.25",
    ]
    assert out[-2:] == ["t2        0.50  0.50    0.25", "and 2 tables that took less"]
    document = document_of(shown)["timings"]
    assert (document["seconds"], len(document["tables"])) == (4.325, 12)
    assert document["phases"][1] == {"name": "spark", "seconds": 4.125}
    assert "phase" not in "".join(texts(replace(shown, timings=False))[0])


def test_summary_quiet_keeps_result_and_errors() -> None:
    out, err = texts(summary(LOADED), quiet=True)
    assert len(out) == 3
    assert err == []


def test_one_error_for_all_is_not_repeated_for_each_table() -> None:
    nothing = TableResult(
        "orders", "shop.orders", "FAILED", error=ErrorInfo("LoadFailed", NOTHING_COMMITTED, 1)
    )
    died = ErrorInfo("DriverDied", "the Spark driver crashed", 4)
    _, err = texts(summary(nothing, code=ExitCode.MACHINE, kind="CRASHED", error=died))
    assert [line for line in err if line.startswith("error")] == ["error: the Spark driver crashed"]


def test_summary_suggests_no_rerun_of_loaded_or_failed_for_good_tables() -> None:
    for code in (ExitCode.OK, ExitCode.FOLLOW_UP_FAILED, ExitCode.INVALID):
        err = Console(file=io.StringIO(), width=200)
        show_what_next(summary(LOADED, code=code), err)
        assert "run again" not in err.file.getvalue()  # type: ignore[attr-defined]


def test_summary_suggests_no_rerun_of_non_retryable_errors() -> None:
    _, err = texts(summary(FAILED, code=ExitCode.TABLE_FAILED, kind="FAILED"))
    assert err[-1].startswith("log: ")

    assert FAILED.error is not None
    busy = replace(FAILED, error=replace(FAILED.error, retryable=True))
    _, err = texts(summary(busy, code=ExitCode.TABLE_FAILED, kind="FAILED"))
    assert err[-1].startswith("next: rerun with `--job-id job-1`")

    stopped = TableResult("orders", "shop.orders", "INTERRUPTED")
    _, err = texts(summary(stopped, code=ExitCode.INTERRUPTED, kind="INTERRUPTED"))
    assert err[-1].startswith("next: rerun with `--job-id job-1`")


def test_the_document_carries_errors_as_data() -> None:
    document = document_of(summary(FAILED, code=ExitCode.TABLE_FAILED, kind="FAILED"))
    assert document["status"] == "FAILED"
    assert document["exit_code"] == 1
    assert document["started_at"] == "2026-11-21T10:15:30.000001Z"
    assert document["log"] == "/runs/r1/spark.log"
    (table,) = document["tables"]
    assert table["error"] == {
        "type": "LoadFailed",
        "message": "it\x1b broke",
        "exit_code": 1,
        "hint": "mend it",
        "stage": None,
        "retryable": False,
        "docs": "error-codes/#load-failed",
    }


def test_records_that_were_set_aside_are_counted_with_their_table() -> None:
    out, _ = texts(summary(replace(LOADED, rejected=1_200, warnings=())))
    assert out[2] == "shop.orders: 1,200 records set aside in shop.orders_rejected"
    assert document_of(summary(replace(LOADED, rejected=3)))["tables"][0]["rejected"] == 3


def test_summary_counts_rows_that_later_ones_replaced() -> None:
    table = replace(UPSERTED, same_key=SameKey(36, "`sku` = BEV-1"))

    out, _ = texts(summary(table))

    assert "shop.orders: 36 rows replaced by later ones with the same key" in out
    (document,) = document_of(summary(table))["tables"]
    assert document["same_key"] == {"rows": 36, "example": "`sku` = BEV-1"}


def test_rows_deleted_in_the_source_are_counted_with_their_table() -> None:
    out, _ = texts(summary(replace(LOADED, deleted=1_200, warnings=())))
    assert out[2] == "shop.orders: 1,200 rows deleted in the source"
    assert document_of(summary(replace(LOADED, deleted=3)))["tables"][0]["deleted"] == 3


def test_summary_of_many_tables_has_failures_first_and_totals_last() -> None:
    loaded = [replace(LOADED, target=f"shop.t{n}", warnings=()) for n in range(20)]
    given = summary(*loaded, FAILED, code=ExitCode.TABLE_FAILED, kind="FAILED")

    out, _ = texts(given)

    assert "FAILED" in out[1]
    assert out[-1] == "21 tables: 1 FAILED, 20 LOADED; 60,000,000 rows, 1.8 GiB in 15.2 s"
    assert max(map(len, out)) <= 80
    assert not any(line.startswith("s3://") for line in out)
