"""The package that travels, and the folder it lies in."""

from __future__ import annotations

import builtins
import os
import time
import zipfile
import zipimport
from pathlib import Path
from typing import Any

import pytest

from lakeload.machine import cache
from lakeload.machine.cache import (
    DAYS,
    cache_directory,
    entry_script,
    jobs_directory,
    jobs_package,
)
from lakeload_jobs.contract.errors import MachineNotReady


def test_cache_location_is_set_by_the_environment(tmp_path: Path) -> None:
    assert cache_directory({"LAKELOAD_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert cache_directory({}).is_absolute()


def test_the_package_is_made_once_per_content_and_version_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "lakeload_jobs"
    (source / "__pycache__").mkdir(parents=True)
    (source / "__pycache__" / "a.pyc").write_bytes(b"no")
    (source / "a.py").write_text("A = 1\n")
    first = jobs_package(tmp_path / "cache", source)
    made = first.stat().st_mtime_ns
    assert jobs_package(tmp_path / "cache", source) == first
    assert first.stat().st_mtime_ns == made
    assert jobs_package(tmp_path / "other", source).name == first.name
    assert zipfile.ZipFile(first).namelist() == ["lakeload_jobs/a.py", "lakeload_jobs/a.pyc"]
    with monkeypatch.context() as other_python:
        other_python.setattr(cache, "MAGIC_NUMBER", b"none")
        assert jobs_package(tmp_path / "cache", source) != first
    (source / "a.py").write_text("A = 2\n")
    assert jobs_package(tmp_path / "cache", source) != first
    assert not list((tmp_path / "cache").glob("*.part"))


@pytest.mark.parametrize("of_this_python", [True, False])
def test_modules_are_compiled_only_where_the_byte_code_is_of_another_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_this_python: bool
) -> None:
    source = tmp_path / "lakeload_jobs"
    source.mkdir()
    (source / "a.py").write_text("A = 1\n")
    if not of_this_python:
        monkeypatch.setattr(cache, "MAGIC_NUMBER", b"none")
    package = jobs_package(tmp_path / "cache", source)
    compiled: list[str] = []

    def compile_source(text: bytes, path: str, *rest: Any, **more: Any) -> Any:
        compiled.append(path)
        return compiler(text, path, *rest, **more)

    compiler = compile
    monkeypatch.setattr(builtins, "compile", compile_source)
    code: Any = zipimport.zipimporter(f"{package}/lakeload_jobs").get_code("a")
    assert "A" in code.co_names
    assert compiled == ([] if of_this_python else [f"{package}/lakeload_jobs/a.py"])


def test_the_package_holds_the_contract_and_the_entry_script_is_there(tmp_path: Path) -> None:
    names = zipfile.ZipFile(jobs_package(tmp_path)).namelist()
    assert "lakeload_jobs/contract/spec.py" in names
    assert entry_script().parent == jobs_directory() / "entry"


def test_a_cache_that_spark_cannot_take_the_package_from_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineNotReady, match=r"`.*a, b`: it splits names at commas") as lacks:
        jobs_package(tmp_path / "a, b")
    assert "LAKELOAD_CACHE_DIR" in (lacks.value.hint or "")
    assert list(tmp_path.iterdir()) == []


def test_new_package_replaces_unused_ones(tmp_path: Path) -> None:
    source, cache = tmp_path / "lakeload_jobs", tmp_path / "cache"
    source.mkdir()

    def package(content: str) -> Path:
        (source / "a.py").write_text(content)
        return jobs_package(cache, source)

    one, two = package("1"), package("2")
    foreign = cache / "lakeload_jobs-of-mine.zip"
    foreign.touch()
    killed = cache / ".lakeload_jobs-abc.part"
    killed.touch()
    long_ago = time.time() - (DAYS + 1) * 86_400
    for path in (one, two, foreign, killed):
        os.utime(path, (long_ago, long_ago))
    assert package("2") == two
    assert one.exists()
    three = package("3")
    assert sorted(cache.iterdir()) == sorted([two, three, foreign])
