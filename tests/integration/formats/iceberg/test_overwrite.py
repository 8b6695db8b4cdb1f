"""Overwrites: one snapshot takes the place of all rows, whatever the rows were before."""

from __future__ import annotations

from dataclasses import replace

from lakeload_jobs.contract.spec import FilesInput
from tests.integration.formats.iceberg.conftest import Loads


def test_an_overwrite_replaces_every_row_and_keeps_the_history(loads: Loads) -> None:
    before = loads.loaded(loads.table(loads.file([{"id": 1}, {"id": 2}]), mode="OVERWRITE"))

    after = loads.loaded(loads.table(loads.file([{"id": 3}]), mode="OVERWRITE"))
    emptied = loads.loaded(loads.table(loads.file([{"id": 4}]), mode="OVERWRITE", where="id > 9"))

    assert loads.rows(snapshot_id=before.snapshot_id) == [{"id": 1}, {"id": 2}]
    assert loads.rows(snapshot_id=after.snapshot_id) == [{"id": 3}]
    assert (emptied.rows, loads.rows()) == (0, [])
    snapshots = loads.read().metadata.snapshots
    assert [s.snapshot_id for s in snapshots if s.parent_snapshot_id == before.snapshot_id] == [
        after.snapshot_id
    ]


def test_columns_that_do_not_fit_are_replaced_with_the_rows(loads: Loads) -> None:
    loads.loaded(
        loads.table(
            loads.file([{"id": 1, "code": 7, "gone": "a"}]), mode="OVERWRITE", primary_key=("id",)
        )
    )
    rows = [{"id": "one", "code": "x"}]

    refused = loads.load(
        loads.table(loads.file(rows), mode="APPEND", primary_key=("id",)), pipeline="shop"
    )
    result = loads.loaded(
        loads.table(loads.file(rows), mode="OVERWRITE", primary_key=("id",), cursor="code")
    )

    assert refused.error is not None
    assert "`code`" in refused.error.message
    assert (result.rows, loads.rows()) == (1, rows)
    assert [warning.partition(":")[0] for warning in result.warnings] == [
        "column `gone` is no longer in the source",
        "column `id` was `long` and is `string`",
        "column `code` was `long` and is `string`",
    ]
    schema = loads.read().schema()
    assert schema.identifier_field_names() == {"id"}
    assert schema.find_field("id").required


def test_overwrite_clears_the_bookmark_of_loaded_files(loads: Loads) -> None:
    """Its rows are of files that no account names: going on from the old one would double them."""
    pattern = str(loads.folder / "*.parquet")
    source = FilesInput("PARQUET", (pattern,), {}, incremental=True, folder=str(loads.folder))
    incremental = loads.table(input=source)
    loads.file([{"id": 1}])
    loads.loaded(incremental)
    loads.file([{"id": 2}])
    loads.loaded(loads.table(input=replace(source, incremental=False), mode="OVERWRITE"))

    stopped = loads.load(incremental)

    assert stopped.error is not None
    assert "without `source.incremental`" in stopped.error.message
    assert loads.rows() == [{"id": 1}, {"id": 2}]
