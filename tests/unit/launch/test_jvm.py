"""The driver's collector and compiler."""

from __future__ import annotations

import pytest

from lakeload.launch.jvm import SMALL_INPUT, collector, compiler, local_cores


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[2]", 2),
        ("local[3,4]", 3),
        ("local[*]", 8),
        ("local[*,2]", 8),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
    ],
)
def test_a_local_master_names_its_cores(master: str, cores: int | None) -> None:
    assert local_cores(master, 8) == cores


def test_few_cores_get_the_small_collector_and_many_the_parallel_one() -> None:
    assert collector(2, "") == "-XX:+UseSerialGC"
    assert collector(3, "") == collector(None, "") == "-XX:+UseParallelGC"
    assert collector(2, "-Xss4m -XX:+UseZGC") == ""


def test_small_known_input_is_compiled_once() -> None:
    assert compiler(SMALL_INPUT, "") == "-XX:TieredStopAtLevel=1"
    assert compiler(SMALL_INPUT + 1, "") == ""
    assert compiler(None, "") == ""


@pytest.mark.parametrize(
    "users", ["-XX:TieredStopAtLevel=4", "-XX:-TieredCompilation", "-Xss4m -Xint"]
)
def test_a_compiler_the_user_chose_stays(users: str) -> None:
    assert compiler(0, users) == ""
