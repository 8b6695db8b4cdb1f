"""Complete configurations of other products: imported, loaded twice, and compared with the rules of
the product (docs/migrating.md)."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.launch.spec import build_job_spec, new_attempt
from lakeload_jobs.contract.result import RunResult, TableResult
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.jobs.conftest import Job

CASES = Path(__file__).parents[3] / "tests" / "cases" / "imports"
Row = dict[str, Any]


class Moved:
    """A pipeline that was imported, moved to the tests' store."""

    def __init__(self, example: str, folder: Path, run: Callable[[JobSpec], RunResult]) -> None:
        self.folder = folder / "shop"
        self._run = run
        theirs = [p for p in (CASES / example).iterdir() if not p.name.startswith("expected")]
        words = ["import", *map(str, sorted(theirs)), "--into", str(self.folder)]
        done = CliRunner().invoke(app, [*words, "--output", "json"])
        assert done.exit_code == 0, done.output
        self.answer = json.loads(done.stdout)

    def file(self, table: str, day: int, *rows: Row) -> None:
        """Write the export of a day, where the pipeline asks for the files of the table."""
        folder = self.folder / "TO-FILL-IN" / table
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{day}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def load(
        self, destination: Callable[[DestinationSpec], DestinationSpec], name: str = "pipeline.yml"
    ) -> list[TableResult]:
        """Load the pipeline as it was written into another place."""
        document = load_pipeline(self.folder / name, {})
        place = destination(destination_spec(document.destination))
        spec = build_job_spec(document, place, table_specs(document), new_attempt(None), None)
        reports = self.folder / spec.attempt_id
        reports.mkdir()
        events, outcome = str(reports / "events.jsonl"), str(reports / "result.json")
        result = self._run(replace(spec, events_path=events, result_path=outcome))
        assert result.error is None, result.error
        assert [table.error for table in result.tables] == [None] * len(result.tables)
        return list(result.tables)


def iceberg(loads: Loads) -> Callable[[DestinationSpec], DestinationSpec]:
    """Return what puts the tests' catalog, store and keys in the place of theirs."""
    own = loads.destination

    def moved(theirs: DestinationSpec) -> DestinationSpec:
        assert theirs.iceberg
        assert own.iceberg
        return replace(
            own,
            glue_database_prefix=theirs.glue_database_prefix,
            iceberg=replace(theirs.iceberg, catalog=own.iceberg.catalog, warehouse_location=None),
        )

    return moved


def types_of(loads: Loads, name: str) -> dict[str, str]:
    """Return Iceberg's types of the columns without tracking columns."""
    fields = loads.read(name).schema().fields
    return {one.name: str(one.field_type) for one in fields if not one.name.startswith("_supa_")}


ORDER = {
    "id": 1,
    "code": "007",
    "paid": True,
    "price": 10,
    "units": 3,
    "day": "2026-02-28",
    "at": "2026-02-28T10:00:00+02:00",
    "local": "2026-02-28T10:00:00",
    "opens": "08:00:00",
    "closes": "20:00:00+02:00",
    "address": {"city": "Oslo"},
    "lines": [1, 2],
    "either": 5,
    "updated_at": "2026-03-01T00:00:00Z",
}
AT = dt.datetime(2026, 2, 28, 8, tzinfo=dt.UTC)


def test_airbyte_configuration_loads_as_airbyte_does(loads: Loads, tmp_path: Path) -> None:
    shop, place = Moved("airbyte-complete", tmp_path, loads.run), iceberg(loads)
    visit = {"at": "2026-02-28T10:00:00Z", "ip": "::1"}
    for day, price, either in ((1, 10, 5), (2, 10.5, "five")):
        newer = ORDER | {"price": price, "either": either, "updated_at": f"2026-03-0{day}"}
        older = ORDER | {"id": 2, "price": price, "updated_at": f"2026-02-0{3 - day}"}
        gone = ORDER | {"id": 3, "_ab_cdc_deleted_at": None if day == 1 else "2026-03-09"}
        shop.file("orders", day, newer, older, gone | {"updated_at": newer["updated_at"]})
        shop.file("visits", day, visit)
        shop.load(place)

    loads.schema = "air_public"
    assert types_of(loads, "raw_orders") == {
        "id": "long",
        "code": "string",
        "paid": "boolean",
        "price": "double",
        "units": "long",
        "day": "date",
        "at": "timestamptz",
        "local": "timestamp",
        "opens": "string",
        "closes": "string",
        "address": "string",
        "lines": "string",
        "either": "string",
        "absent": "date",
        "updated_at": "timestamptz",
        "_ab_cdc_deleted_at": "string",
    }
    one, two = loads.rows("raw_orders")
    assert (one["price"], one["either"], two["price"]) == (10.5, "five", 10.0)
    assert (one["code"], one["at"], one["day"]) == ("007", AT, dt.date(2026, 2, 28))
    assert (one["opens"], one["closes"]) == ("08:00:00", "20:00:00+02:00")
    assert (one["address"], one["lines"]) == ('{"city": "Oslo"}', "[1, 2]")
    assert loads.read("raw_orders").schema().identifier_field_names() == {"id"}
    loads.schema = "air_"
    assert loads.rows("raw_visits", order="at") == 2 * [
        {"at": dt.datetime(2026, 2, 28, 10, tzinfo=dt.UTC)}
    ]


@pytest.mark.exhaustive
def test_airbyte_full_refreshes_load_as_airbyte_does(loads: Loads, tmp_path: Path) -> None:
    shop, place = Moved("airbyte-complete", tmp_path, loads.run), iceberg(loads)
    for day, amount in ((1, 10), (2, 10.5)):
        shop.file("countries", 1, {"code": f"{day}"})
        shop.file("ledger", 1, {"amount": amount})
        shop.file("rates", 1, {"rate": 0.1, "day": f"2026-02-0{day}"})
        shop.load(place, "pipeline-full-refresh.yml")

    loads.schema = "air_public"
    assert loads.rows("raw_countries", order="code") == [{"code": "2"}]
    assert loads.rows("raw_ledger", order="amount") == [{"amount": 10.0}, {"amount": 10.5}]
    assert loads.rows("raw_rates", order="day") == [{"rate": "0.1", "day": dt.date(2026, 2, 2)}]


def test_estuary_configuration_loads_as_estuary_does(loads: Loads, tmp_path: Path) -> None:
    shop, place = Moved("estuary-complete", tmp_path, loads.run), iceberg(loads)
    for day, price in ((1, 10), (2, 10.5)):
        estuary = {"total": "1e2", "units": "7", "photo": "AP8=", "token": "9f", "either": True}
        shop.file("orders", day, ORDER | estuary | {"price": price, "absent": None})
        shop.file("visits", day, {"at": "2026-02-28T10:00:00Z"})
        shop.load(place)

    loads.schema = "est_sales"
    found = types_of(loads, "shop_orders")
    assert {name: found[name] for name in ("price", "total", "units", "photo", "day", "at")} == {
        "price": "double",
        "total": "double",
        "units": "long",
        "photo": "binary",
        "day": "date",
        "at": "timestamptz",
    }
    texts = ("code", "opens", "token", "address", "lines", "either")
    assert {found[name] for name in texts} == {"string"}
    [row] = loads.rows("shop_orders")
    assert (row["price"], row["total"], row["units"], row["photo"]) == (10.5, 100.0, 7, b"\x00\xff")
    assert (row["at"], row["token"], row["either"]) == (AT, "9f", "true")
    properties = loads.read("shop_orders").properties
    assert properties["write.target-file-size-bytes"] == "134217728"
    loads.schema = "analytics"
    assert len(loads.rows("visits", order="at")) == 2


def test_supaflow_data_lake_loads_as_supaflow_does(loads: Loads, tmp_path: Path) -> None:
    shop, place = Moved("supaflow", tmp_path, loads.run), iceberg(loads)
    for day in (1, 2):
        shop.file("example", day, {"First Name": "a", "n": day})
        shop.load(place)

    loads.schema = "postgres_public"
    rows = loads.rows("example", order="n")
    assert rows == [{"First_Name": "a", "n": 1}, {"First_Name": "a", "n": 2}]


def test_supaflow_legacy_loads_as_supaflow_does(job: Job, tmp_path: Path) -> None:
    shop = Moved("supaflow-legacy", tmp_path, job.run)

    def place(theirs: DestinationSpec) -> DestinationSpec:
        assert theirs.parquet
        own = replace(theirs.parquet, update_glue_catalog=False)
        return replace(
            job.destination(), glue_database_prefix=theirs.glue_database_prefix, parquet=own
        )

    for day in (1, 2):
        shop.file("example", day, {"First Name": "a", "n": day})
        [table] = shop.load(place)
        assert table.rows == 1
        [file] = table.files
        assert "/acme_salesforce/example/" in file.key
