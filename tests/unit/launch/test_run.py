"""A launch from a spec to the files that the job starts with."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakeload.launch.process import Installation
from lakeload.launch.properties import SparkSettings
from lakeload.launch.run import Launcher, jvm_bytes, launch
from lakeload.launch.run_folder import RunFolder, create_run_folder
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.codec import from_json
from lakeload_jobs.contract.errors import MachineNotReady
from lakeload_jobs.contract.spec import (
    DELETE_LIMIT,
    CatalogSpec,
    ColumnsSpec,
    FilesInput,
    IcebergSpec,
    JobSpec,
    PartitionField,
    RejectedInput,
)
from tests.fakes.spark_home import fake_spark_home
from tests.unit.launch.specs import ATTEMPT, SYNCED, job_spec


@pytest.mark.parametrize(
    ("master", "shared"),
    [("local[2]", True), ("local-cluster[2,1,1024]", True), ("spark://127.0.0.1:7077", False)],
)
def test_job_spec_has_whether_tasks_run_on_other_machines(
    tmp_path: Path, master: str, shared: bool
) -> None:
    home = fake_spark_home(tmp_path)
    folder = create_run_folder(tmp_path / "runs", SYNCED, ATTEMPT)
    installation = Installation(home, tmp_path, Path(sys.executable), tmp_path, tmp_path)
    environment = {**os.environ, "FAKE_SPARK_SCENARIO": "success"}
    settings = SparkSettings(master, "1g", {})

    with StopRequests() as stop:
        launcher = Launcher(installation, settings, environment, stop, lambda _: None)
        outcome = launch(job_spec(folder), folder, launcher)

    assert outcome.kind == "LOADED"
    told = from_json(JobSpec, json.loads(folder.spec.read_text(encoding="utf-8")))
    assert told.runtime.tasks_share_driver is shared
    assert (tmp_path / "argv").read_text(encoding="utf-8").splitlines()[:2] == ["--master", master]


def test_user_without_a_name_gets_one_where_tasks_run_in_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.setattr("os.getuid", lambda: 54321)
    home = fake_spark_home(tmp_path)
    folder = create_run_folder(tmp_path / "runs", SYNCED, ATTEMPT)
    installation = Installation(home, tmp_path, Path(sys.executable), tmp_path / "z", tmp_path)
    environment = {**os.environ, "FAKE_SPARK_SCENARIO": "success", "HOME": "/my home"}
    kept: list[str] = []
    monkeypatch.setattr(RunFolder, "forget_properties", lambda folder: kept.append(_conf(folder)))

    def run(master: str) -> str:
        with StopRequests() as stop:
            settings = SparkSettings(master, "1g", {})
            launcher = Launcher(installation, settings, environment, stop, lambda _: None)
            return launch(job_spec(folder), folder, launcher).kind

    with pytest.raises(MachineNotReady, match="`local-cluster") as lack:
        run("local-cluster[2,1,1024]")
    assert "uid-54321, which has no entry" in lack.value.message
    assert "`spark: {master: 'local[*]'}`" in (lack.value.hint or "")
    assert run("local[2]") == "LOADED"
    assert '-Duser.name=uid-54321 "-Duser.home=/my home"' in kept[-1]
    argv = (tmp_path / "argv").read_text(encoding="utf-8").splitlines()
    assert argv[argv.index("--py-files") + 1] == f"local:{tmp_path}/z"


def _conf(folder: RunFolder) -> str:
    return folder.properties.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file_format", "of_table", "of_job", "through_jvm"),
    [
        ("CSV", {}, {}, False),
        ("CSV", {"columns": ColumnsSpec(types={"a": "int"})}, {}, False),
        ("PARQUET", {}, {}, False),
        ("PARQUET", {"columns": ColumnsSpec(types={"a": "int"})}, {}, True),
        ("ORC", {}, {}, False),
        ("CSV", {"where": "a > 0"}, {}, True),
        ("CSV", {"deleted_when": "a > 0"}, {}, True),
        ("CSV", {"max_deleted": DELETE_LIMIT}, {}, True),
        ("CSV", {}, {"reader": "JVM"}, True),
    ],
)
def test_jvm_bytes_exclude_rows_read_by_python_workers(
    tmp_path: Path,
    file_format: Any,
    of_table: dict[str, Any],
    of_job: dict[str, Any],
    through_jvm: bool,
) -> None:
    (tmp_path / "rows").write_bytes(bytes(100))
    files = FilesInput(file_format, (str(tmp_path / "rows"),), {})
    spec = job_spec(create_run_folder(tmp_path / "runs", SYNCED, ATTEMPT), ["orders"])
    table = replace(spec.tables[0], input=files, **of_table)
    spec = replace(spec, tables=(table,), **of_job)

    assert jvm_bytes(spec) == (100 if through_jvm else 0)


@pytest.mark.parametrize(("file_format", "expected"), [("CSV", 0), ("PARQUET", None)])
def test_jvm_bytes_of_rejected_records_follow_the_format_of_their_files(
    tmp_path: Path, file_format: Any, expected: int | None
) -> None:
    spec = job_spec(create_run_folder(tmp_path / "runs", SYNCED, ATTEMPT), ["orders"])
    given = RejectedInput("first", FilesInput(file_format, ("/data/rows",), {}))
    table = replace(spec.tables[0], input=given, columns=ColumnsSpec(types={"a": "int"}))

    assert jvm_bytes(replace(spec, tables=(table,))) == expected


def test_jvm_bytes_include_rows_of_iceberg_tables(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(bytes(100))
    spec = job_spec(create_run_folder(tmp_path / "runs", SYNCED, ATTEMPT), ["orders"])
    files = FilesInput("CSV", (str(tmp_path / "rows"),), {})
    destination = replace(spec.destination, table_format="ICEBERG")
    appended = replace(spec.tables[0], input=files)
    table = replace(appended, mode="UPSERT")
    partitioned = replace(appended, partition_by=(PartitionField("identity", "a"),))

    for one in (appended, partitioned):
        assert jvm_bytes(replace(spec, tables=(one,), destination=destination)) == 0
    assert jvm_bytes(replace(spec, tables=(table,), destination=destination)) == 100
    lent = replace(destination, iceberg=IcebergSpec(CatalogSpec("REST")))
    assert jvm_bytes(replace(spec, tables=(appended,), destination=lent)) == 100
    remote = replace(table, input=replace(files, paths=("s3://lake/a.csv",)))
    assert jvm_bytes(replace(spec, tables=(remote,), destination=destination)) is None
