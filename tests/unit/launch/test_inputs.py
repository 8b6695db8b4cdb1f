"""What input paths name, before Spark starts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from lakeload.launch.run import refuse_without_any_input
from lakeload.sources.paths import look_at_paths
from lakeload_jobs.contract.errors import ExitCode, Refused
from lakeload_jobs.contract.spec import FilesInput, TableSpec
from tests.inputs import files_of
from tests.unit.launch.specs import table


def reads(name: str, *paths: Path | str) -> TableSpec:
    given = FilesInput("CSV", tuple(str(path) for path in paths), {})
    return dataclasses.replace(table(name), input=given)


def test_folders_globs_and_files_are_counted_once_without_hidden_files(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "_delta_log").mkdir()
    for name in (
        "a.csv",
        "day=1/b.csv",
        "_SUCCESS",
        ".a.csv.crc",
        "_delta_log/0.json",
        "c._COPYING_",
    ):
        (tmp_path / name).write_text("12345")
    spec = reads("orders", tmp_path, tmp_path / "a.csv", tmp_path / "*.csv", tmp_path / "none-*")
    found = look_at_paths(files_of(spec).paths)
    assert (found.files, found.bytes) == (2, 10)
    assert found.missing == (str(tmp_path / "none-*"),)


def test_path_with_wildcards_that_is_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("x")
    assert look_at_paths(files_of(reads("t", tmp_path / "a[1].csv")).paths).files == 1


def test_missing_files_of_every_table_fail_before_spark(tmp_path: Path) -> None:
    tables = [reads("a", tmp_path / "a.csv"), reads("b", tmp_path / "b-*.csv")]
    with pytest.raises(Refused) as refused:
        refuse_without_any_input(tables)
    assert refused.value.exit_code == ExitCode.REFUSED
    assert str(tmp_path / "a.csv") in refused.value.message
    assert "1 other" in refused.value.message


def test_missing_files_of_one_table_are_left_to_the_job(tmp_path: Path) -> None:
    (tmp_path / "b-1.csv").write_text("x")
    refuse_without_any_input([reads("a", tmp_path / "a.csv"), reads("b", tmp_path / "b-*.csv")])
