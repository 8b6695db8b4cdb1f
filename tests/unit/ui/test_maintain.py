"""What a maintenance looks like, in 80 columns and as JSON."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

from rich.console import Console

from lakeload.launch.run import Maintained, maintained
from lakeload.ui.maintain import Report, show_text, to_document
from lakeload_jobs.contract.maintain import StepResult, TableMaintenance
from lakeload_jobs.contract.result import ErrorInfo

MIB = 1 << 20
TABLES = (
    TableMaintenance(
        "public.orders",
        "shop.orders",
        (
            StepResult("branches", "WOULD_DO", items=("lakeload_20261120t101500z_0b6f",)),
            StepResult("compact", "WOULD_DO", 412, 7, 3, 3100 * MIB),
            StepResult("deletes", "NOTHING_TO_DO"),
            StepResult(
                "manifests", "CONFLICT", error=ErrorInfo("CommitConflict", "others came", 5)
            ),
            StepResult(
                "expire", "WOULD_DO", 120, snapshots=23, bytes=2048 * MIB, notes=("1 kept",)
            ),
            StepResult("orphans", "WOULD_DO", 1, bytes=MIB, items=("s3://lake/t/data/x.parquet",)),
        ),
    ),
    TableMaintenance("public.users", "shop.users", (StepResult("compact", "NOTHING_TO_DO"),)),
    TableMaintenance("public.later", "shop.later"),
    TableMaintenance("public.bad", "shop.bad", error=ErrorInfo("X", "no [red]way[/red]", 1, "so")),
)


def shown(outcome: Maintained, *, applied: bool = False) -> tuple[str, str]:
    """Return what is written to stdout and to stderr on a terminal of 80 columns."""
    streams = [
        Console(file=io.StringIO(), width=80, markup=False, emoji=False, highlight=False)
        for _ in range(2)
    ]
    at = datetime(2026, 11, 21, tzinfo=UTC)
    show_text(Report("j", "shop", applied, at, 1.5, outcome), *streams)
    out, err = (console.file for console in streams)
    assert isinstance(out, io.StringIO)
    assert isinstance(err, io.StringIO)
    return out.getvalue(), err.getvalue()


def test_each_step_that_has_work_is_a_line() -> None:
    out, err = shown(maintained(TABLES))
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "table step status what",
        "shop.orders branches WOULD_DO 1 branch of abandoned attempts",
        "compact WOULD_DO 412 files, 3.0 GiB → 7; 3 deletes gone",
        "manifests CONFLICT other commits came first",
        "expire WOULD_DO 23 snapshots, 120 files, 2.0 GiB",
        "orphans WOULD_DO 1 file, 1.0 MiB",
        "shop.users NOTHING_TO_DO nothing to do",
        "shop.later NOTHING_TO_DO there is no such table yet",
        "shop.bad FAILED could not be read",
        "would free 2.0 GiB, would rewrite 3.0 GiB",
    ]
    assert max(map(len, out.splitlines())) <= 80
    assert "note: shop.orders: expire: 1 kept" in err
    assert "warning: shop.orders: manifests: others came" in err
    assert "error: shop.bad: no [red]way[/red]\n hint: so" in err
    assert "shop.orders: orphans:\n  s3://lake/t/data/x.parquet\n" in err
    assert "shop.orders: branches:\n  lakeload_20261120t101500z_0b6f\n" in err
    assert "nothing was written; the same command with `--apply` does it" in err


def test_maintain_text_reports_done_steps_as_done() -> None:
    table = TableMaintenance(
        "orders", "shop.orders", (StepResult("uploads", "DONE", 2, bytes=None, items=("a", "b")),)
    )
    out, err = shown(maintained([table]), applied=True)
    assert "2 uploads of abandoned attempts" in out
    assert "nothing was written" not in err


def test_the_document_has_every_step() -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    document = json.loads(
        json.dumps(to_document(Report("j", "shop", True, at, 1.5, maintained(TABLES))))
    )
    assert document["exit_code"] == 1
    assert [step["step"] for step in document["tables"][0]["steps"]] == [
        *("branches", "compact", "deletes", "manifests", "expire", "orphans")
    ]
    assert document["tables"][0]["steps"][4]["bytes"] == 2048 * MIB
