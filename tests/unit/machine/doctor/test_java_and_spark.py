"""Findings about Python, Java and Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lakeload.checks import CheckStatus
from lakeload.machine.doctor.checks import NEEDED_MODULES, judge, judge_encoding, judge_pyspark
from lakeload.machine.doctor.checks import java as look_at_java
from lakeload.machine.doctor.checks import spark as look_at_spark
from lakeload.ui.checks import word
from tests.unit.machine.doctor.machines import context, java, spark, statuses

INSTALL = "sudo apt-get update && sudo apt-get install -y openjdk-17-jre-headless"


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 10), "problem"), ((3, 11), "ok"), ((3, 14), "ok"), ((3, 15), "warning")],
)
def test_python_outside_the_supported_range_is_a_problem(
    tmp_path: Path, version: tuple[int, int], status: str
) -> None:
    finding = judge(version, context(tmp_path))
    assert word(finding) == status
    assert bool(finding.command) == (status != "ok")


@pytest.mark.parametrize(
    ("variables", "command"),
    [
        ({"LANG": "de_DE.UTF-8"}, ""),
        ({"LC_ALL": "C.utf8", "LANG": "C"}, ""),
        ({"LC_ALL": "C", "LANG": "C.UTF-8"}, "export LC_ALL=C.UTF-8"),
        ({"LANG": "de_DE.ISO-8859-1"}, "export LANG=C.UTF-8"),
        ({}, "export LC_ALL=C.UTF-8"),
    ],
)
def test_java_locale_other_than_utf_8_is_a_problem(
    tmp_path: Path, variables: dict[str, str], command: str
) -> None:
    assert judge_encoding("utf-8", context(tmp_path, variables)).command == command


def test_java_finding_names_its_origin(tmp_path: Path) -> None:
    home = java(tmp_path / "jvm", "17.0.9")
    (from_home,) = look_at_java(context(tmp_path, JAVA_HOME=f"{home}/"))
    (from_path,) = look_at_java(context(tmp_path, PATH=f"{home}/bin"))
    assert from_home.found == f"Java 17.0.9 (Acme) in `{home}`, from JAVA_HOME"
    assert from_path.found == f"Java 17.0.9 (Acme) in `{home}`, from PATH"
    assert from_home.status is from_path.status is CheckStatus.PASSED


def test_no_java_is_a_problem_with_the_command_of_this_system(tmp_path: Path) -> None:
    (finding,) = look_at_java(context(tmp_path))
    assert (finding.status, finding.command) == (CheckStatus.FAILED, INSTALL)


@pytest.mark.parametrize("version", ["11.0.20", "24"])
def test_a_java_that_is_too_old_or_too_new_is_a_problem(tmp_path: Path, version: str) -> None:
    home = java(tmp_path / "jvm", version)
    first, second = look_at_java(context(tmp_path, JAVA_HOME=str(home)))
    assert (first.name, first.status, first.command) == ("java", CheckStatus.FAILED, INSTALL)
    assert f"Java {version}" in first.found
    assert (second.name, second.command) == ("java-home", "unset JAVA_HOME")


def test_java_home_without_java_is_skipped_and_reported(tmp_path: Path) -> None:
    home = java(tmp_path / "jvm", "21.0.2")
    found = list(look_at_java(context(tmp_path, JAVA_HOME="/gone", PATH=f"{home}/bin")))
    assert statuses(found) == {"java": "ok", "java-home": "warning"}
    assert found[1].command == f"export JAVA_HOME={home}"


def test_a_runtime_without_a_module_that_spark_loads_is_a_problem(tmp_path: Path) -> None:
    whole = java(tmp_path / "whole", "17.0.9", " ".join(["java.base", *NEEDED_MODULES]))
    small = java(tmp_path / "small", "17.0.9", "java.base java.logging java.sql java.xml")
    assert statuses(list(look_at_java(context(tmp_path, JAVA_HOME=str(whole))))) == {"java": "ok"}
    (finding,) = look_at_java(context(tmp_path, JAVA_HOME=str(small)))
    assert finding.status is CheckStatus.FAILED
    assert "`java.naming`" in finding.why
    assert "`java.sql`" not in finding.why


@pytest.mark.parametrize(("version", "status"), [("4.1.4", "ok"), ("3.5.7", "problem")])
def test_pyspark_outside_the_pinned_range_is_a_problem(
    tmp_path: Path, version: str, status: str
) -> None:
    home = spark(tmp_path / "pyspark", version)
    (finding,) = judge_pyspark(home, context(tmp_path))
    assert word(finding) == status
    assert ("pip install" in finding.command) == (status == "problem")


def test_a_pyspark_without_its_jars_or_none_at_all_is_a_problem(tmp_path: Path) -> None:
    for installed in (tmp_path, None):
        (finding,) = judge_pyspark(installed, context(tmp_path))
        assert finding.status is CheckStatus.FAILED


@pytest.mark.parametrize(
    ("version", "status"), [("4.1.4", "ok"), ("4.1.1", "warning"), ("3.5.7", "problem")]
)
def test_spark_home_is_compared_with_pyspark(tmp_path: Path, version: str, status: str) -> None:
    installed = spark(tmp_path / "pyspark", "4.1.4")
    chosen = spark(tmp_path / "chosen", version)
    _, finding = judge_pyspark(installed, context(tmp_path, SPARK_HOME=str(chosen)))
    assert (finding.name, word(finding)) == ("spark-home", status)
    assert f"Spark {version}" in finding.found
    assert finding.command == ("" if status == "ok" else "unset SPARK_HOME")


def test_a_spark_home_with_nothing_in_it_is_a_problem(tmp_path: Path) -> None:
    installed = spark(tmp_path / "pyspark", "4.1.4")
    _, finding = judge_pyspark(installed, context(tmp_path, SPARK_HOME="/gone"))
    assert finding.status is CheckStatus.FAILED
    assert "/gone" in finding.found


def test_a_spark_submit_that_cannot_be_executed_is_a_problem(tmp_path: Path) -> None:
    home = spark(tmp_path / "spark", "4.1.4")
    (home / "bin" / "spark-submit").chmod(0o644)
    found = list(look_at_spark(context(tmp_path, SPARK_HOME=str(home))))
    (finding,) = [one for one in found if one.name == "spark-submit"]
    assert finding.status is CheckStatus.FAILED
    assert finding.command == f"chmod +x '{home}/bin/spark-submit'"


def test_another_spark_submit_on_the_path_is_reported_as_unused(tmp_path: Path) -> None:
    home = spark(tmp_path / "spark", "4.1.4")
    other = spark(tmp_path / "other", "3.5.7")
    machine = context(tmp_path, SPARK_HOME=str(home), PATH=f"{other}/bin")
    (finding,) = [one for one in look_at_spark(machine) if one.name == "spark-submit"]
    assert finding.found == (
        f"`{home}/bin/spark-submit`; the `{other}/bin/spark-submit` of PATH is not used"
    )


def test_another_python_for_pyspark_is_reported_as_unused(tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    machine = context(tmp_path, PYSPARK_PYTHON=str(other), PYSPARK_DRIVER_PYTHON=sys.executable)
    (finding,) = [one for one in look_at_spark(machine) if one.name == "pyspark-python"]
    assert finding.command == "unset PYSPARK_PYTHON"


def test_a_machine_without_bash_cannot_start_spark(tmp_path: Path) -> None:
    found = list(look_at_spark(context(tmp_path)))
    assert statuses(found)["bash"] == "problem"
