"""The list of known advisories is of the jars that are installed."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest

from tests.advisories import JARS, Artifact, artifact, known, spark_jars, unexplained, version


def test_jars_of_spark_are_those_whose_advisories_were_looked_up() -> None:
    expected = JARS.read_text(encoding="utf-8").split()
    assert [jar.name for jar in spark_jars()] == expected, (
        "run `python -m tests.advisories`, explain what is new in tests/advisories.toml, then "
        "run `python -m tests.advisories --write`"
    )


def test_each_jar_with_advisories_is_installed() -> None:
    installed = [jar.name for jar in spark_jars()]
    files = [jar["file"] for jar in known()["jar"]]
    assert [file for file in files if not fnmatch.filter(installed, file)] == []


def test_each_jar_has_its_name_in_maven() -> None:
    groups = known()["groups"]
    found = {one.file: one for one in (artifact(jar, groups) for jar in spark_jars())}
    assert found["lz4-java-1.8.0.jar"].name == "org.lz4:lz4-java"
    assert found["netty-codec-http2-4.2.7.Final.jar"].name == "io.netty:netty-codec-http2"
    assert found["hive-exec-2.3.10-core.jar"][1:] == ("org.apache.hive:hive-exec", "2.3.10")
    named = {one.name for one in found.values()}
    assert {f"{group}:{name}" for name, group in groups.items()} <= named, "a group of no jar"


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("netty-tcnative-2.0.74.Final-linux-x86_64.jar", "netty-tcnative", "2.0.74.Final"),
        ("guava-33.4.8-jre.jar", "guava", "33.4.8-jre"),
        ("javassist-3.30.2-GA.jar", "javassist", "3.30.2-GA"),
        ("javax.jdo-3.2.0-m3.jar", "javax.jdo", "3.2.0-m3"),
        ("zstd-jni-1.5.7-6.jar", "zstd-jni", "1.5.7-6"),
        ("log4j-1.2-api-2.24.3.jar", "log4j-1.2-api", "2.24.3"),
        ("orc-core-2.2.2-shaded-protobuf.jar", "orc-core", "2.2.2"),
        ("jline-3.29.0-jdk8.jar", "jline", "3.29.0"),
    ],
)
def test_version_of_a_jar_is_without_its_classifier(file: str, name: str, expected: str) -> None:
    assert version(file, name) == expected


def test_advisory_that_is_not_explained_is_a_problem() -> None:
    loaded = Artifact("a-1.jar", "g:a", "1")
    unloaded = Artifact("b-1.jar", "g:b", "1")
    new = Artifact("c-1.jar", "g:c", "1")
    jars: list[dict[str, Any]] = [
        {"file": "a-*.jar", "ids": ["CVE-1"]},
        {"file": "b-1.jar", "ids": [], "unloaded": True},
    ]
    found = {
        loaded: [frozenset({"GHSA-1", "CVE-1"}), frozenset({"GHSA-2", "CVE-2"})],
        unloaded: [frozenset({"GHSA-3"})],
        new: [frozenset({"GHSA-4"})],
    }
    assert unexplained(found, jars) == ["a-1.jar: CVE-2, GHSA-2", "c-1.jar: GHSA-4"]
