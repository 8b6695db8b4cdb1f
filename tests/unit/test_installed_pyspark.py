"""The choice of the installed pyspark, in place of Spark's zips."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lakeload_jobs.installed_pyspark import use_installed_pyspark


@pytest.mark.parametrize(
    ("name", "listed", "py4j", "left"),
    [
        ("pyspark", True, True, False),
        # A Spark that the user has unpacked somewhere.
        ("spark-4.1.4", True, True, True),
        ("pyspark", False, True, True),
        ("pyspark", True, False, True),
    ],
)
def test_zips_leave_the_path_where_the_package_is_there(
    name: str,
    listed: bool,
    py4j: bool,
    left: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / name
    if py4j:
        (tmp_path / "py4j").mkdir()
        (tmp_path / "py4j" / "__init__.py").touch()
    zips = [str(home / "python" / "lib" / zipped) for zipped in ("pyspark.zip", "py4j-src.zip")]
    others = ["/jobs", *([str(tmp_path)] if listed else [])]
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setattr(sys, "path", [*zips, *others])
    monkeypatch.setattr(sys, "path_importer_cache", dict.fromkeys([*zips, *others]))

    use_installed_pyspark()

    assert sys.path == [*(zips if left else []), *others]
    assert list(sys.path_importer_cache) == sys.path
