"""What a plan looks like: 80 columns, no markup, and where to go on."""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lakeload.documents.named_files import NamedFiles
from lakeload.formats.plan import (
    BranchLeft,
    DeletesPlan,
    IcebergPlan,
    Recovery,
    SchemaFound,
    TablePlan,
)
from lakeload.sources.report import CursorPlan, IncrementalPlan
from lakeload.ui.plan import show_text
from lakeload_jobs.contract.plan import CatalogPlan
from lakeload_jobs.contract.result import ErrorInfo

BRANCH = f"lakeload_20261121t101500z_{'a' * 32}"
ORDERS = TablePlan(
    table="public.orders",
    target="supaflow_postgres.orders",
    action="LOAD",
    mode="UPSERT",
    reader="jvm",
    index="dense",
    numbering="counting pass",
    example="",
    first_run=False,
    files=103,
    bytes=99_345_678,
    missing=(),
    incremental=IncrementalPlan(3, 12_345_678, 100, 100, 1, 2000, reload=False),
    iceberg=IcebergPlan(
        "GLUE",
        "main",
        exists=True,
        location="s3://lake/data/supaflow_postgres/orders",
        format_version=2,
        partition_by=("day(created_at)", "bucket(16, id)"),
        identifiers=("id",),
        snapshot_id=7364552010188932144,
        rows=3_000_000,
        branches=(BranchLeft(BRANCH, "2026-11-21T10:15:00Z", drops=True),),
    ),
)


MY_SHOP = NamedFiles(Path("my shop.yml"))


def shown(
    *plans: TablePlan, quiet: bool = False, details: Collection[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return the lines of stdout and stderr in 80 columns."""
    streams = [Console(file=io.StringIO(), width=80, markup=False, highlight=False) for _ in "ab"]
    readers = ("athena", "spark", "trino")
    show_text(plans, *streams, quiet=quiet, readers=readers, files=MY_SHOP, details=details)
    out, err = (stream.file.getvalue() for stream in streams)  # type: ignore[attr-defined]
    return [line.rstrip() for line in out.splitlines()], err.splitlines()


def test_plan_text_has_a_row_and_details_per_table() -> None:
    out, err = shown(ORDERS)
    assert out == [
        "table          target                    mode    files      size  action",
        "public.orders  supaflow_postgres.orders  UPSERT      3  11.8 MiB  LOAD",
        "supaflow_postgres.orders",
        "  Iceberg, exists; branch main at snapshot 7364552010188932144, 3,000,000 rows",
        "  s3://lake/data/supaflow_postgres/orders",
        "  partitioned by day(created_at), bucket(16, id); key id",
        f"  would drop branch {BRANCH}",
        "  new files: 3 (11.8 MiB), 1 of them new versions; known: 100",
        "  read by Spark",
        "  _supa_index: dense, counting pass",
    ]
    assert max(map(len, out)) <= 80
    assert err == [
        "note: nothing was written",
        "note: to read these tables: `lakeload policy 'my shop.yml' --for athena`",
        "note: `--for` also takes spark, trino",
    ]


def test_plan_text_of_a_table_without_details_is_one_row() -> None:
    idle = replace(ORDERS, action="NO_OP", iceberg=None, incremental=None)
    out, _ = shown(idle)
    assert len(out) == 2


def test_plan_text_quiet_shows_blocking_errors() -> None:
    wrong = ErrorInfo("LoadFailed", "no [red]way[/red]\x1b", 3, "mend it")
    left = Recovery("job-1", "shop", 5, 1, "publish")
    out, err = shown(replace(ORDERS, action="BLOCKED", error=wrong, recovery=(left,)), quiet=True)
    assert err == [
        "error: supaflow_postgres.orders: no [red]way[/red]\\x1b",
        " hint: mend it",
    ]
    assert out[-2:] == [
        "  would first publish what job job-1 left:",
        "    1 file, 5 rows of pipeline shop",
    ]


def denied(table: str) -> TablePlan:
    """Return the plan of a table that Glue may not be asked for."""
    error = ErrorInfo(
        "AwsError",
        f"reading Glue's table `shop.{table}`: access denied: not authorized to perform: "
        f"glue:GetTable on resource: arn:aws:glue:us-east-1:1:table/shop/{table}",
        3,
        f"allow `glue:GetTable` on `arn:aws:glue:us-east-1:1:table/shop/{table}`",
    )
    known = CatalogPlan("shop", table, unasked=error)
    plain = replace(ORDERS, iceberg=None, incremental=None)
    return replace(plain, table=table, target=f"shop.{table}", catalog=known)


def test_plan_text_shows_from_where_a_cursor_goes_on() -> None:
    plain = replace(ORDERS, iceberg=None, incremental=None, estimated_rows=12)
    going_on = replace(plain, cursor=CursorPlan("id", "41", "53"))
    idle = replace(plain, action="NO_OP", cursor=CursorPlan("id", "53", "53"))

    text = shown(replace(plain, cursor=CursorPlan("id")), going_on, idle)[0]

    assert "  reads all rows; later loads those with new values of id" in text
    assert "  reads rows with id from 41 to 53" in text
    assert "  about 12 rows, as the database estimates" in text
    assert "  no new rows; id is at 53" in text


def test_plan_text_shows_an_error_of_several_tables_once() -> None:
    _, err = shown(denied("orders"), denied("visits"), denied("payments"), quiet=True)
    assert len(err) == 2
    assert err[0].startswith(
        "warning: shop.orders, shop.visits, shop.payments: reading Glue's table `shop.orders`"
    )
    assert err[1].startswith(" hint: allow `glue:GetTable`")


def test_plan_text_with_any_table_name_is_one_line() -> None:
    error = ErrorInfo("AwsError", "asking Glue: access denied to a thing", 3)
    unasked = CatalogPlan("shop", "x", unasked=error)
    plain = replace(ORDERS, iceberg=None, incremental=None, catalog=unasked)
    plans = [replace(plain, table=name, target=f"shop.{name}") for name in ("a", "thing", "s")]
    _, err = shown(*plans, quiet=True)
    assert err == ["warning: shop.a, shop.thing, shop.s: asking Glue: access denied to a thing"]


def test_different_errors_stay_apart() -> None:
    wrong = [
        replace(ORDERS, target=f"shop.{name}", error=ErrorInfo("LoadFailed", f"{name} is bad", 1))
        for name in ("a", "b")
    ]
    _, err = shown(*wrong, quiet=True)
    assert err == ["error: shop.a: a is bad", "error: shop.b: b is bad"]


def test_plan_text_with_errors_hides_the_query_hints() -> None:
    wrong = replace(ORDERS, action="BLOCKED", error=ErrorInfo("LoadFailed", "no way", 3))
    _, err = shown(wrong)
    assert err == ["error: supaflow_postgres.orders: no way", "note: nothing was written"]


def test_plan_text_shows_the_reader() -> None:
    def said(reader: str | None) -> list[str]:
        out, _ = shown(replace(ORDERS, reader=reader))
        return [line.strip() for line in out if "read " in line]

    assert said(None) == []
    assert said("direct") == ["read without Spark's reader"]
    assert said("jvm") == ["read by Spark"]


def test_plan_text_shows_who_writes_data_files() -> None:
    def said(writer: str | None) -> list[str]:
        out, _ = shown(replace(ORDERS, writer=writer))
        return [line.strip() for line in out if "data files written" in line]

    assert said(None) == []
    assert said("direct") == ["data files written without Spark's writer"]
    assert said("spark") == ["data files written by Spark"]


def test_plan_text_shows_the_side_table() -> None:
    out, _ = shown(replace(ORDERS, side_table="shop.orders_rejected", max_rejected="0.1 %"))
    assert "  rejected records go to shop.orders_rejected, up to 0.1 %" in out


def test_plan_of_many_tables_is_a_line_each_with_those_that_fail_first() -> None:
    plans = [replace(ORDERS, table=f"t{n}", target=f"shop.t{n}") for n in range(200)]
    plans[150] = replace(
        plans[150], action="FAIL", error=ErrorInfo("LoadFailed", "it is not there", 3)
    )

    out, err = shown(*plans)
    of_one, _ = shown(*plans, details={"t7"})

    assert len(out) == 202
    assert out[1].split()[0] == "t150"
    assert out[2].split()[0] == "t0"
    assert out[-1] == "200 tables: 199 LOAD, 1 FAIL"
    assert err == [
        "error: shop.t150: it is not there",
        "note: nothing was written",
        "note: `lakeload plan 'my shop.yml' --details TABLE` shows what would change",
    ]
    assert of_one[:202] == out
    assert of_one[202:204] == [
        "shop.t7",
        "  Iceberg, exists; branch main at snapshot 7364552010188932144, 3,000,000 rows",
    ]


def test_plan_of_many_tables_of_a_database_has_key_rows_and_columns_in_a_line_each() -> None:
    first = replace(
        ORDERS,
        key=("tenant_number", "id"),
        key_from="database",
        estimated_rows=1_234_567,
        incremental=None,
        schema=SchemaFound({"id": "int"}, adds={"id": "int"}),
        mode="OVERWRITE",
    )
    name = "public.a_long_name_that_all_of_the_tables_begin_with_{}"
    plans = [replace(first, table=name.format(n)) for n in range(198)]
    known = replace(first, table="public.t", key=(), schema=SchemaFound({"id": "int"}))
    known = replace(known, estimated_rows=9_999)
    plans += [known, replace(known, schema=SchemaFound({}, creates=True), estimated_rows=None)]

    out, _ = shown(*plans)

    assert len(out) == 202
    assert max(map(len, out)) <= 80
    assert out[0].split() == ["table", "mode", "key", "~rows", "size", "columns", "action"]
    assert out[1].split() == [
        *("public.a_lon…begin_with_0", "OVERWRITE", "tenant_…er,", "id", "1.2", "M", "94.7", "MiB"),
        *("+1", "LOAD"),
    ]
    assert out[198].split()[0] == "public.a_lon…gin_with_197"
    assert out[199].split() == [
        *("public.t", "OVERWRITE", "9,999", "94.7", "MiB", "same", "LOAD"),
    ]
    assert out[200].split()[-2:] == ["new", "LOAD"]
    replaced = [replace(known, schema=SchemaFound({}, replaces=True))] * 11
    assert shown(*replaced)[0][1].split()[-2:] == ["replaced", "LOAD"]


def test_plan_details_of_chosen_tables_leaves_the_others_at_a_line() -> None:
    out, _ = shown(ORDERS, replace(ORDERS, table="t", target="shop.t"), details={"t"})
    assert out[3] == "shop.t"
    assert "supaflow_postgres.orders" not in out[3:]


def test_plan_text_shows_which_keys_would_be_compared() -> None:
    def said(found: DeletesPlan) -> str:
        out, _ = shown(replace(ORDERS, detect_deletes=found))
        return next(line.strip() for line in out if "keys" in line)

    assert said(DeletesPlan(12_000, "30 %", table_rows=11_000)) == (
        "reads the keys of about 12,000 rows of the source and the keys of 11,000 rows of the "
        "table, to delete up to 30 %"
    )
    assert said(DeletesPlan(None, "5", jobs=3)) == (
        "reads the keys of all rows of the source and the keys in the files of 3 jobs, to delete "
        "up to 5"
    )
