"""`lakeload init --path` writes what the files need: format, options, one table each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload_jobs.sources.paths.local_listing import file_state
from tests.inputs import files_of
from tests.text_tables import json_table
from tests.unit.init.choices import init

pytestmark = pytest.mark.usefixtures("inspected_here")
BASE = ["--bucket=my-data-lake", "--region=us-east-1"]


def pipeline(folder: Path) -> Any:
    """Return the document that was written, which has to be valid."""
    document = load_pipeline(folder / "pipeline.yml", {})
    for table in table_specs(document):
        assert files_of(table).paths
    return yaml.safe_load((folder / "pipeline.yml").read_text(encoding="utf-8"))


def mixed(folder: Path) -> None:
    folder.mkdir()
    (folder / "kunden.csv").write_bytes("id;ort;n\n1;Köln;1,5\n2;Jülich;2,25\n".encode("cp1252"))
    (folder / "people.tsv").write_text("id\tname\n1\ta\n2\tb\n", encoding="utf-8")
    (folder / "events.json").write_text('{"id": 1}\n{"id": 2}\n', encoding="utf-8")
    pq.write_table(pa.table({"id": [1]}), folder / "lines.parquet")


def test_a_folder_of_mixed_files_becomes_a_table_each_with_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed(tmp_path / "data")
    monkeypatch.chdir(tmp_path)

    done = init("lake", *BASE, "--path", "data")

    assert done.exit_code == 0, done.stderr
    written = pipeline(tmp_path / "lake")
    assert written["source"] == {
        "type": "FILES",
        "format": "CSV",
        "options": {"header": True},
        "incremental": True,
    }
    assert written["tables"] == [
        {"table": "events", "path": "../data/events.json", "format": "NDJSON"},
        {
            "table": "kunden",
            "path": "../data/kunden.csv",
            "options": {"separator": ";", "decimal_mark": ",", "encoding": "windows-1252"},
        },
        {"table": "lines", "path": "../data/lines.parquet", "format": "PARQUET"},
        {"table": "people", "path": "../data/people.tsv", "options": {"separator": r"\t"}},
    ]
    assert "encoding: windows-1252   # probably: it makes words like `Köln`" in (
        tmp_path / "lake" / "pipeline.yml"
    ).read_text(encoding="utf-8")
    assert "4 tables: events, kunden, lines, people" in done.stdout


def test_init_says_that_dates_in_json_stay_text_with_a_line_that_loads(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    rows = [
        '{"day": "2024-02-29", "at at": "2024-02-29T10:00:00Z", "mixed": "2024-02-29", "e": ""}',
        '{"day": "2024-03-01", "at at": "2024-03-01T11:30:00+02:00", "mixed": "later", "e": "x"}',
        '{"day": null, "mixed": "2024-02-29", "empty": ""}',
    ]
    (events / "events-1.json").write_text("\n".join(rows), encoding="utf-8")
    (events / "events-2.json").write_text(f"{rows[0]}\n{rows[0]}\n", encoding="utf-8")
    lake = tmp_path / "lake"

    done = init(str(lake), *BASE, "--path", str(events))

    line = "columns: {types: {day: date, at at: timestamp}}"
    guess = "JSON has no dates, and the strings of `day`, `at at` stay text"
    assert f"{guess}; otherwise set `{line}`" in done.stderr
    text = (lake / "pipeline.yml").read_text(encoding="utf-8")
    assert f"    # {line}\n" in text
    pipeline_file = lake / "pipeline.yml"
    pipeline_file.write_text(text.replace(f"# {line}", line), encoding="utf-8")
    (table,) = table_specs(load_pipeline(pipeline_file, {}))
    files = tuple(file_state(str(path)) for path in sorted(events.iterdir()))
    read = json_table(files, {}, table.columns, lines=True).split(
        lambda scan, pieces: [scan(piece) for piece in pieces]
    )
    assert [str(one.type) for one in read.columns[:2]] == ["date32[day]", "timestamp[us, tz=UTC]"]


def test_init_format_is_detected_from_content_not_name(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text('{"id": 1}\n{"id": 2}\n', encoding="utf-8")

    init(str(tmp_path / "lake"), *BASE, "--path", str(events))

    assert pipeline(tmp_path / "lake")["source"]["format"] == "NDJSON"


def test_init_option_overrides_the_detected_value(tmp_path: Path) -> None:
    events = tmp_path / "events.json"
    events.write_text('{"id": 1}\n{"id": 2}\n', encoding="utf-8")
    lake = tmp_path / "lake"

    done = init(str(lake), *BASE, "--path", str(events), "--source", "json", "--table", "e")

    assert done.exit_code == 0, done.stderr
    assert pipeline(lake)["source"]["format"] == "JSON"
    assert pipeline(lake)["tables"] == [{"table": "e", "path": str(events)}]


def test_init_texts_for_null_are_written_as_a_list(tmp_path: Path) -> None:
    routes = tmp_path / "routes.dat"
    routes.write_text("2B,410,AER\n2B,\\N,ASF\n2C,411,MRV\n", encoding="utf-8")
    lake = tmp_path / "lake"

    done = init(str(lake), *BASE, "--path", str(routes))

    assert done.exit_code == 0, done.stderr
    assert pipeline(lake)["source"]["options"] == {"null_values": ["\\N"]}
    (table,) = table_specs(load_pipeline(lake / "pipeline.yml", {}))
    assert files_of(table).options == {"null_values": '["\\\\N"]'}


def test_init_skipped_line_breaks_are_no_lines_of_the_document(tmp_path: Path) -> None:
    sales = tmp_path / "sales.csv"
    sales.write_text('"Sales\nof\x01March"\nid,v\n1,a\n2,b\n3,c\n', encoding="utf-8")
    lake = tmp_path / "lake"

    done = init(str(lake), *BASE, "--path", str(sales))

    assert done.exit_code == 0, done.stderr
    assert pipeline(lake)["source"]["options"] == {"skip_rows": 2, "header": True}
    assert "such as `Sales of" in done.stderr


def test_init_columns_of_r_row_names_are_renamed(tmp_path: Path) -> None:
    cars = tmp_path / "cars.txt"
    cars.write_text('"mpg" "a b"\n"Mazda" 21 6\n"Datsun 710" 22.8 4\n"Hornet" 21.4 6\n')

    init(str(tmp_path / "lake"), *BASE, "--path", str(cars))

    (table,) = pipeline(tmp_path / "lake")["tables"]
    assert table["columns"] == {"rename": {"_c0": "row_name", "_c1": "mpg", "_c2": "a b"}}


def test_one_name_for_several_tables_is_refused(tmp_path: Path) -> None:
    mixed(tmp_path / "data")

    done = init(str(tmp_path / "lake"), *BASE, "--path", str(tmp_path / "data"), "--table", "t")

    assert done.exit_code == 2
    assert "`--table` names one table, but the files make up 4" in done.stderr


def test_a_file_that_cannot_be_loaded_is_left_out_with_a_warning(tmp_path: Path) -> None:
    mixed(tmp_path / "data")
    (tmp_path / "data" / "manual.pdf").write_bytes(b"%PDF-1.4")

    done = init(str(tmp_path / "lake"), *BASE, "--path", str(tmp_path / "data"), "--output", "json")

    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["tables"] == ["events", "kunden", "lines", "people"]
    assert "is left out" in answer["warnings"][0]
    assert len(pipeline(tmp_path / "lake")["tables"]) == 4


def test_init_folder_of_unloadable_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "manual.csv").write_bytes(b"%PDF-1.4")

    done = init(str(tmp_path / "lake"), *BASE, "--path", str(tmp_path / "manual.csv"))

    assert done.exit_code == 3
    assert "it is a PDF" in done.stderr
    assert not (tmp_path / "lake").exists()


def test_init_path_without_files_and_format_names_the_path(tmp_path: Path) -> None:
    done = init(str(tmp_path / "lake"), *BASE, "--path", str(tmp_path / "orders"))

    assert done.exit_code == 2
    assert f"`--path {tmp_path}/orders` names no file" in done.stderr
    assert not (tmp_path / "lake").exists()


def test_init_missing_files_get_the_format_of_their_names(tmp_path: Path) -> None:
    done = init(str(tmp_path / "lake"), *BASE, "--path", str(tmp_path / "later" / "*.parquet"))

    assert done.exit_code == 0, done.stderr
    assert pipeline(tmp_path / "lake")["source"]["format"] == "PARQUET"


def test_init_ends_with_its_guesses_and_has_them_in_json(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Sales\nname,city\nanna,rome\nberta,paris\n", encoding="utf-8")
    flags = (str(tmp_path / "lake"), *BASE, "--path", str(tmp_path / "a.csv"), "--table", "people")

    text = init(*flags, "--dry-run")
    document = json.loads(init(*flags, "--dry-run", "--output", "json").stdout)

    expected = "guess: people: `skip_rows: 1`, probably: the lines before, such as `Sales`, have"
    assert expected in text.stderr
    (skipped,) = [guess for guess in document["guesses"] if guess["option"] == "skip_rows"]
    assert (skipped["table"], skipped["value"], skipped["instead"]) == ("people", 1, "skip_rows: 0")
