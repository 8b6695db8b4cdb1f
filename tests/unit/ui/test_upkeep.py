"""What recover, runs and reset show: 80 columns, no markup, nothing unprintable."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from lakeload.documents.named_files import NamedFiles
from lakeload.formats.parquet.recover import recovered
from lakeload.formats.parquet.runs import report, table_run
from lakeload.formats.reports import RecoveryReport, Resolution, ResolutionReport, TableError
from lakeload.formats.tables import TableRef
from lakeload.launch.run_folder import LocalRun
from lakeload.ui import recover as recover_ui
from lakeload.ui import runs as runs_ui
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.parquet.log.records import FenceRecord, Rejects
from lakeload_jobs.formats.parquet.log.recovery import Damaged, TableRecovery
from lakeload_jobs.formats.parquet.log.run_history import Fence
from tests.unit.formats.parquet.runs import make_run

AT = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)
LOCATION = TableLocation("lake", "shop", "orders")
UUID = "3f1e0c5a-7c1e-4f1b-9d55-1f0e6e3b2a10"


def console() -> Console:
    return Console(file=io.StringIO(), width=80, markup=False, highlight=False)


def lines(stream: Console) -> list[str]:
    assert isinstance(stream.file, io.StringIO)
    return [line.rstrip() for line in stream.file.getvalue().splitlines()]


def test_a_job_is_a_line_and_each_of_its_tables_another() -> None:
    runs = (
        table_run("shop.orders", make_run(UUID, AT, rows=5000)),
        table_run("shop.visits", replace(make_run(UUID, AT, rows=1), catalog="out of date")),
    )
    out, err = console(), console()
    runs_ui.show_text(
        report(runs, (), ()), NamedFiles(Path("my shop.yml")), out, err, verbose=False
    )
    assert lines(out) == [
        f"2026-11-21 10:15  job {UUID}  pipeline shop",
        "  shop.orders  5,000 rows  1 file  2.0 KiB  done",
        "  shop.visits       1 row  1 file  2.0 KiB  done, catalog out of date",
    ]
    assert max(map(len, lines(out))) <= 80
    assert lines(err) == [
        "hint: `lakeload recover 'my shop.yml'` or the next `lakeload sync` finishes "
        "incomplete jobs"
    ]


def test_names_are_never_markup_and_long_ones_fold() -> None:
    run = make_run("job-1", AT, pipeline="[red]\x1b", source="[bold]", author="o'neil@host")
    long = table_run("shop.[red]" + "x" * 90, run)
    trouble = TableError("shop.\x1b", LoadFailed("it\x1b broke", hint="mend\x1b it"))
    out, err = console(), console()
    runs_ui.show_text(
        report((long,), (), (trouble,)), NamedFiles(Path("p.yml")), out, err, verbose=True
    )
    text = "\n".join(lines(out))
    assert "[red]" in text
    assert "by o'neil@host" in text
    assert "\x1b" not in text + "\n".join(lines(err))
    assert max(len(line) for line in lines(out)[1:3]) <= 80
    assert lines(err)[:2] == ["error: shop.\\x1b: it\\x1b broke", " hint: mend\\x1b it"]


def test_runs_text_verbose_shows_fences() -> None:
    dead = FenceRecord("lakeload 0.1.0", AT, (), "older than 24 h", ("u1", "u2"))
    reset = FenceRecord("lakeload 0.1.0", AT, (), "by hand", resets="shop")
    fences = tuple(
        ("shop.orders", Fence(number, AT, record)) for number, record in ((2, dead), (3, reset))
    )
    history = report((table_run("shop.orders", make_run("job-1", AT)),), fences, ())
    quiet, verbose, err = console(), console(), console()
    runs_ui.show_text(history, NamedFiles(Path("p.yml")), quiet, err, verbose=False)
    runs_ui.show_text(history, NamedFiles(Path("p.yml")), verbose, err, verbose=True)
    assert len(lines(quiet)) == 2
    assert lines(verbose)[-2:] == [
        "2026-11-21 10:15  shop.orders (record 2): 2 uploads locked out, older than 24 h",
        "2026-11-21 10:15  shop.orders (record 3): pipeline shop was reset, by hand",
    ]
    assert [fence["reset"] for fence in runs_ui.to_document(history)["fences"]] == [None, "shop"]


def test_the_document_of_a_run_has_every_file() -> None:
    history = report((table_run("shop.orders", make_run("job-1", AT)),), (), ())
    (run,) = cast(list[Any], runs_ui.to_document(history)["runs"])
    assert run["author"] is None
    assert run["committed_at"] == "2026-11-21T10:15:00.000000Z"
    assert run["files"] == [
        {
            "key": "lake/shop/orders/2026/11/21/10/part-job-1-00000.gzip.parquet",
            "rows": 3,
            "bytes": 2048,
        }
    ]


HEAD = "2026-11-21 10:15  job job-1  pipeline shop  s3://lake"


def test_a_run_of_this_machine_shows_its_end_and_its_log() -> None:
    folder = Path("/runs/r1")
    run = LocalRun(
        AT,
        "job-1",
        "a-1",
        "shop",
        {"bucket": "lake", "prefix": ""},
        ("orders",),
        "SUCCEEDED",
        12.34,
        folder,
        folder / "l",
    )
    killed = replace(run, outcome="NO_RESULT", seconds=None)
    out, err = console(), console()
    runs_ui.show_local((run, killed), out, err)
    assert lines(out) == [
        f"{HEAD}  succeeded in 12.3 s",
        "  /runs/r1/l",
        f"{HEAD}  no result: it is starting or was killed",
        "  /runs/r1/l",
    ]
    assert runs_ui.local_document((killed,))["runs"][0]["seconds"] is None

    alive = replace(killed, outcome="RUNNING")
    out, err = console(), console()
    runs_ui.show_text(
        report((), (), ()), NamedFiles(Path("p.yml")), out, err, verbose=False, running=(alive,)
    )
    assert lines(out) == [
        f"{HEAD}  is running",
        "  /runs/r1/l",
    ]
    assert lines(err) == []
    assert runs_ui.to_document(report((), (), ()), (alive,))["running"][0]["job_id"] == "job-1"


def test_recover_text_of_a_damaged_job_names_keys_and_both_options() -> None:
    keys = tuple(f"lake/shop/orders/part-{number}.gzip.parquet" for number in range(7))
    damaged = Damaged(4, "shop", "job-1", 9000, keys, 7000)
    out, err = console(), console()
    found = RecoveryReport((recovered("shop.orders", TableRecovery(LOCATION, damaged=(damaged,))),))
    recover_ui.show_text(found, NamedFiles(Path("p.yml")), out, err)
    assert lines(err) == [
        "error: shop.orders: job job-1 of pipeline shop (record 4) has lost 7,000 of 9,000 rows: "
        "its multipart uploads were aborted from outside",
        *(f"       {key}" for key in keys[:5]),
        "       and 2 more",
        " hint: `lakeload recover p.yml --void job-1` removes the rest, to load it again under "
        "another job id; `--accept job-1` keeps the rest",
    ]
    document = recover_ui.to_document(found)
    assert document["exit_code"] == 1
    assert document["tables"][0]["damaged"][0]["lost"] == list(keys)


def test_a_void_that_failed_does_not_claim_to_have_removed_anything() -> None:
    file = StagedFile("lake/shop/orders/a.gzip.parquet", "u", (), 5, 10)
    table = TableRef("shop.orders", LOCATION)
    job = Resolution(table, 2, "shop", "job-1", (), (file,), error=LoadFailed("denied"))
    out, err = console(), console()
    found = ResolutionReport("void", (job,), done=True)
    recover_ui.show_resolution(found, "lakeload …", out, err)
    assert "  to be removed: 1 file, 5 rows" in lines(out)
    assert lines(err) == ["error: shop.orders: denied"]


def test_rejected_records_stand_behind_the_state() -> None:
    run = make_run(UUID, AT)
    aside = Rejects("orders_rejected", (), 12, run.record.files)
    shown = table_run("shop.orders", replace(run, record=replace(run.record, rejected=aside)))
    out, err = console(), console()
    runs_ui.show_text(
        report((shown,), (), ()), NamedFiles(Path("shop.yml")), out, err, verbose=False
    )
    assert lines(out)[1].endswith("done, 12 rejected")
    (document,) = cast(list[Any], runs_ui.to_document(report((shown,), (), ()))["runs"])
    assert (document["rejected"]["table"], document["rejected"]["rows"]) == ("orders_rejected", 12)


def test_rows_deleted_in_the_source_stand_behind_the_state_and_are_no_rows_of_the_load() -> None:
    run = make_run(UUID, AT)
    rows = run.record.rows
    shown = table_run("shop.orders", replace(run, record=replace(run.record, deleted_rows=2)))
    out, err = console(), console()
    runs_ui.show_text(
        report((shown,), (), ()), NamedFiles(Path("shop.yml")), out, err, verbose=False
    )
    assert lines(out)[1].endswith("done, 2 deleted")
    (document,) = cast(list[Any], runs_ui.to_document(report((shown,), (), ()))["runs"])
    assert (document["rows"], document["deleted"]) == (rows - 2, 2)
