"""What is said of files that two tables of a pipeline read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from lakeload.commands.spark_job import Context
from lakeload.commands.sync_once import LoadJob
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload.formats.inspection import InspectionRequest
from lakeload.formats.parquet.inspect import ParquetState
from lakeload.formats.parquet.plan import plan_states
from lakeload.formats.plan import with_shared_files
from lakeload.formats.shared_files import shared_files
from lakeload.launch.spec import Attempt
from lakeload.launch.stop import StopRequests
from lakeload.sources.report import SourceReport
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import (
    NO_OPTIONS,
    ColumnsSpec,
    DestinationSpec,
    FilesInput,
    TableSpec,
)
from lakeload_jobs.formats.parquet.log.table_log import OpenedLog
from lakeload_jobs.sources.paths.file_state import FileState
from tests.unit.launch.specs import ATTEMPT, SYNCED, table

REQUEST = InspectionRequest(
    DestinationSpec("lake", "us-east-1"), "shop", Attempt("job-1", ATTEMPT, SYNCED), NO_OPTIONS
)
OPENED = OpenedLog(1, None, first_run=True, column_map={}, columns=())


def reads(name: str, *paths: str, **other: object) -> TableSpec:
    spec = dataclasses.replace(table(name), source=name, input=FilesInput("CSV", paths, {}))
    return dataclasses.replace(spec, **other)  # type: ignore[arg-type]


def state(spec: TableSpec, *files: str) -> ParquetState:
    listed = tuple(FileState(path, 1, 0) for path in files)
    return ParquetState(spec, OPENED, report=SourceReport(listed=listed or None))


def warned(
    *states: ParquetState, allowed: tuple[str, ...] = (), local: bool = False
) -> Mapping[str, tuple[str, ...]]:
    request = dataclasses.replace(REQUEST, append_again=frozenset(allowed))
    return shared_files(states, request, local=local)


ALL = reads("all", "/in/orders/**")
RETURNS = reads("returns", "/in/orders/returns/")
FILES = ("/in/orders/returns/1.csv", "/in/orders/returns/2.csv")


def test_two_tables_that_read_the_same_files_are_both_named() -> None:
    every, some = state(ALL, "/in/orders/a.csv", *FILES), state(RETURNS, *FILES)
    other = state(reads("other", "/in/other.csv"), "/in/other.csv")

    found = warned(every, some, other)

    text = (
        "the tables `all` and `returns` both read 2 files, such as `/in/orders/returns/1.csv`: "
        "their rows are loaded twice, once into each table. Change the `path` of one of them. If "
        "it is on purpose, set `on_append_again: ALLOW`"
    )
    assert found == {"all": (text,), "returns": (text,)}
    assert warned(every, some, allowed=("returns",)) == {}
    assert warned(every, some, allowed=("all", "other")) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"where": "kind = 'return'"},
        {"columns": ColumnsSpec(include=("id",))},
        {"columns": ColumnsSpec(exclude=("id",))},
        {"input": FilesInput("JSON", ("/in/orders/returns/",), {"Records": "$.b[*]"})},
    ],
)
def test_tables_that_select_other_rows_or_columns_of_a_file_get_no_warning(
    change: dict[str, object],
) -> None:
    other = dataclasses.replace(RETURNS, **change)  # type: ignore[arg-type]

    assert warned(state(ALL, *FILES), state(other, *FILES)) == {}


def test_types_of_columns_do_not_make_it_purpose() -> None:
    typed = dataclasses.replace(RETURNS, columns=ColumnsSpec(types={"id": "bigint"}))

    assert set(warned(state(ALL, *FILES), state(typed, *FILES))) == {"all", "returns"}


def test_files_that_were_not_listed_are_listed_where_they_are_on_this_machine(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    whole = state(reads("whole", str(tmp_path)))
    glob = state(reads("glob", f"{tmp_path}/*.csv"))
    gone = state(reads("gone", f"{tmp_path}/b.csv"))

    assert warned(whole, glob, gone) == {}
    found = warned(whole, glob, gone, local=True)
    assert set(found) == {"whole", "glob"}
    assert f"both read 1 file, `{tmp_path}/a.csv`" in found["whole"][0]


def test_a_table_that_cannot_be_loaded_is_no_second_reader() -> None:
    broken = ParquetState(RETURNS, error=LoadFailed("no"))

    assert warned(state(ALL, *FILES), broken, local=True) == {}


def test_few_pairs_of_many_tables_are_named() -> None:
    found = warned(*(state(reads(f"t{number}", "/in"), *FILES) for number in range(20)))

    assert len({text for texts in found.values() for text in texts}) == 5


def test_plan_shows_it_at_both_tables() -> None:
    states = [state(ALL, *FILES), state(RETURNS, *FILES)]
    plans = plan_states(states, REQUEST, local=True)

    found = with_shared_files(plans, states, REQUEST, local=True)

    assert [plan.warnings for plan in plans] == [(), ()]
    assert all("both read 2 files" in plan.warnings[-1] for plan in found)


DOCUMENT = """version: 1
name: shop
destination: destination.yml
source: {type: FILES, format: CSV, incremental: true}
tables:
  - {table: whole, path: "*.csv"}
  - {table: some, path: a.csv}
"""


@pytest.mark.parametrize("line", ["set `on_append_again: ALLOW`", "of one table"])
def test_setting_that_the_warning_names_silences_it(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    pipeline = tmp_path / "pipeline.yml"
    destination = "version: 1\nbucket: my-data-lake\nregion: us-east-1\n"
    (tmp_path / "destination.yml").write_text(destination)

    def found(text: str) -> Mapping[str, tuple[str, ...]]:
        pipeline.write_text(text)
        document = load_pipeline(pipeline, {})
        job = LoadJob(document, table_specs(document), REQUEST.attempt, NO_OPTIONS)
        context = Context({}, StopRequests(), Console(), quiet=True)
        request = job.inspection(context, loads=False)
        return shared_files([state(spec) for spec in job.tables], request, local=True)

    if line == "of one table":
        followed = DOCUMENT.replace("a.csv}", "a.csv, on_append_again: ALLOW}")
    else:
        followed = f"{DOCUMENT}{line.removeprefix('set ').strip('`')}\n"
    assert set(found(DOCUMENT)) == {"whole", "some"}
    assert found(followed) == {}
