"""`lakeload inspect` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.unit.commands.command import lakeload


def people(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text("id;amount\n1;1,5\n2;2,75\n3;\n", encoding="utf-8")
    return path


def test_inspect_text_fits_80_columns_and_ends_with_settings(tmp_path: Path) -> None:
    people(tmp_path)
    wide = ",".join(f"column_{number}" for number in range(9))
    (tmp_path / "wide.csv").write_text(
        f"{wide}\n" + f"{'x' * 50},{'1' * 30}," + ",".join("1234567") + "\n"
    )

    done = lakeload("inspect", "people.csv", "wide.csv", folder=tmp_path, COLUMNS="80")

    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "names stand above numbers" in done.stdout
    settings = yaml.safe_load(done.stdout.split("in a pipeline:\n")[1])
    assert settings["tables"][0] == {
        "table": "people",
        "path": "people.csv",
        "options": {"separator": ";", "decimal_mark": ","},
    }
    assert settings["source"] == {"type": "FILES", "format": "CSV", "options": {"header": True}}


def test_inspect_json_has_options_columns_and_rows(tmp_path: Path) -> None:
    people(tmp_path)

    done = lakeload("inspect", "people.csv", "--output", "json", folder=tmp_path)

    (table,) = json.loads(done.stdout)["tables"]
    assert table["options"] == {"separator": ";", "header": True, "decimal_mark": ","}
    assert table["columns"] == [
        {"name": "id", "type": "bigint"},
        {"name": "amount", "type": "double"},
    ]
    assert table["rows"][2] == {"id": "3", "amount": None}
    assert {guess["confidence"] for guess in table["guesses"]} <= {"HIGH", "MEDIUM", "LOW"}


def test_inspect_shows_the_values_of_folders(tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / "a" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "x.csv").write_text("id,name\n1,b\n")

    text = lakeload("inspect", "a", folder=tmp_path).stdout
    done = lakeload("inspect", "a", "--output", "json", folder=tmp_path)

    assert ["day", "bigint", "1"] in [line.split() for line in text.splitlines()]
    (table,) = json.loads(done.stdout)["tables"]
    assert table["rows"] == [{"id": "1", "name": "b", "day": "1"}]


def test_inspect_missing_file_exits_with_3_and_lists_neighbours(tmp_path: Path) -> None:
    people(tmp_path)

    done = lakeload("inspect", "poeple.csv", folder=tmp_path)

    assert done.returncode == 3
    assert "there is no file or folder" in done.stderr
    assert "it holds `people.csv`" in done.stderr


def test_inspect_unloadable_file_exits_with_3_and_shows_the_others(tmp_path: Path) -> None:
    people(tmp_path)
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 rest")

    done = lakeload("inspect", ".", folder=tmp_path)

    assert done.returncode == 3
    assert "it is a PDF" in done.stderr
    assert "- table: people" in done.stdout


def test_inspect_unsupported_path_exits_with_2(tmp_path: Path) -> None:
    done = lakeload("inspect", "gs://bucket/file", folder=tmp_path)

    assert done.returncode == 2
    assert "neither a local path nor one in S3" in done.stderr


def unsure(folder: Path) -> None:
    (folder / "a.csv").write_text("name,city\nanna,rome\nberta,paris\n", encoding="utf-8")
    (folder / "b.csv").write_text("anna;x\nberta\n", encoding="utf-8")
    people(folder)


def test_inspect_ends_with_each_guess_worst_first_and_how_to_change_it(tmp_path: Path) -> None:
    unsure(tmp_path)

    done = lakeload("inspect", "a.csv", "b.csv", "people.csv", folder=tmp_path)

    said = [line for line in done.stderr.splitlines() if line.startswith("guess:")]
    assert [line.split(", ")[1].split(":")[0] for line in said[:2]] == ["perhaps", "perhaps"]
    assert said[-1] == (
        "guess: a: `header: true`, probably: the first record has a text for each column, none is "
        "repeated; otherwise set `header: false`"
    )
    assert "people" not in "".join(said)


def test_inspect_json_says_how_to_change_a_guess(tmp_path: Path) -> None:
    unsure(tmp_path)

    done = lakeload("inspect", "a.csv", "--output", "json", folder=tmp_path)

    (table,) = json.loads(done.stdout)["tables"]
    assert {
        "option": "header",
        "value": True,
        "confidence": "MEDIUM",
        "instead": "header: false",
    } in [
        {key: guess[key] for key in ("option", "value", "confidence", "instead")}
        for guess in table["guesses"]
    ]
