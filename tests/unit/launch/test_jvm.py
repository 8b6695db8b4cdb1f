"""The driver's collector, compiler and class data."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.launch.properties import SMALL_INPUT, class_data, collector, compiler, heap


def test_few_cores_get_the_small_collector_and_many_the_parallel_one() -> None:
    assert collector(2, "") == "-XX:+UseSerialGC"
    assert collector(3, "") == collector(None, "") == "-XX:+UseParallelGC"
    assert collector(2, "-Xss4m -XX:+UseZGC") == ""


def test_small_known_input_is_compiled_once_and_other_input_later_than_java_would() -> None:
    assert compiler(SMALL_INPUT, "") == "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    later = (
        "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=2400 "
        "-XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000"
    )
    assert compiler(SMALL_INPUT + 1, "") == later
    assert compiler(None, "") == later


@pytest.mark.parametrize(
    "users",
    [
        "-XX:TieredStopAtLevel=4",
        "-XX:-TieredCompilation",
        "-Xss4m -Xint",
        "-XX:Tier4InvocationThreshold=1",
    ],
)
def test_a_compiler_the_user_chose_stays(users: str) -> None:
    assert compiler(0, users) == compiler(None, users) == ""


def test_a_code_cache_of_the_users_stays() -> None:
    assert compiler(0, "-XX:ReservedCodeCacheSize=64m") == "-XX:TieredStopAtLevel=1"


def test_a_jvm_without_rows_starts_with_a_small_heap_unless_the_user_has_chosen_one() -> None:
    assert heap(0, "-Xss4m").startswith("-Xms64m ")
    assert heap(1, "") == heap(None, "") == ""
    for users in ("-Xms1g", "-Xmn200m", "-XX:InitialHeapSize=1g", "-XX:MaxNewSize=1g"):
        assert heap(0, users) == ""


def test_appcds_archive_is_used_if_it_fits_and_ignored_silently_otherwise() -> None:
    assert class_data(None, "") == ""
    assert class_data(Path("/c/x.jsa"), "-Xss4m -Xmn1g") == (
        "-Xshare:auto -XX:SharedArchiveFile=/c/x.jsa -Xlog:cds*=off -Xlog:class+path=off"
    )
    assert '"-XX:SharedArchiveFile=/my cache/x.jsa"' in class_data(Path("/my cache/x.jsa"), "")
    # A colon separates two archives.
    assert class_data(Path("/a:b/x.jsa"), "") == ""


@pytest.mark.parametrize(
    "users",
    [
        "-Xshare:off",
        "-XX:SharedArchiveFile=/mine.jsa",
        "-XX:ArchiveClassesAtExit=/new.jsa",
        "-Xss4m -javaagent:/agent.jar=x",
        "-agentlib:jdwp=transport=dt_socket",
        "--patch-module java.base=/x",
    ],
)
def test_appcds_is_off_with_incompatible_java_options(users: str) -> None:
    assert class_data(Path("/c/x.jsa"), users) == ""
