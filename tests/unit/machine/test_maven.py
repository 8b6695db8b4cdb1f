"""Where jars are fetched from when nobody says."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from lakeload.machine.maven import REPOSITORY_VARIABLE, repository, spark_repository
from lakeload.machine.spark import find_spark
from lakeload_jobs.contract.errors import InvalidInput, MachineLacks

RESOLVER = "org/apache/ivy/plugins/resolver/IBiblioResolver.class"


def spark_with_ivy(home: Path, content: bytes) -> Path:
    (home / "jars").mkdir(parents=True)
    with zipfile.ZipFile(home / "jars" / "ivy-9.9.9.jar", "w") as jar:
        jar.writestr(RESOLVER, content)
    return home


def test_the_repository_of_the_environment_wins() -> None:
    given = {REPOSITORY_VARIABLE: "https://mirror.example.com/maven/"}
    assert repository(given) == "https://mirror.example.com/maven"


def test_a_setting_that_is_no_url_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidInput, match="not a URL") as caught:
        repository({REPOSITORY_VARIABLE: "user:canary@mirror"})
    assert "canary" not in str(caught.value) + (caught.value.hint or "")


def test_without_a_setting_it_is_the_one_of_spark() -> None:
    found = repository({})
    assert found == spark_repository(find_spark({}).home)
    assert found.startswith("https://")
    assert found.endswith("/maven2")


def test_a_spark_built_for_another_repository_brings_it_along(tmp_path: Path) -> None:
    constants = b"\x01\x00\x22https://jars.example.com/maven2/\x01\x00\x05other"
    assert (
        spark_repository(spark_with_ivy(tmp_path, constants)) == "https://jars.example.com/maven2"
    )


def test_a_spark_that_names_none_asks_for_the_setting(tmp_path: Path) -> None:
    with pytest.raises(MachineLacks, match="names no Maven repository") as caught:
        spark_repository(spark_with_ivy(tmp_path, b"nothing"))
    assert REPOSITORY_VARIABLE in (caught.value.hint or "")
